"""Gemini CLI chats: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.json` (one document) or `.jsonl` (a log).

A file is one session; a subagent has a file of its own in a folder with its parent's id. A chat that was migrated from
`.json` to `.jsonl` stays on disk in both forms: they have the session id in common, and so the trace id. Context is
reconstructed: neither system prompt nor tool schemas are stored, thoughts are summaries, long outputs are cut.

Not covered: `logs.json` (prompts only) and `checkpoint-*.json` (a history without times, models or states).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Conversation
from postgrad.traces.formats.gemini_cli.fold import Entry, Fold, document
from postgrad.traces.formats.gemini_cli.play import Player
from postgrad.traces.formats.shapes.plain import mapping, mappings, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources import jsonl
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.ledger import Ledger

_OTHERS = frozenset({"qwen", "assistant", "model", "iflow"})
"""Message types of agents that took over the form and not the words."""


@dataclass(frozen=True)
class GeminiCLI:
    """Reader of Gemini CLI chats."""

    format: str = "gemini_cli"

    def recognises(self, head: Head) -> bool:
        """A session with a project's hash, and messages of the types that Gemini CLI writes."""
        first = head.rows[0] if head.rows else mapping(head.document)
        if not {"sessionId", "projectHash"} <= first.keys():
            return any("$rewindTo" in row for row in head.rows) or _is_log(head.rows)
        messages = [*mappings(first.get("messages")), *head.rows[1:]]
        messages += [message for row in head.rows for message in mappings(mapping(row.get("$set")).get("messages"))]
        types = {text(message.get("type")) for message in messages if "type" in message}
        # A document that is cut off in its messages shows none of them.
        listed = isinstance(first.get("messages"), list) or len(head.rows) > 0 or "startTime" in first
        return listed and not types & _OTHERS and (not types or bool(types & {"user", "gemini", "info"}))

    def read(self, path: Path) -> ReadResult:
        """Read a chat.

        Raises:
            DataError: it cannot be opened.
        """
        return _read_document(path, self.format) if _is_document(path) else _read_log(path, self.format)


def _is_log(rows: list[dict[str, Any]]) -> bool:
    """Whether it is a log whose first line is torn."""
    answers = [row for row in rows if row.get("type") == "gemini"]
    return bool(answers) and all({"id", "timestamp", "content"} <= row.keys() for row in answers)


def _is_document(path: Path) -> bool:
    """Whether it is one JSON value with all messages in it; a log's first line is an object without them."""
    first = next(iter(jsonl.head(path, rows=1, limit=1)), None)
    if first is not None:
        return "messages" in first
    try:
        whole = JsonDocument(path, "messages")
        return "messages" in mapping(whole.envelope) or any(whole.rows("messages"))
    except DataError:
        return False


def _read_log(path: Path, format: str) -> ReadResult:
    lines = jsonl.JsonLines(path)
    fold = Fold(lines)
    for row in lines.rows():
        fold.line(row.number, row.value)
    source = Source(str(path), format, lines.sha256, "gemini-cli")
    return lines.result(source, _traces(fold, lines, source))


def _read_document(path: Path, format: str) -> ReadResult:
    whole = JsonDocument(path, "messages")
    messages = [(item.number, item.value) for item in whole.rows("messages")]
    fold = document(messages, whole.envelope, whole)
    if ENVELOPE in whole.entries:
        whole.use(ENVELOPE, "metadata", "session")
    source = Source(str(path), format, whole.sha256, "gemini-cli")
    return whole.result(source, _traces(fold, whole, source))


def _traces(fold: Fold, ledger: Ledger, source: Source) -> list[Trace]:
    """The one trace, none if the model never answered."""
    subagent = fold.meta.get("kind") == "subagent"
    talk = Conversation(
        fidelity="reconstructed",
        missing=("system prompt", "tool schemas"),
        kind="subagent" if subagent else "main",
    )
    player = Player(talk, ledger)
    player.play(fold.changes)
    session = text(fold.meta.get("sessionId"))
    parent = content_id([source.format, Path(source.path).parent.name]) if subagent else None
    trace = talk.trace(source, session, parent=parent)
    return [] if trace is None else [_with_all_records(trace, player.entries)]


def _with_all_records(trace: Trace, entries: Mapping[int, Entry]) -> Trace:
    """While it was built a step was named by its first record; it came in all of them."""
    steps = (msgspec.structs.replace(step, records=tuple(entries[step.records[0]].rows)) for step in trace.steps)
    return msgspec.structs.replace(trace, steps=tuple(steps))
