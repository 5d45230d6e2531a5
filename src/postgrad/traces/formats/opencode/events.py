"""One event of opencode's server, in any wrapping: bare, under `event` or `payload`, or of `opencode run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postgrad.traces.formats.opencode.sessions import Sessions, Told
from postgrad.traces.formats.shapes.plain import mapping, string, text, written
from postgrad.traces.sources.ledger import Ledger

_RUN_TYPES = frozenset({"text", "reasoning", "tool_use", "step_start", "step_finish"})
_ASKED = ("permission", "patterns", "response", "reply")
_ASKED = ("permission", "patterns", "response", "reply")
_SCREEN = ("session.status", "session.idle", "session.diff", "session.updated", "session.created", "session.deleted")


def unwrapped(row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Type and properties of the event in a row; the type is "" when there is none."""
    inner = next((row[name] for name in ("event", "payload") if isinstance(row.get(name), dict)), row)
    if isinstance(inner.get("properties"), dict):
        return string(inner.get("type")), inner["properties"]
    if string(row.get("type")) in _RUN_TYPES and "messageID" in mapping(row.get("part")):
        return "message.part.updated", {"part": {"sessionID": row.get("sessionID"), **row["part"]}}
    if row.get("type") == "error" and "sessionID" in row:
        return "session.error", dict(row)
    return "", {}


def is_ours(row: Mapping[str, Any]) -> bool:
    """Whether a row can only be an event of opencode."""
    kind, properties = unwrapped(row)
    if kind == "message.part.updated":
        return {"messageID", "type"} <= mapping(properties.get("part")).keys()
    return kind == "message.updated" and {"id", "sessionID", "role"} <= mapping(properties.get("info")).keys()


def read_event(number: int, row: Mapping[str, Any], sessions: Sessions, ledger: Ledger) -> None:
    """Take in one event and, where it is no message or part, say what it was used as."""
    kind, properties = unwrapped(row)
    info, part = mapping(properties.get("info")), mapping(properties.get("part"))
    if kind == "message.updated":
        sessions.message(info, number)
    elif kind == "message.part.updated":
        sessions.part(part, number)
        if isinstance(properties.get("delta"), str) and not text(part.get("text")):
            sessions.delta({**part, "partID": part.get("id"), "field": "text", "delta": properties["delta"]}, number)
    elif kind == "message.part.delta":
        if not sessions.delta(properties, number):
            ledger.use(number, "orphan_delta", kind)
            ledger.note("a piece of a part that is not in the file", done="kept raw, not used", line=number)
    elif kind in ("message.removed", "message.part.removed"):
        _removed(number, kind, properties, sessions, ledger)
    else:
        _other(number, kind, properties, sessions, ledger)


def _removed(number: int, kind: str, properties: Mapping[str, Any], sessions: Sessions, ledger: Ledger) -> None:
    ledger.use(number, "event", kind)
    part = text(properties.get("partID")) if kind == "message.part.removed" else None
    gone = sessions.remove(message=string(properties.get("messageID")), part=part)
    rows = [] if gone is None else list(gone.rows)
    rows += [row for part in gone.parts.values() for row in part.rows] if isinstance(gone, Told) else []
    for row in rows:
        ledger.use(row, "removed", kind)


def _other(number: int, kind: str, properties: Mapping[str, Any], sessions: Sessions, ledger: Ledger) -> None:
    info = mapping(properties.get("info"))
    home = text(properties.get("sessionID")) or text(info.get("id")) or ""
    if kind in ("session.created", "session.updated") and home:
        sessions.session(home, info, number)
    if kind == "session.error":
        error = mapping(properties.get("error"))
        stopped = error.get("name") == "MessageAbortedError"
        words = string(mapping(error.get("data")).get("message")) or string(error.get("name"))
        data = {"text": words}
        sessions.session(home).notes.append((number, "interrupt" if stopped else "api_error", data))
        ledger.use(number, "event", kind)
    elif kind.startswith("permission."):
        asked = {name: properties[name] for name in _ASKED if name in properties}
        call = text(mapping(properties.get("tool")).get("callID")) or text(properties.get("callID"))
        note = {**asked, **({"call": call} if call else {}), "text": written(first_reply(properties))}
        sessions.session(home).notes.append((number, "approval", note))
        ledger.use(number, "event", kind)
    elif kind in _SCREEN or kind.startswith(("session.", "server.", "file.", "lsp.", "todo.", "tui.", "installation.")):
        ledger.use(number, "metadata" if kind in ("session.created", "session.updated") else "ui", kind)
    else:
        ledger.use(number, "unknown", kind or "?")
        ledger.note(f"unknown event type '{kind}'", done="kept raw, not used", line=number)


def first_reply(properties: Mapping[str, Any]) -> object:
    """What was answered to a request for permission, None for the request itself."""
    return properties.get("reply", properties.get("response"))
