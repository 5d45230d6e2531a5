"""What `claude -p --output-format stream-json` and the Agent SDK put out: messages in order, without a tree.

    {"type": "system", "subtype": "init", "session_id", "tools": [names], "model", ...}
    {"type": "assistant" | "user", "message", "parent_tool_use_id", "session_id", "uuid"}
    {"type": "stream_event", "event"}        pieces of an answer, which comes whole behind them
    {"type": "result", "subtype", "usage", "total_cost_usd", "permission_denials", ...}

A JSON list of the same objects (`--output-format json --verbose`) is read as well. Rows with a `parent_tool_use_id` are
a subagent's. The prompt is not put out (unless it came as a message): then it is said to be missing. Of the tools only
the names are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.trace import Event, Source, Step, Trace
from postgrad.traces.formats.claude_code.events import events
from postgrad.traces.formats.claude_code.rows import Row, parse_row
from postgrad.traces.formats.claude_code.steps import History
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Ledger
from postgrad.traces.sources.raw import start_of

_OURS = frozenset({"apiKeySource", "permissionMode", "claude_code_version", "output_style"})
_SUMMED_UP = ("usage", "total_cost_usd", "num_turns", "is_error", "permission_denials", "subtype")
_SCREEN = frozenset({"stream_event", "control_request", "control_response", "rate_limit_event", "tool_progress"})


@dataclass(frozen=True)
class ClaudeStream:
    """Reader of Claude Code's printed output."""

    format: str = "claude_stream"

    def recognises(self, head: Head) -> bool:
        """An `init` with Claude Code's own fields, or answers of the API's form that name a parent call.

        Amp (sessions "T-...") and Qwen Code copy the form; Cursor's names no tools.
        """
        rows = head.rows or mappings(head.document)
        rows = mappings(head.document) if len(rows) == 1 and isinstance(head.document, list) else rows
        if any("qwen_code_version" in row or string(row.get("session_id")).startswith("T-") for row in rows):
            return False
        return any(_is_init(row) for row in rows) or any(_is_answer(row) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read an output.

        Raises:
            DataError: it cannot be opened.
        """
        ledger, values = _values(path)
        setup: dict[str, Any] = {}
        threads: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        ends: list[tuple[int, Mapping[str, Any]]] = []
        for number, value in values:
            kind = f"{value.get('type')}:{value['subtype']}" if text(value.get("subtype")) else str(value.get("type"))
            if kind == "system:init":
                setup = setup or dict(value)
                ledger.use(number, "metadata", kind)
            elif value.get("type") == "result":
                ends.append((number, value))
                ledger.use(number, "event", kind)
            elif value.get("type") in ("assistant", "user", "system"):
                key = (string(value.get("session_id")), string(value.get("parent_tool_use_id")))
                threads[key].append(_row(number, value, threads[key]))
            else:
                ledger.use(number, "superseded" if string(value.get("type")) in _SCREEN else "unknown", kind)
        source = Source(str(path), self.format, ledger.sha256, "claude-code", text(setup.get("claude_code_version")))
        traces = list(_traces(threads, source, setup, ledger))
        return ledger.result(source, [_with_ends(traces[0], ends), *traces[1:]] if traces else [])


def _is_init(row: Mapping[str, Any]) -> bool:
    named = row.get("type") == "system" and row.get("subtype") == "init" and "session_id" in row
    return named and isinstance(row.get("tools"), list) and bool(_OURS & row.keys())


def _is_answer(row: Mapping[str, Any]) -> bool:
    message = mapping(row.get("message"))
    ours = row.get("type") == "assistant" and {"session_id", "parent_tool_use_id"} <= row.keys()
    return ours and "parentUuid" not in row and string(message.get("id")).startswith("msg_")


def _values(path: Path) -> tuple[JsonDocument | JsonLines, list[tuple[int, dict[str, Any]]]]:
    """The objects with their record numbers, from lines or from one list."""
    start = start_of(path, 1 << 12).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        whole = JsonDocument(path, "")
        items = [(item.number, item.value) for item in whole.rows("")]
        for number, value in items:
            if not isinstance(value, dict):
                whole.use(number, "unknown", type(value).__name__)
        return whole, [(number, value) for number, value in items if isinstance(value, dict)]
    lines = JsonLines(path)
    return lines, [(row.number, row.value) for row in lines.rows()]


def _row(number: int, value: Mapping[str, Any], before: Sequence[Row]) -> Row:
    """A row of the session file's form: each hangs on the one before it in its thread."""
    agent = text(value.get("parent_tool_use_id"))
    tree = {
        "uuid": text(value.get("uuid")) or f"record-{number}",
        "parentUuid": before[-1].uuid if before else None,
        "sessionId": value.get("session_id"),
        "isSidechain": agent is not None,
        "agentId": agent,
        "toolUseResult": value.get("tool_use_result"),
        "isMeta": value.get("isSynthetic"),
    }
    return parse_row(number, {**value, **tree})


def _traces(
    threads: Mapping[tuple[str, str], Sequence[Row]], source: Source, setup: Mapping[str, Any], ledger: Ledger
) -> Iterator[Trace]:
    main: str | None = None
    index = 0
    for (session, call), rows in sorted(threads.items(), key=lambda entry: bool(entry[0][1])):
        history = History(rows, kind="subagent" if call else "main", agent=call or None)
        _account(rows, history, ledger)
        steps = history.steps()
        if not steps:
            continue
        name = content_id([source.format, session or rows[0].uuid, call])
        trace = Trace(
            name,
            source,
            history.pool.messages,
            tuple(_with_setup(step, steps[0], setup) for step in steps),
            index=index,
            events=events(rows, history),
            parent=main if call else None,
            result_records=history.result_records,
            orphans=tuple(history.orphans.values()),
        )
        main = main or (None if call else name)
        index += 1
        yield trace


def _with_setup(step: Step, first: Step, setup: Mapping[str, Any]) -> Step:
    """What `init` says; and that the prompt is missing, where the first answer has nothing before it."""
    request = step.request
    named = setup.get("tools")
    tools = [tool for tool in named if isinstance(tool, str)] if isinstance(named, list) else []
    changes: dict[str, Any] = {"params": {"tool_names": tools}} if tools else {}
    if not first.request.messages:
        changes |= {"fidelity": "partial", "missing": (*request.missing, "user prompt")}
    return msgspec.structs.replace(step, request=msgspec.structs.replace(request, **changes))


def _with_ends(trace: Trace, ends: Iterable[tuple[int, Mapping[str, Any]]]) -> Trace:
    """The sums at the end of a run, as events of the session."""
    steps = len(trace.steps)
    found = [Event("result", steps, number, string(value.get("result")), _sums(value)) for number, value in ends]
    return msgspec.structs.replace(trace, events=(*trace.events, *found))


def _sums(value: Mapping[str, Any]) -> dict[str, Any]:
    """The failure of a run is none of a call: it goes by another name than a result's flag."""
    return {"failed" if name == "is_error" else name: value[name] for name in _SUMMED_UP if name in value}


def _account(rows: Iterable[Row], history: History, ledger: Ledger) -> None:
    """Say for every row what it was used as."""
    for row in rows:
        if row.number in history.orphans:
            ledger.use(row.number, "orphan_result", row.kind)
            ledger.note("a tool result whose call is not there", done="kept, in no step", line=row.number)
        elif row.role in ("step", "event", "ui", "unknown"):
            ledger.use(row.number, row.role, row.kind)
        else:
            ledger.use(row.number, "result" if row.results else "event" if row.interrupt else "context", row.kind)
