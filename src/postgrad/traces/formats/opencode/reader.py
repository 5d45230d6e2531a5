"""opencode: the folder `storage`, the database `opencode.db`, `opencode export`, and the events of its server.

A session is one trace, named by its id: the generations of the store (folder, tables, newer tables), an export and a
recorded stream give the same trace. A forked session begins with copies of its parent's messages (`copies`); a session
that a tool began has that session as its parent. Context is reconstructed as the application builds it; system prompt
(but for the oldest versions) and tool schemas are not stored.

Not covered: shared sessions (a web address); what the user ran in the shell of the newest version is told in words of
ours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.trace import Event, Source, Trace
from postgrad.traces.formats.opencode.copies import copies
from postgrad.traces.formats.opencode.events import is_ours
from postgrad.traces.formats.opencode.play import Play
from postgrad.traces.formats.opencode.sessions import Session, Sessions
from postgrad.traces.formats.opencode.sources import read_database, read_export, read_folder, read_sse, read_stream
from postgrad.traces.formats.opencode.sse import EventStream, events_in
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.database import Database
from postgrad.traces.sources.document import JsonDocument
from postgrad.traces.sources.folder import Folder
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Ledger
from postgrad.traces.sources.raw import SQLITE, open_raw

Books = Folder | Database | JsonDocument | JsonLines | EventStream
_TABLES = ({"session", "message", "part"}, {"session", "session_message"}, {"session_v2", "session_message"})


@dataclass(frozen=True)
class OpenCode:
    """Reader of opencode's sessions."""

    format: str = "opencode"

    def recognises(self, head: Head) -> bool:
        """The folders, the tables, the form of an export, or events of messages and their parts."""
        if head.path.is_dir():
            return _is_storage(head.path)
        if head.tables:
            return any(names <= head.tables for names in _TABLES) and _has_columns(head.path, head.tables)
        if any(is_ours(row) for row in [*head.rows, *events_in(head.text)]):
            return True
        return _is_export(head.document) or _is_torn_export(head)

    def read(self, path: Path) -> ReadResult:
        """Read a source.

        Raises:
            DataError: it cannot be opened.
        """
        ledger, sessions = _form(path)(path)
        source = Source(str(path), self.format, ledger.sha256, "opencode", _version(sessions))
        return ledger.result(source, _traces(sessions, source, ledger))


def _is_storage(path: Path) -> bool:
    """`storage` itself: messages and parts in folders of their owners' ids."""
    held = {place.name for place in path.iterdir() if place.is_dir()}
    if not {"message", "part"} <= held:
        return "session" in held and _is_storage(path / "session")
    return any((path / "message").glob("*/*.json")) or any((path / "part").glob("*/*.json"))


def _is_export(document: object) -> bool:
    messages = mappings(mapping(document).get("messages") if isinstance(document, dict) else document)
    known = [mapping(message.get("info")) for message in messages if isinstance(message.get("parts"), list)]
    if isinstance(document, dict) and not isinstance(document.get("info"), dict):
        return False
    return bool(known) and all({"id", "role"} <= info.keys() for info in known)


def _has_columns(path: Path, tables: frozenset[str]) -> bool:
    """Whether messages and parts are JSON in a column `data`, as in opencode and not in others' tables of that name."""
    with Database(path) as database:
        for table, owner in (("message", "session_id"), ("part", "message_id"), ("session_message", "session_id")):
            columns = {row[1] for row in database.select(f"pragma table_info({table})")}
            if table in tables and not {"id", owner, "data"} <= columns:
                return False
    return True


def _is_torn_export(head: Head) -> bool:
    """Whether an export stops in the middle of its messages: the session is whole, and parts follow."""
    info = mapping(mapping(head.document).get("info"))
    named = {"id", "version", "directory"} <= info.keys()
    return named and '"messages"' in head.text and '"parts"' in head.text


def _form(path: Path) -> Callable[[Path], tuple[Books, Sessions]]:
    if path.is_dir():
        return read_folder
    with open_raw(path) as stream:
        if stream.read(len(SQLITE)) == SQLITE:
            return read_database
    head = Head(path)
    if any(is_ours(row) for row in events_in(head.text)):
        return read_sse
    events = any(is_ours(row) for row in head.rows)
    return read_export if not events and (_is_export(head.document) or _is_torn_export(head)) else read_stream


def _version(sessions: Sessions) -> str | None:
    return next((version for session in sessions if (version := text(session.info.get("version")))), None)


def _traces(sessions: Sessions, source: Source, ledger: Ledger) -> list[Trace]:
    """A trace a session, and a word on every record."""
    taken_over = copies(sessions)
    traces: list[Trace] = []
    for session in sessions:
        parent, copied = taken_over.get(session.id, (session.parent, frozenset()))
        play = Play(session, copied)
        above = content_id([source.format, parent]) if parent else None
        trace = play.trace(source, name=[session.id or None], index=len(traces), parent=above)
        for row in session.rows:
            ledger.use(row, "metadata", "session")
        _account(session, play, ledger)
        if trace is not None:
            traces.append(_with_notes(trace, session))
    return traces


def _account(session: Session, play: Play, ledger: Ledger) -> None:
    for told in session.messages.values():
        for part in told.parts.values():
            for row in part.rows:
                ledger.use(row, play.uses[row], f"part:{part.kind}")
                if play.uses[row] == "unknown":
                    ledger.note(f"unknown part type '{part.kind}'", done="kept as an opaque block", line=row)
                elif play.uses[row] == "orphan_part":
                    ledger.note("a part whose message is not in the source", done="kept raw, in no step", line=row)
        for row in told.rows:
            ledger.use(row, play.uses[row], f"message:{told.role}")


def _with_notes(trace: Trace, session: Session) -> Trace:
    """The events that the server told beside the messages, in their place. A stop is told twice: it counts once."""
    firsts = sorted(min(step.records) for step in trace.steps if step.records)
    notes = [
        Event(kind, bisect_left(firsts, row), row, string(data.get("text")), _without_text(data))
        for row, kind, data in session.notes
    ]
    told = {(event.kind, event.before_step) for event in notes if event.kind in ("interrupt", "api_error")}
    events = [event for event in trace.events if (event.kind, event.before_step) not in told]
    return msgspec.structs.replace(trace, events=tuple(sorted([*events, *notes], key=lambda event: event.before_step)))


def _without_text(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "text"}
