"""Claude Code session files (JSON lines): `~/.claude/projects/<project>/<session>.jsonl` and its `agent-*.jsonl`.

A file is a tree of rows and can hold several histories: the session, and subagents (side chains). Rows copied by a
resumed session have their old `uuid` and count once. One history is one trace; a step is one answer of the model
(`steps`). Context is reconstructed: the files hold neither system prompt nor tool schemas, and attachments
only as data.

"The same session" means: the same first row (`uuid`), and the same agent. A resumed file that copies the rows of an
older one is therefore the same session, grown; so is a file read again while it is being written.

A result that was too large stands in the row as the cut text that the model saw; where the whole of it went
(`tool-results/`) is an event.

Not covered: the files in `tool-results/` themselves; what `claude -p` prints has a reader of its own (`stream`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.trace import Source, StepKind, Trace
from postgrad.traces.formats.claude_code.common_rows import common_row
from postgrad.traces.formats.claude_code.events import events
from postgrad.traces.formats.claude_code.identity import parent_of, trace_id
from postgrad.traces.formats.claude_code.rows import Row, parse_row
from postgrad.traces.formats.claude_code.steps import History
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines


@dataclass(frozen=True)
class ClaudeCode:
    """Reader of Claude Code sessions."""

    format: str = "claude_code"

    def recognises(self, head: Head) -> bool:
        """A user or assistant row with Claude Code's own identifiers; a file of titles only is one as well.

        Two other agents write look-alikes with another meaning: Qwen Code (`parts` for `content`) and iFlow (an answer
        per call, under ids of its own).
        """
        if head.rows and all(row.get("type") == "summary" and "leafUuid" in row for row in head.rows):
            return True
        rows = [row for row in head.rows if row.get("type") in ("user", "assistant")]
        rows = [row for row in rows if {"uuid", "sessionId", "parentUuid"} <= row.keys()]
        ours = [row for row in rows if isinstance(row.get("message"), dict) and "content" in row["message"]]
        return bool(ours) and not any(str(row["message"].get("id")).startswith("response-") for row in ours)

    def read(self, path: Path) -> ReadResult:
        """Read a session file.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        rows = _unique_rows(lines)
        version = next((row.version for row in rows if row.version), None)
        source = Source(str(path), self.format, lines.sha256, "claude-code", version)
        traces = _traces(rows, lines, source)
        _account(rows, lines)
        rows.clear()  # of a long session they are a good part of the memory
        return lines.result(source, traces)


def _traces(rows: list[Row], lines: JsonLines, source: Source) -> list[Trace]:
    traces: list[Trace] = []
    main: str | None = None
    for history in _histories(rows):
        built = _trace(history, lines, source, index=len(traces), main=main or parent_of(lines.path, history))
        if built is not None:
            traces.append(built)
            main = main or (None if history[0].sidechain else built.id)
    return traces


def _unique_rows(lines: JsonLines) -> list[Row]:
    seen: dict[str, str] = {}

    def common(number: int, line: bytes) -> Row | None:
        return common_row(number, line, seen)

    def parse(number: int, value: dict[str, Any]) -> Row:
        above = value.get("parentUuid")
        if isinstance(above, str):
            value["parentUuid"] = seen.get(above, above)  # the name of a row is kept once
        return parse_row(number, value)

    rows = []
    for row in lines.read(common, parse):
        uuid = row.uuid
        if uuid in seen:
            lines.use(row.number, "duplicate", row.kind)
            continue
        seen[uuid] = uuid
        rows.append(row)
    return rows


def _histories(rows: list[Row]) -> list[list[Row]]:
    """Rows by history, in order of first appearance. Rows outside the tree (queue, titles) go to their session's.

    Rows belong together through parents (also across a compaction); main rows through their session too, subagents'
    rows through their agent.
    """
    if _are_one(rows):
        return [rows] if any(row.role != "ui" for row in rows) else []
    group: dict[str, str] = {}

    def find(key: str) -> str:
        above = group.setdefault(key, key)
        while above != key:
            group[key] = group[above]
            key = above
            above = group[key]
        return key

    side = {row.uuid for row in rows if row.sidechain}
    known = {row.uuid for row in rows}
    for row in rows:
        links = [link for link in (row.parent, row.logical_parent) if link in known and (link in side) == row.sidechain]
        if row.sidechain:
            links += [f"agent {row.agent}"] if row.agent else []
        elif row.session:
            links.append(f"session {row.session}")
        for link in links:
            if (top := find(link)) != (own := find(row.uuid)):
                group[own] = top
    histories: dict[str, list[Row]] = {}
    for row in rows:
        histories.setdefault(find(row.uuid), []).append(row)
    return [history for history in histories.values() if any(row.role != "ui" for row in history)]


def _are_one(rows: Sequence[Row]) -> bool:
    """Whether all are main rows of one session, as mostly."""
    session = rows[0].session if rows else None
    return session is not None and all(row.session == session and not row.sidechain for row in rows)


def _trace(rows: Sequence[Row], lines: JsonLines, source: Source, *, index: int, main: str | None) -> Trace | None:
    """The trace of one history, None if the model never answered in it."""
    start = next(row for row in rows if row.role != "ui")
    history = History(rows, kind=_kind(start), agent=start.agent if start.sidechain else None)
    for number in history.orphans:
        lines.use(number, "orphan_result", "user")
        lines.note("a tool result whose call is not in the file", done="kept, in no step", line=number)
    for number in history.repeated:
        lines.use(number, "duplicate", "user")
    steps = history.steps()
    if not steps:
        return None
    session = next((row.session for row in rows if row.session), None)
    outside = f"claude-session:{session}" if session else None
    return Trace(
        trace_id(source.format, rows),
        source,
        history.pool.messages,
        steps,
        index=index,
        events=events(rows, history),
        parent=(main or outside) if start.sidechain else None,
        result_records=history.result_records,
        orphans=tuple(history.orphans.values()),
    )


def _kind(row: Row) -> StepKind:
    if not row.sidechain:
        return "main"
    return "compaction" if (row.agent or "").startswith("acompact") else "subagent"


def _account(rows: Iterable[Row], lines: JsonLines) -> None:
    """Say for every row what it was used as."""
    unknown: Counter[str] = Counter(row.kind for row in rows if row.role == "unknown")
    lines.use_all((row.number, _use(row), row.kind) for row in rows)
    for kind, count in unknown.items():
        lines.note(f"unknown row type '{kind}', {count} row(s)", done="kept raw, in no step")


def _use(row: Row) -> str:
    if row.role != "user":
        return row.role
    return "result" if row.results else "event" if row.interrupt else "context"
