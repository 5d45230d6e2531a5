"""tau-bench and tau2: a run is a customer's talk with an agent that has tools, and a reward.

    tau-bench   [{"task_id", "trial", "reward", "info", "traj": [OpenAI messages]}], or one such object
    tau2        {"info", "tasks", "simulations": [{"id", "task_id", "messages", "reward_info", ...}]}, or one simulation

A step is a message of the agent. In tau-bench call ids repeat inside a run, so results are matched by place, and a
failed call is told by a text that begins with "Error: ", which its environment writes for every exception; tau2 has a
flag. In tau2 the simulated user has tools too: they are events, for the agent does not see them. The reward is the
run's, and stands at its last step. Neither form holds tool schemas; tau2 does not hold the system prompt either.

"The same run" means: the same task, trial and messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Text, ToolCall
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Action, Setting
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.datasets.telling import Telling, setting
from postgrad.traces.formats.shapes.plain import mapping, mappings, number, string, text, written
from postgrad.traces.formats.shapes.said import RawResult, Said
from postgrad.traces.formats.shapes.turns import message
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_ERROR = "Error: "
_ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True)
class TauBench:
    """Reader of tau-bench results."""

    format: str = "tau_bench"

    def recognises(self, head: Head) -> bool:
        """Runs with a `traj` of messages, a task and a reward."""
        rows = row_heads(head, "traj")
        return bool(rows) and all({"traj", "reward", "task_id"} <= row.keys() and _spoken(row["traj"]) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read a file of runs.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        rows = Rows(path, "traj")
        source = Source(str(path), self.format, "", "tau-bench")
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        for index, row in enumerate(rows):
            turns = row.value.get("traj")
            listed = turns if isinstance(turns, list) else []
            system = any(item.get("role") == "system" for item in mappings(listed))
            calls = any(item.get("tool_calls") for item in mappings(listed))
            telling = Telling(row, setting(tools=(), system=system, calls=calls))
            for turn, item in enumerate(listed):
                _tell(telling, row, turn, item)
            telling.judge("reward", number(row.value.get("reward")), source="tau-bench")
            yield from _finished(telling, row, source, index)


def _tell(telling: Telling, row: Row, turn: int, item: object) -> None:
    said = message(item) if isinstance(item, dict) else None
    if not said:
        row.odd(turn, "no chat message")
        return
    parts = [_flagged(part) if isinstance(part, RawResult) else part for part in said[0].parts]
    telling.said(turn, replace(said[0], parts=parts))


def _flagged(result: RawResult) -> RawResult:
    return replace(result, is_error=True) if result.text.startswith(_ERROR) else result


def _finished(telling: Telling, row: Row, source: Source, index: int) -> Iterator[Trace]:
    task = row.value.get("task_id")
    names = (str(task), str(row.value.get("trial")), *telling.talk.pool.messages)
    trace = telling.trace(source, *names, index=index, task=None if task is None else str(task))
    if trace is None:
        row.refuse("a run without an answer of the agent")
    else:
        yield trace


def _spoken(value: object) -> bool:
    items = mappings(value)
    return bool(items) and all(string(item.get("role")) in _ROLES for item in items)


@dataclass(frozen=True)
class Tau2Bench:
    """Reader of tau2 results."""

    format: str = "tau2_bench"

    def recognises(self, head: Head) -> bool:
        """Simulations with messages that count their turns, or say who asked for a tool."""
        heads = row_heads(head, "simulations", "messages")
        runs = heads[0].get("simulations", heads) if heads else []
        return bool(mappings(runs)) and all(_is_simulation(run) for run in mappings(runs))

    def read(self, path: Path) -> ReadResult:
        """Read a file of simulations.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        many = any("simulations" in head for head in row_heads(Head(path), "simulations"))
        rows = Rows(path, "messages", within="simulations" if many else "")
        source = Source(str(path), self.format, "", "tau2-bench")
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        model = text(mapping(mapping(rows.envelope.get("info")).get("agent_info")).get("llm"))
        missing = ("system prompt", "tool schemas", "sampling parameters")
        for index, row in enumerate(rows):
            telling = Telling(row, Setting("partial", missing))
            turns = row.value.get("messages")
            for turn, item in enumerate(turns if isinstance(turns, list) else []):
                _simulate(telling, row, turn, item, model)
            reward = mapping(row.value.get("reward_info")).get("reward")
            if reward is not None:
                telling.judge("reward", number(reward), source="tau2-bench")
            yield from _finished(telling, row, source, index)


def _is_simulation(run: Mapping[str, Any]) -> bool:
    items = mappings(run.get("messages"))
    told = any("turn_idx" in item or "requestor" in item for item in items)
    return "task_id" in run and bool({"reward_info", "termination_reason"} & run.keys()) and told and _spoken(items)


def _simulate(telling: Telling, row: Row, turn: int, item: object, model: str | None) -> None:
    """One message of a simulation. A bundle of tool messages stands in `tool_messages`."""
    if not isinstance(item, dict) or string(item.get("role")) not in _ROLES:
        row.odd(turn, "no message of a simulation")
        return
    role, record = item["role"], row.record(turn)
    if role == "tool":
        for one in mappings(item.get("tool_messages")) or [item]:
            _result(telling, row, turn, one)
    elif role == "assistant":
        calls = [_call(call) for call in mappings(item.get("tool_calls"))]
        blocks: list[Block] = [Text(item["content"]), *calls] if text(item.get("content")) else list(calls)
        usage = mapping(item.get("usage"))
        answered = text(mapping(item.get("raw_data")).get("model")) or model
        telling.act(turn, blocks, Action((), model=answered, usage=usage, time=text(item.get("timestamp"))))
    else:
        for call in mappings(item.get("tool_calls")):
            telling.talk.event("user_tool_call", record, written(call))
        said = text(item.get("content"))
        telling.said(turn, Said(role, [Text(said)] if said else []))


def _result(telling: Telling, row: Row, turn: int, item: Mapping[str, Any]) -> None:
    said = written(item.get("content"))
    if item.get("requestor") == "user":
        telling.talk.event("user_tool_result", row.record(turn), said)
        row.use(turn, "event", "tool")
        return
    flag = item.get("error")
    key = text(item.get("id")) or text(item.get("tool_call_id")) or ""
    telling.answer(turn, RawResult(key, "", said, flag if isinstance(flag, bool) else None))


def _call(value: Mapping[str, Any]) -> ToolCall:
    name = text(value.get("name")) or ""
    return ToolCall.from_raw(id=text(value.get("id")) or "", name=name, raw=written(value.get("arguments")))
