"""OpenAI's form of conversations, JSON lines: ``{"messages": [...], "tools": [...]}``, a row for each run of steps.

A trace whose steps all go on from one another is one row; a compaction or a branch begins a new one. Assistant messages
of a row that are context and no step of it have ``"weight": 0``, as in fine-tuning files. Consecutive messages of the
user (or the system) are one message, results without a call are left out; calls without a result can be given one that
says so (`stubs`), which the API wants. Rows of evaluation transcripts have ``"metadata": {"purpose": "evaluation"}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from postgrad.core.message import Block, Media, Message, Opaque, Reasoning, Text, Tool, ToolCall
from postgrad.core.trace import EVALUATION, Trace
from postgrad.traces.exports.exporter import (
    Losses,
    Run,
    argument_text,
    count_blocks,
    count_results,
    count_step,
    count_trace,
    runs,
    write_lines,
)
from postgrad.traces.formats.openai_chat.messages import write_message

STUB = "[no result was recorded]"
_MERGED = ("system", "developer", "user")


@dataclass(frozen=True)
class OpenAIMessages:
    """Writer of chat messages.

    Args:
        reasoning: keep thoughts as `reasoning_content`, write them into the text as <think>, or leave them out.
        stubs: give calls without a result one that says so.
    """

    reasoning: Literal["keep", "text", "drop"] = "keep"
    stubs: bool = False

    def write(self, traces: Iterable[Trace], path: Path, losses: Losses) -> int:
        """Write one row a run of steps."""
        return write_lines(path, (row for trace in traces for row in self._rows(trace, losses)))

    def _rows(self, trace: Trace, losses: Losses) -> Iterator[dict[str, Any]]:
        count_trace(trace, losses)
        for run in runs(trace):
            for step in run.steps:
                count_step(step, losses)
                count_results(step, losses)
                count_blocks(step.action, losses, reasoning=self.reasoning != "drop")
            messages = [
                written
                for place, message in enumerate(run.messages)
                for written in self._message(run, place, message, losses)
            ]
            row: dict[str, Any] = {"messages": _merged(self._answered(messages, losses), losses)}
            offered = offered_tools(run, losses)
            if offered:
                row["tools"] = [tool_object(tool) for tool in offered]
            if trace.for_evaluation:
                row["metadata"] = {"purpose": EVALUATION}
            yield row

    def _message(self, run: Run, place: int, message: Message, losses: Losses) -> list[dict[str, Any]]:
        blocks = tuple(shown for block in message.blocks for shown in self._block(block, losses))
        written = write_message(msgspec.structs.replace(message, blocks=blocks))
        if message.role == "assistant" and place not in run.actions:
            written[0]["weight"] = 0
        return written

    def _block(self, block: Block, losses: Losses) -> list[Block]:
        if isinstance(block, Opaque) or (isinstance(block, Media) and block.uri is None):
            return []
        if isinstance(block, Reasoning) and self.reasoning != "keep":
            return [Text(f"<think>\n{block.text}\n</think>\n\n")] if self.reasoning == "text" and block.text else []
        if isinstance(block, ToolCall):
            raw = argument_text(block, losses)
            return [msgspec.structs.replace(block, arguments_raw=raw, provider_id=None)]
        return [msgspec.structs.replace(block, provider_id=None)] if hasattr(block, "provider_id") else [block]

    def _answered(self, messages: list[dict[str, Any]], losses: Losses) -> list[dict[str, Any]]:
        """Results that answer a call right above them; every call with a result, where stubs are wanted."""
        kept: list[dict[str, Any]] = []
        waiting: dict[str, None] = {}
        for message in messages:
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    losses["results without a call"] += 1
                    continue
                del waiting[message["tool_call_id"]]
            elif self.stubs:
                kept += _stubs(waiting)
            if message["role"] == "assistant":
                waiting = dict.fromkeys(call["id"] for call in message.get("tool_calls", ()))
            kept.append(message)
        return kept + (_stubs(waiting) if self.stubs else [])


def offered_tools(run: Run, losses: Losses) -> tuple[Tool, ...]:
    """The tools of a run's steps; a form with one list of tools a row cannot say that they changed."""
    lists = [step.request.tools for step in run.steps]
    losses["changes of the tools on offer"] += sum(a != b for a, b in pairwise(lists))
    return tuple({tool.name: tool for listed in lists for tool in listed}.values())


def tool_object(tool: Tool) -> dict[str, Any]:
    """A tool as the API takes it."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _stubs(waiting: dict[str, None]) -> list[dict[str, Any]]:
    found = [{"role": "tool", "tool_call_id": key, "content": STUB} for key in waiting]
    waiting.clear()
    return found


def _merged(messages: list[dict[str, Any]], losses: Losses) -> list[dict[str, Any]]:
    """Consecutive messages of one speaker as one; two answers in a row stay two, they are two steps."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] in _MERGED and message["content"] is None:
            continue
        if merged and message["role"] in _MERGED and merged[-1]["role"] == message["role"]:
            losses["borders between messages of one speaker"] += 1
            merged[-1] = {"role": message["role"], "content": _joined(merged[-1]["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[{"type": "text", "text": part}] if isinstance(part, str) else part for part in (first, second)]
    return [*parts[0], *parts[1]]
