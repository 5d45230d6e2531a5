"""ShareGPT with Hermes' marks, JSON lines: ``{"conversations": [{"from", "value"}], "tools"}``, a row a run of steps.

Every step is one "gpt" turn: thoughts in <think>, text, and calls in <tool_call>; results are "tool" turns with a
<tool_response> each, in the order of the calls, for there are no ids. Turns of the model that are context and no step
of their row have ``"weight": 0``. Evaluation transcripts have ``"purpose": "evaluation"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.core.message import Block, Media, Reasoning, Text, ToolCall, ToolResult
from postgrad.core.trace import EVALUATION, Trace
from postgrad.traces.exports.exporter import (
    Losses,
    Run,
    count_blocks,
    count_results,
    count_step,
    count_trace,
    runs,
    write_lines,
)
from postgrad.traces.exports.openai import offered_tools, tool_object

_SPEAKERS = {"system": "system", "developer": "system", "user": "human", "assistant": "gpt", "tool": "tool"}


@dataclass(frozen=True)
class ShareGPTExport:
    """Writer of ShareGPT rows."""

    def write(self, traces: Iterable[Trace], path: Path, losses: Losses) -> int:
        """Write one row a run of steps."""
        return write_lines(path, (row for trace in traces for row in _rows(trace, losses)))


def _rows(trace: Trace, losses: Losses) -> Iterator[dict[str, Any]]:
    count_trace(trace, losses)
    for run in runs(trace):
        for step in run.steps:
            count_step(step, losses)
            count_results(step, losses)
            count_blocks(step.action, losses, reasoning=True)
        row: dict[str, Any] = {"conversations": list(_turns(run, losses))}
        if offered := offered_tools(run, losses):
            row["tools"] = plain_json([tool_object(tool) for tool in offered])
        if trace.for_evaluation:
            row["purpose"] = EVALUATION
        yield row


def _turns(run: Run, losses: Losses) -> Iterator[dict[str, Any]]:
    """The turns; results that follow each other are one turn, in the order of the calls above them."""
    waiting: list[ToolResult] = []
    order: dict[str, int] = {}
    for place, message in enumerate(run.messages):
        waiting += message.tool_results
        if message.role != "tool":
            yield from _answers(waiting, order, losses)
            waiting = []
            order = {call.id: number for number, call in enumerate(message.tool_calls)}
            value = "\n".join(part for block in message.blocks if (part := _text(block, losses)))
            turn: dict[str, Any] = {"from": _SPEAKERS[message.role], "value": value}
            if message.role == "assistant" and place not in run.actions:
                turn["weight"] = 0
            if value or message.role == "assistant":
                yield turn
    yield from _answers(waiting, order, losses)


def _answers(results: list[ToolResult], order: dict[str, int], losses: Losses) -> Iterator[dict[str, Any]]:
    known = [result for result in results if result.call_id in order]
    losses["results without a call"] += len(results) - len(known)
    if known:
        known.sort(key=lambda result: order[result.call_id])
        value = "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in known)
        yield {"from": "tool", "value": value}
        if len(known) < len(order):
            losses["which of several calls was answered"] += 1


def _text(block: Block, losses: Losses) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Reasoning):
        return f"<think>\n{block.text}\n</think>" if block.text else ""
    if isinstance(block, ToolCall):
        return f"<tool_call>\n{_call(block, losses)}\n</tool_call>"
    return f"<image>{block.uri}</image>" if isinstance(block, Media) and block.uri else ""


def _call(call: ToolCall, losses: Losses) -> str:
    """A call as an object; one whose arguments are no object stands as it was written, and is unreadable again."""
    losses["call ids"] += 1
    if call.arguments is None:
        return f'{{"name": {plain_json(call.name)}, "arguments": {call.arguments_raw}}}'
    written = ToolCall.from_raw(id=call.id, name=call.name, raw=call.arguments_raw)
    same = written.arguments == call.arguments and call.arguments_raw.strip()
    raw = call.arguments_raw if same else plain_json(call.arguments)
    return f'{{"name": {plain_json(call.name)}, "arguments": {raw}}}'
