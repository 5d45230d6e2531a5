"""An Inspect log, ``FILE.json`` or ``FILE.eval``: a sample a trace, a model event a step, a tool event a result.

Contexts are kept whole, without repeating them: each sample has a pool of messages, and every model event the ranges of
places in it (`events_data`, `input_refs`). Candidates that were not taken are further choices, error flags and states
are typed errors. Lost are argument strings that are no plain JSON of their object, stop reasons and usage that Inspect
has no word for, events and branches. Samples of evaluation transcripts say so in their metadata.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from postgrad.core.canonical import content_id, plain_json
from postgrad.core.files import replacing, write_text
from postgrad.core.message import Block, Media, Message, Reasoning, Text, ToolCall, ToolResult
from postgrad.core.trace import EVALUATION, Candidate, Step, Trace
from postgrad.traces.exports.atif import taken
from postgrad.traces.exports.exporter import Losses, iso, valid
from postgrad.traces.formats.atif.trajectory import RAW

_START = "1970-01-01T00:00:00+00:00"
_STOPS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("max_tokens", "length"), "max_tokens"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(("content_filter", "refusal"), "content_filter"),
    "model_length": "model_length",
    "unknown": "unknown",
}
_ERRORS = {"rejected": "approval", "interrupted": "cancelled"}
_CONFIG = ("temperature", "top_p", "top_k", "max_tokens", "seed", "stop_seqs", "frequency_penalty", "presence_penalty")
_USAGE = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "total_tokens": ("total_tokens",),
    "input_tokens_cache_read": ("input_tokens_cache_read", "cache_read_input_tokens", "cached_tokens"),
    "input_tokens_cache_write": ("input_tokens_cache_write", "cache_creation_input_tokens"),
    "reasoning_tokens": ("reasoning_tokens",),
}


@dataclass(frozen=True)
class InspectExport:
    """Writer of Inspect logs."""

    def write(self, traces: Iterable[Trace], path: Path, losses: Losses) -> int:
        """Write one sample a trace."""
        samples = [valid(_Sample(trace, losses).value()) for trace in traces]
        header = _header(samples)
        if path.suffix == ".eval":
            _write_archive(path, header, samples)
        else:
            write_text(path, plain_json({**header, "samples": samples}) + "\n")
        return len(samples)


def _header(samples: list[Any]) -> dict[str, Any]:
    ids = [sample["id"] for sample in samples]
    models = sorted({event["model"] for sample in samples for event in sample["events"] if event["event"] == "model"})
    name = content_id(ids, length=22)
    spec = {
        "eval_id": name,
        "run_id": name,
        "task_id": name,
        "created": _START,
        "task": "postgrad_export",
        "dataset": {"name": "traces", "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": models[0] if models else "unknown",
        "config": {},
        "packages": {},
    }
    plan = {"name": "plan", "steps": [], "config": {}}
    stats = {"started_at": _START, "completed_at": _START, "model_usage": {}}
    return {"version": 2, "status": "success", "eval": spec, "plan": plan, "stats": stats}


def _write_archive(path: Path, header: Mapping[str, Any], samples: list[Any]) -> None:
    """The members that Inspect's own recorder writes; times in it are fixed, so equal traces give equal files."""
    spec = {"version": header["version"], "eval": header["eval"], "plan": header["plan"]}
    summaries = [{key: sample[key] for key in ("id", "epoch", "input", "target")} for sample in samples]
    named = {f"samples/{sample['id']}_epoch_1.json": sample for sample in samples}
    members = {"_journal/start.json": spec, **named, "summaries.json": summaries, "header.json": header}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, json.dumps(value))


class _Sample:
    """A trace on its way to a sample."""

    def __init__(self, trace: Trace, losses: Losses) -> None:
        self._trace, self._losses = trace, losses
        self._pool: dict[str, int] = {}
        self._names = {call.id: call.name for message in trace.messages.values() for call in message.tool_calls}
        self._names |= {call.id: call.name for step in trace.steps for call in step.action.tool_calls}

    def value(self) -> dict[str, Any]:
        """The sample as plain data."""
        trace, losses = self._trace, self._losses
        losses["events"] += sum(event.kind != "user_text" for event in trace.events)
        losses["environments"] += bool(trace.environment)
        losses["results without a call"] += len(trace.orphans)
        events = [event for step in trace.steps for event in self._events(step)]
        last = trace.steps[-1] if trace.steps else None
        final = [*trace.context(last), last.action] if last else []
        tail = [Message("tool", (result,)) for result in last.results] if last else []
        first = next((message.text for message in final if message.role == "user" and message.text), "")
        origin = {"task": trace.task_id, "parent": trace.parent, "format": trace.source.format}
        metadata = {key: value for key, value in origin.items() if value is not None}
        return {
            "id": trace.id,
            "epoch": 1,
            "input": first,
            "target": "",
            "messages": [self._message(message) for message in (*final, *tail)],
            "output": events[-1 - len(tail)]["output"] if last else {"model": "", "choices": []},
            "scores": dict(self._scores()),
            "metadata": metadata | ({"purpose": EVALUATION} if trace.for_evaluation else {}),
            "store": {},
            "events": events,
            "model_usage": {},
            "attachments": {},
            "events_data": {"messages": [self._message(trace.messages[key]) for key in self._pool], "calls": []},
        }

    def _scores(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for step in self._trace.steps:
            for said in step.feedback:
                whole = said.kind == "score" and step is self._trace.steps[-1]
                self._losses["feedback"] += not whole
                if whole:
                    yield said.source or "score", {"value": said.text if said.value is None else said.value,
                                                   "explanation": said.text}  # fmt: skip

    def _events(self, step: Step) -> Iterator[dict[str, Any]]:
        chosen = taken(step)
        others = [c for c in step.candidates if c is not chosen and c.teacher is None]
        self._losses["teachers' candidates"] += len(step.candidates) - len(others) - 1
        self._losses["abandoned branches (steps kept, not marked)"] += step.abandoned
        self._losses["times that are no ISO time"] += step.time is not None and iso(step.time) is None
        params = step.request.params
        config = {key: params[key] for key in _CONFIG if isinstance(params.get(key), int | float)}
        self._losses["sampling parameters"] += len(params.keys() - config.keys() - {"tool_choice"})
        time = iso(step.time) or _START
        yield {
            "event": "model",
            "timestamp": time,
            "working_start": 0.0,
            "model": chosen.model or "unknown",
            "input": [],
            "input_refs": self._refs(step.request.messages),
            "tools": [
                {"name": t.name, "description": t.description, "parameters": _schema(t.parameters)}
                for t in step.request.tools
            ],
            "tool_choice": "auto",
            "config": config,
            "output": self._output(chosen, others),
        }
        for result in step.results:
            yield self._tool_event(step, result, time)

    def _refs(self, keys: Iterable[str]) -> list[list[int]]:
        """Ranges of places in the pool, each of them growing by one."""
        places = [self._pool.setdefault(key, len(self._pool)) for key in keys]
        spans = []
        for _, group in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
            found = [place for _, place in group]
            spans.append([found[0], found[-1] + 1])
        return spans

    def _output(self, chosen: Candidate, others: list[Candidate]) -> dict[str, Any]:
        output: dict[str, Any] = {"model": chosen.model or "unknown", "choices": []}
        for candidate in (chosen, *others):
            stop = _STOPS.get(candidate.stop_reason or "unknown", "unknown")
            self._losses["stop reasons (written in Inspect's words)"] += stop != (candidate.stop_reason or "unknown")
            output["choices"].append({"message": self._message(candidate.message), "stop_reason": stop})
        usage = _usage(chosen.usage)
        self._losses["usage (fields without a place)"] += len(chosen.usage) - len(usage) if chosen.usage else 0
        return {**output, "usage": usage} if usage else output

    def _tool_event(self, step: Step, result: ToolResult, time: str) -> dict[str, Any]:
        self._losses["results whose source does not say whether they failed"] += result.is_error is None
        call = next((call for call in step.action.tool_calls if call.id == result.call_id), None)
        return {
            "event": "tool",
            "timestamp": time,
            "working_start": 0.0,
            "type": "function",
            "id": result.call_id,
            "function": self._names.get(result.call_id, ""),
            "arguments": _arguments(call) if call else {},
            "result": result.text,
            "events": [],
            **self._error(result),
        }

    @staticmethod
    def _error(result: ToolResult) -> dict[str, Any]:
        """What the flag and the state of a result are in Inspect: an error has a type and a message."""
        if result.is_error is not True and result.status in ("ok", "pending"):
            return {}
        return {"error": {"type": _ERRORS.get(result.status, "unknown"), "message": result.text}}

    def _message(self, message: Message) -> dict[str, Any]:
        """A message. One with several results is told by its first; postgrad's readers write one a result."""
        if message.role == "tool" and message.tool_results:
            result = message.tool_results[0]
            self._losses["further results in one message"] += len(message.tool_results) - 1
            name = self._names.get(result.call_id, "")
            told = {"role": "tool", "content": result.text, "tool_call_id": result.call_id, "function": name}
            return {"id": message.id, **told, **self._error(result)}
        role = "system" if message.role == "developer" else message.role
        value: dict[str, Any] = {"id": message.id, "role": role, "content": self._content(message.blocks)}
        if message.tool_calls:
            value["tool_calls"] = [self._call(call) for call in message.tool_calls]
        return value

    def _content(self, blocks: Iterable[Block]) -> str | list[dict[str, Any]]:
        parts = [part for block in blocks if (part := self._part(block)) is not None]
        if len(parts) <= 1 and all(part["type"] == "text" for part in parts):
            return "".join(part["text"] for part in parts)
        return parts

    def _part(self, block: Block) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        if isinstance(block, Reasoning):
            hidden = block.encrypted is not None and not block.text
            part = {"type": "reasoning", "reasoning": block.encrypted if hidden else block.text, "redacted": hidden}
            return {**part, "signature": block.signature} if block.signature else part
        if isinstance(block, Media) and block.uri:
            return {"type": "image", "image": block.uri}
        self._losses["media and blocks of unknown types"] += not isinstance(block, ToolCall | ToolResult)
        return None

    def _call(self, call: ToolCall) -> dict[str, Any]:
        self._losses["argument strings"] += call.arguments is not None and call.arguments_raw != plain_json(
            call.arguments
        )
        written = {"id": call.id, "function": call.name, "arguments": _arguments(call), "type": "function"}
        return {**written, "parse_error": call.parse_error} if call.parse_error else written


def _arguments(call: ToolCall) -> dict[str, Any]:
    return {RAW: call.arguments_raw} if call.arguments is None else call.arguments


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Inspect wants an object's schema, with properties."""
    return {
        "type": "object",
        "properties": {},
        **{k: v for k, v in parameters.items() if k in ("properties", "required")},
    }


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for name, keys in _USAGE.items():
        value = next((usage[key] for key in keys if isinstance(usage.get(key), int)), None)
        if value is not None:
            found[name] = int(value)
    return found
