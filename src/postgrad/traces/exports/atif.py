"""ATIF 1.8 (Harbor's trajectory format), checked with the `atif` package before anything is written.

``FILE.json`` holds one trajectory, or a list where there are several; ``FILE.jsonl`` one a line; a path without suffix
is a folder with one file a trajectory. A trace whose parent is exported too is a subagent trajectory inside it.

ATIF has no place for argument strings, error flags, block order, stop reasons, thought signatures, feedback and how
well a context is known: these stand in `extra.postgrad`, which other readers skip and postgrad's own reads back. Lost
are candidates that were not taken, events, branches and what a context forgot: ATIF implies one growing context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import plain_json
from postgrad.core.errors import MissingDependency
from postgrad.core.files import write_folder, write_text
from postgrad.core.message import Media, Message, Reasoning, Text, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Step, Trace
from postgrad.traces.exports.exporter import Losses, Sameness, iso, valid, write_lines
from postgrad.traces.exports.openai import tool_object
from postgrad.traces.formats.atif.trajectory import OWN, RAW

VERSION = "ATIF-v1.8"
_METRICS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
    "cached_tokens": ("cached_tokens", "cache_read_input_tokens", "input_tokens_cache_read"),
}
_MIME = ("image/jpeg", "image/png", "image/gif", "image/webp")


@dataclass(frozen=True)
class ATIFExport:
    """Writer of ATIF trajectories."""

    def write(self, traces: Iterable[Trace], path: Path, losses: Losses) -> int:
        """Write one trajectory a trace that has no parent among them."""
        trajectories = [valid(value) for value in _trajectories(list(traces), losses)]
        for value in trajectories:
            _check(value)
        if path.suffix == ".jsonl":
            return write_lines(path, trajectories)
        if path.suffix:
            write_text(path, plain_json(trajectories[0] if len(trajectories) == 1 else trajectories) + "\n")
        else:
            write_folder(path, lambda folder: _fill(folder, trajectories))
        return len(trajectories)


def _fill(folder: Path, trajectories: list[Any]) -> None:
    for value in trajectories:
        (folder / f"{value['trajectory_id']}.json").write_text(plain_json(value) + "\n", encoding="utf-8")


def _check(value: Any) -> None:
    """Hold a trajectory against the public schema.

    Raises:
        MissingDependency: the `atif` package is not installed.
    """
    try:
        from atif import Trajectory
    except ImportError:
        raise MissingDependency("atif", extra="export") from None
    Trajectory.model_validate(value)


def _trajectories(traces: list[Trace], losses: Losses) -> Iterator[dict[str, Any]]:
    known = {trace.id for trace in traces}
    children: dict[str, list[Trace]] = {}
    for trace in traces:
        if trace.parent in known and trace.parent != trace.id:
            children.setdefault(str(trace.parent), []).append(trace)
    done: set[int] = set()
    for trace in [*(t for t in traces if t.parent not in known or t.parent == t.id), *traces]:
        if id(trace) not in done:  # the second round is for parents that form a ring, which only broken data has
            losses["links to a parent trace"] += trace.parent is not None
            yield trajectory(trace, losses, children, done)


def trajectory(
    trace: Trace, losses: Losses, children: Mapping[str, list[Trace]], done: set[int] | None = None
) -> dict[str, Any]:
    """One trace as plain data; `children` become its subagent trajectories, `done` collects who was written."""
    done = set() if done is None else done
    done.add(id(trace))
    losses["events"] += sum(event.kind != "user_text" for event in trace.events)
    writer = _Writer(trace, losses)
    inner = [child for child in children.get(trace.id, []) if id(child) not in done]
    found = {
        "schema_version": VERSION,
        "session_id": trace.id,
        "trajectory_id": trace.id,
        "agent": _agent(trace, losses),
        "steps": writer.steps(),
        "extra": {OWN: _present(_about(trace))},
        "subagent_trajectories": [trajectory(child, losses, children, done) for child in inner],
    }
    return {key: value for key, value in found.items() if value not in ({OWN: {}}, [])} | {"steps": found["steps"]}


def _about(trace: Trace) -> dict[str, Any]:
    """What postgrad keeps of a trace as a whole."""
    return {
        "task_id": trace.task_id,
        "purpose": "evaluation" if trace.for_evaluation else None,
        "environment": trace.environment or None,
    }


def _agent(trace: Trace, losses: Losses) -> dict[str, Any]:
    lists = [step.request.tools for step in trace.steps]
    losses["changes of the tools on offer"] += sum(a != b for a, b in pairwise(lists))
    offered = {tool.name: tool for listed in lists for tool in listed}
    models = [taken(step).model for step in trace.steps if taken(step).model]
    return _present(
        {
            "name": trace.source.app or trace.source.format,
            "version": trace.source.app_version or "unknown",
            "model_name": models[0] if models else None,
            "tool_definitions": [tool_object(tool) for tool in offered.values()] or None,
        }
    )


def taken(step: Step) -> Candidate:
    """The candidate that was taken."""
    return next(candidate for candidate in step.candidates if candidate.chosen and candidate.teacher is None)


def _present(value: dict[str, Any]) -> dict[str, Any]:
    """Without what is not there: the schema knows absent fields, and null ones not everywhere."""
    return {key: item for key, item in value.items() if item not in (None, {}, (), [])}


class _Writer:
    """A trace's steps, with the messages between them. `_told`: what the last context consisted of, with the action."""

    def __init__(self, trace: Trace, losses: Losses) -> None:
        self._trace, self._losses = trace, losses
        self._same = Sameness()
        self._told: list[str] = []
        self._ever: set[str] = set()
        self._results = {result.call_id for step in trace.steps for result in step.results}
        self._written: list[dict[str, Any]] = []

    def steps(self) -> list[dict[str, Any]]:
        """The trajectory's steps, numbered from 1."""
        for step in self._trace.steps:
            self._between(step)
            self._written.append(self._act(step))
            self._told.append(self._same.key(step.action))
            self._ever.update(self._told)
        return [{"step_id": number, **value} for number, value in enumerate(self._written, 1)]

    def _between(self, step: Step) -> None:
        """What the model was told since the step before; results stand with their calls.

        Where the context does not go on from the last one, what was told at any time before is not told again.
        """
        context = [message for message in self._trace.context(step) if message.role != "tool"]
        keys = [self._same.key(message) for message in context]
        linear = keys[: len(self._told)] == self._told
        self._losses["messages that a later context forgot"] += 0 if linear else len(set(self._told) - set(keys))
        for key, message in zip(
            keys[len(self._told) if linear else 0 :], context[len(self._told) if linear else 0 :], strict=True
        ):
            if linear or key not in self._ever:
                self._tell(message)
        for message in self._trace.context(step):
            if message.role == "tool" and self._same.key(message) not in self._ever:
                self._orphans(message)
        self._told = keys

    def _orphans(self, message: Message) -> None:
        """Results that no step of this trace has: the format wants them without a call."""
        self._ever.add(self._same.key(message))
        lost = [result for result in message.tool_results if result.call_id not in self._results]
        self._losses["results without a call (their ids)"] += len(lost)
        if lost:
            results = [{"source_call_id": None, "content": result.text} for result in lost]
            self._written.append({"source": "system", "message": "", "observation": {"results": results}})

    def _tell(self, message: Message) -> None:
        role = {"assistant": "agent", "developer": "system"}.get(message.role, message.role)
        written: dict[str, Any] = {"source": role, "message": self._content(message)}
        if role == "agent":
            calls = [self._call(call) for call in message.tool_calls]
            written |= {"is_copied_context": True, **_present({"tool_calls": calls})}
            thought = "\n\n".join(block.text for block in message.blocks if isinstance(block, Reasoning) and block.text)
            written |= {"reasoning_content": thought} if thought else {}
        self._losses["developer role (written as system)"] += message.role == "developer"
        self._written.append(written)

    def _act(self, step: Step) -> dict[str, Any]:
        action, chosen = step.action, taken(step)
        self._losses["candidates that were not taken"] += len(step.candidates) - 1
        self._losses["abandoned branches (steps kept, not marked)"] += step.abandoned
        thoughts = [block for block in action.blocks if isinstance(block, Reasoning)]
        self._losses["borders between thoughts"] += max(0, len(thoughts) - 1)
        texts = sum(isinstance(block, Text) for block in action.blocks)
        self._losses["borders between texts"] += max(0, texts - 1)
        stated, time = iso(step.time), step.time
        self._losses["times that are no ISO time"] += time is not None and stated is None
        return _present(
            {
                "timestamp": stated,
                "source": "agent",
                "model_name": chosen.model,
                "reasoning_content": "\n\n".join(block.text for block in thoughts if block.text),
                "tool_calls": [self._call(call) for call in action.tool_calls],
                "observation": _present({"results": [_result(result) for result in step.results]}),
                "metrics": _metrics(chosen.usage),
                "extra": _present({OWN: self._own(step, chosen, thoughts)}),
            }
        ) | {"message": self._content(action)}

    def _own(self, step: Step, chosen: Candidate, thoughts: list[Reasoning]) -> dict[str, Any]:
        kept = [type(block).__name__ for block in step.action.blocks if isinstance(block, Text | Reasoning | ToolCall)]
        usual = sorted(kept, key=("Reasoning", "Text", "ToolCall").index)
        request = step.request
        return _present(
            {
                "stop_reason": chosen.stop_reason,
                "usage": dict(chosen.usage),
                "params": dict(request.params),
                "fidelity": request.fidelity,
                "missing": list(request.missing),
                "order": kept if kept != usual else None,
                "signature": next((block.signature for block in thoughts if block.signature), None),
                "encrypted": next((block.encrypted for block in thoughts if block.encrypted), None),
                "feedback": msgspec.to_builtins(step.feedback),
            }
        )

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        """The text, or parts as soon as there is a picture with an address."""
        parts: list[dict[str, Any]] = []
        for block in message.blocks:
            if isinstance(block, Text):
                parts.append({"type": "text", "text": block.text})
            elif isinstance(block, Media) and block.uri and block.mime in _MIME:
                parts.append({"type": "image", "source": {"media_type": block.mime, "path": block.uri}})
            elif not isinstance(block, Reasoning | ToolCall | ToolResult):
                self._losses["media and blocks of unknown types"] += 1
        if any(part["type"] != "text" for part in parts):
            return parts
        return "".join(part["text"] for part in parts)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """A call. Its string stands beside the object where the object does not give it back."""
        arguments = {RAW: call.arguments_raw} if call.arguments is None else call.arguments
        own: dict[str, Any] = {}
        if call.arguments is None or plain_json(call.arguments) != call.arguments_raw:
            own = {"arguments_raw": call.arguments_raw}
        if call.provider_id is not None:
            own["provider_id"] = call.provider_id
        written = {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}
        return written | ({"extra": {OWN: own}} if own else {})


def _result(result: ToolResult) -> dict[str, Any]:
    own: dict[str, Any] = {} if result.is_error is None else {"is_error": result.is_error}
    own |= {} if result.status == ("error" if result.is_error else "ok") else {"status": result.status}
    written: dict[str, Any] = {"source_call_id": result.call_id, "content": result.text}
    return written | ({"extra": {OWN: own}} if own else {})


def _metrics(usage: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: next((usage[key] for key in keys if _whole(usage.get(key))), None) for name, keys in _METRICS.items()
    }
    cost = usage.get("cost_usd")
    found["cost_usd"] = cost if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return {key: value for key, value in found.items() if value is not None}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
