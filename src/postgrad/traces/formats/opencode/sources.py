"""The forms in which opencode's sessions lie: a folder of JSON files, a database, an export, a stream of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.traces.formats.opencode.events import read_event
from postgrad.traces.formats.opencode.second import read_second
from postgrad.traces.formats.opencode.sessions import Session, Sessions
from postgrad.traces.formats.opencode.sse import EventStream
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.sources.database import Database
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.folder import Folder
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.raw import start_of

_START = 1 << 10


def read_folder(path: Path) -> tuple[Folder, Sessions]:
    """`storage/{session,message,part}/...json`; what a file is its place tells, and its content confirms."""
    folder, sessions = Folder(path), Sessions()
    for number, file in enumerate(folder.files):
        if not file.name.endswith(".json"):
            folder.entry(file, number)
            folder.use(number, "metadata", "file")
            continue
        value = folder.value(file, number)
        if not isinstance(value, dict):
            if value is not None:
                folder.use(number, "unknown", type(value).__name__)
            continue
        above = Path(file.name).parent.name
        kinds = Path(file.name).parts
        stem = Path(file.name).stem
        if "part" in kinds and isinstance(value.get("type"), str):
            sessions.part(value, number, message=above, id=stem)
        elif "message" in kinds and isinstance(value.get("role"), str):
            sessions.message(value, number, session=above, id=stem)
        elif "session" in kinds and isinstance(value.get("id"), str):
            sessions.session(value["id"], value, number)
            folder.use(number, "metadata", "session")
        else:
            folder.use(number, "metadata", kinds[0])
    return folder, sessions


def read_export(path: Path) -> tuple[JsonDocument, Sessions]:
    """`{info, messages: [{info, parts}]}`, or the list of messages alone."""
    alone = start_of(path, _START).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    at = "" if alone else "messages"
    document, sessions = JsonDocument(path, at), Sessions()
    info = mapping(mapping(document.envelope).get("info"))
    home = string(info.get("id"))
    for item in document.rows(at):
        value = mapping(item.value)
        told = sessions.message(mapping(value.get("info")), item.number, session=home)
        for part in mappings(value.get("parts")):
            sessions.part({**part, "messageID": told.id}, item.number)
    if info:
        sessions.session(home, info)
    if ENVELOPE in document.entries:
        document.use(ENVELOPE, "metadata", "session")
    return document, sessions


def read_stream(path: Path) -> tuple[JsonLines, Sessions]:
    """The server's events, or those of `opencode run --format json`, a line each."""
    lines, sessions = JsonLines(path), Sessions()
    for row in lines.rows():
        read_event(row.number, row.value, sessions, lines)
    return lines, sessions


def read_sse(path: Path) -> tuple[EventStream, Sessions]:
    """The server's events as they came over the wire."""
    lines, sessions = EventStream(path), Sessions()
    for row in lines.rows():
        read_event(row.number, row.value, sessions, lines)
    return lines, sessions


def read_database(path: Path) -> tuple[Database, Sessions]:
    """Tables `session`, `message`, `part`; of a session that the newer `session_message` holds as well, the fuller."""
    sessions, newer = Sessions(), Sessions()
    with Database(path) as database:
        names = {name for (name,) in database.select("select name from sqlite_master where type = 'table'")}
        for table in sorted({"session", "session_v2"} & names):
            for item in database.rows(f"select * from {table}"):
                database.use(item.number, "metadata", table)
                info = _session_info(item.value)
                for gathered in (sessions, newer):
                    gathered.session(item.key, info, item.number)
        if "message" in names:
            for item in database.rows(f"select * from message order by {_order(database, 'message')}"):
                info = _data(database, item.number, item.value)
                home = text(item.value.get("session_id"))
                sessions.message({"sessionID": home, **info, "id": item.key}, item.number)
        if "part" in names:
            for item in database.rows("select * from part order by message_id, id"):
                value = _data(database, item.number, item.value)
                sessions.part({**value, "id": item.key, "messageID": item.value.get("message_id")}, item.number)
        if "session_message" in names:
            for item in database.rows(f"select * from session_message order by {_order(database, 'session_message')}"):
                read_second(item, _data(database, item.number, item.value), newer)
        for table in sorted(names - {"session", "session_v2", "message", "part", "session_message"}):
            if table.startswith(("todo", "permission", "project")):
                for item in database.rows(f"select * from {table}"):
                    database.use(item.number, "metadata", table)
        return database, _fuller(sessions, newer, database)


def _order(database: Database, table: str) -> str:
    columns = {row[1] for row in database.select(f"pragma table_info({table})")}
    return ", ".join([name for name in ("seq", "time_created") if name in columns] + ["id"])


def _session_info(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of sessions in the form of the other sources."""
    data = _json(row.get("data"))
    revert = _json(row.get("revert"))
    info: dict[str, Any] = {"id": row.get("id"), "version": row.get("version"), "parentID": row.get("parent_id")}
    info |= {"time": {"created": row.get("time_created")}, "revert": revert}
    return {name: value for name, value in {**info, **mapping(data)}.items() if value}


def _data(database: Database, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON in a row's column `data`."""
    value = _json(row.get("data"))
    if not isinstance(value, dict):
        database.note("the row's data is no JSON object", done="kept raw, not used", line=number)
        database.use(number, "unreadable", "data")
        return {}
    return value


def _json(value: object) -> Any:
    if not isinstance(value, str | bytes):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(found) else found


def _fuller(sessions: Sessions, newer: Sessions, database: Database) -> Sessions:
    second = {session.id: session for session in newer if session.messages}
    for session in list(sessions):
        other = second.get(session.id)
        if other is not None and other.steps >= session.steps:
            _set_aside(session, database)
            session.messages = other.messages
        elif other is not None:
            _set_aside(other, database)
    for name, other in second.items():
        session = sessions.session(name, other.info)
        session.messages = session.messages or other.messages
    return sessions


def _set_aside(session: Session, database: Database) -> None:
    """The same session in the other generation of tables."""
    for told in session.messages.values():
        for row in {*told.rows, *(row for part in told.parts.values() for row in part.rows)}:
            database.use(row, "duplicate", told.role)
