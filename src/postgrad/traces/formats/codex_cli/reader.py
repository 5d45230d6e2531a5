"""Codex CLI rollouts (JSON lines): `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, old and new, also `.zst`.

A file is one session. Its context is reconstructed: base instructions and the tools that were added at run time are
stored by newer versions, the built-in tools by none. A fork begins with a copy of its parent (`forks`), which is
context and no step. "The same session" means the same session id; the parent's trace id follows from the parent's id.

Not covered: the SQLite state database; `history.jsonl` (prompts only). Calls that the service itself runs (web search,
images) are opaque blocks: their results are not in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Message
from postgrad.core.trace import Source, StepKind
from postgrad.traces.conversation import Conversation
from postgrad.traces.formats.codex_cli.forks import origin
from postgrad.traces.formats.codex_cli.rollout import Rollout
from postgrad.traces.formats.codex_cli.rows import ITEMS, ROW_TYPES, Row, is_bare_meta, parse_row
from postgrad.traces.formats.codex_cli.signs import in_place
from postgrad.traces.formats.shapes.plain import mapping, string, text
from postgrad.traces.formats.shapes.tools import tools as read_tools
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_COPIES = frozenset({"trae"})
"""Providers of other agents that write the same form with a meaning of their own."""


@dataclass(frozen=True)
class CodexCLI:
    """Reader of Codex rollouts."""

    format: str = "codex_cli"

    def recognises(self, head: Head) -> bool:
        """Rows of a type, a payload and a time, of types that only rollouts have; or the oldest form's first line."""
        rows = [row for row in head.rows if isinstance(row.get("payload"), dict) and text(row.get("type")) in ROW_TYPES]
        if rows:
            metas = [row["payload"] for row in rows if row["type"] == "session_meta"]
            if any(text(meta.get("model_provider")) in _COPIES for meta in metas):
                return False
            return all("timestamp" in row for row in rows) and (bool(metas) or any(map(_is_ours, rows)))
        first = next(iter(head.rows), {})
        rest = head.rows[1:]
        return is_bare_meta(first) and all(text(row.get("type")) in ITEMS or "record_type" in row for row in rest)

    def read(self, path: Path) -> ReadResult:
        """Read a rollout.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        rows = lines.parsed(parse_row)
        whose = origin(rows, path)
        source = Source(str(path), self.format, lines.sha256, "codex-cli", text(whose.meta.get("cli_version")))
        rollout = Rollout(rows[whose.begins :], _conversation(whose.meta))
        rollout.copy(rows[: whose.begins])
        rollout.read(rows[whose.begins :])
        _account(rows, rollout.uses, lines)
        parent = content_id([self.format, whose.parent]) if whose.parent else None
        trace = rollout.talk.trace(source, whose.session, parent=parent)
        if trace is None:
            return lines.result(source, [])
        whole = msgspec.structs.replace(in_place(trace, rollout.typed), orphans=tuple(rollout.orphans))
        return lines.result(source, [whole])


def _is_ours(row: Mapping[str, Any]) -> bool:
    """Whether a row without the session's first line is still unmistakable."""
    payload = row["payload"]
    if row["type"] == "response_item":
        return text(payload.get("type")) in ITEMS
    return row["type"] == "turn_context" and "cwd" in payload and "model" in payload


def _conversation(meta: Mapping[str, Any]) -> Conversation:
    """An empty conversation with what the first line says about its contexts."""
    base = meta.get("base_instructions")
    instructions = string(mapping(base).get("text")) or string(base)
    missing = ("tool schemas",) if instructions else ("system prompt", "tool schemas")
    kind, agent = _agent(meta)
    added = meta.get("dynamic_tools")
    added = added["tools"] if isinstance(added, dict) and isinstance(added.get("tools"), list) else added
    talk = Conversation(fidelity="reconstructed", missing=missing, tools=read_tools(added), kind=kind, agent=agent)
    if instructions:
        talk.tell(Message.of("system", instructions))
    return talk


def _agent(meta: Mapping[str, Any]) -> tuple[StepKind, str | None]:
    subagent = mapping(meta.get("source")).get("subagent")
    if subagent is None:
        return "main", None
    spawn = mapping(mapping(subagent).get("thread_spawn"))
    name = text(meta.get("agent_nickname")) or text(spawn.get("agent_nickname")) or text(subagent)
    return "compaction" if subagent == "compact" else "subagent", name


def _account(rows: Iterable[Row], uses: Mapping[int, str], lines: JsonLines) -> None:
    """Say for every row what it was used as."""
    lines.use_all((row.number, uses[row.number], row.kind) for row in rows)
    unknown: Counter[str] = Counter()
    if "orphan_result" in uses.values() or "unknown" in uses.values():
        for row in rows:
            use = uses[row.number]
            unknown[row.kind] += use == "unknown"
            if use == "orphan_result":
                lines.note("a tool result whose call is not in the file", done="kept, in no step", line=row.number)
    for kind, count in unknown.items():
        if count:
            lines.note(f"unknown row type '{kind}', {count} row(s)", done="kept raw, in no step")
