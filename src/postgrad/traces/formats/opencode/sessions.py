"""Sessions, messages and parts of opencode, gathered from whatever form they are in.

All forms hold the same three things. A stream of events says them again and again as they grow, so a part is what the
last record says of it; text that came in pieces (`delta`) counts until a whole part replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from postgrad.traces.formats.shapes.plain import mapping, number, string, text

_ONLY_ANSWERS = frozenset({"step-start", "step-finish", "tool", "reasoning"})


@dataclass
class Part:
    """A part of a message: its last state, and the records that it was said in."""

    value: dict[str, Any]
    rows: list[int]

    @property
    def kind(self) -> str:
        """Its type."""
        return string(self.value.get("type")) or "?"


@dataclass
class Told:
    """A message: what is said about it, the records of that, and its parts in order."""

    id: str
    info: dict[str, Any] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """Who said it, "" where that is not known: of a message that is not there its parts tell, if they can."""
        own = any(part.kind in _ONLY_ANSWERS for part in self.parts.values())
        return text(self.info.get("role")) or ("assistant" if own else "")

    @property
    def created(self) -> float | None:
        """When it began, in the source's unit (ms), None where it is not said."""
        return number(mapping(self.info.get("time")).get("created"))

    @property
    def error(self) -> str:
        """The name of the error that ended it, "" if none did."""
        error = self.info.get("error")
        return (string(mapping(error).get("name")) or "error") if error else ""


@dataclass
class Session:
    """A session: its info, and its messages by id."""

    id: str
    info: dict[str, Any] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    messages: dict[str, Told] = field(default_factory=dict)
    notes: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    @property
    def parent(self) -> str | None:
        """The id of the session that began this one."""
        return text(self.info.get("parentID"))

    @property
    def created(self) -> float:
        """When it began, for ordering."""
        return number(mapping(self.info.get("time")).get("created")) or 0.0

    def ordered(self) -> list[Told]:
        """The messages in the order in which they were begun; where no time is said, in the source's order."""
        known = list(self.messages.values())
        if any(told.created is None for told in known):
            return known
        return sorted(known, key=lambda told: told.created or 0.0)

    @property
    def steps(self) -> int:
        """Answers with something in them."""
        return sum(told.role == "assistant" and bool(told.parts) for told in self.messages.values())


class Sessions:
    """Gathers; ids that are not said are made up from the record, so nothing is lost."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._session_of: dict[str, str] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(sorted(self._sessions.values(), key=lambda session: session.created))

    def session(self, id: str, info: Mapping[str, Any] | None = None, row: int | None = None) -> Session:
        """The session of that id, with what a record says about it."""
        session = self._sessions.setdefault(id, Session(id))
        session.info.update(info or {})
        if row is not None:
            session.rows.append(row)
        return session

    def message(self, info: Mapping[str, Any], row: int, *, session: str | None = None, id: str | None = None) -> Told:
        """A message, new or said again."""
        name = text(info.get("id")) or id or f"record-{row}"
        home = text(info.get("sessionID")) or session or self._session_of.get(name) or ""
        told = self._told(name, home)
        told.info.update(info)
        if row not in told.rows:
            told.rows.append(row)
        return told

    def part(self, value: Mapping[str, Any], row: int, *, message: str | None = None, id: str | None = None) -> Part:
        """A part, new or said again: the later state replaces the earlier."""
        told = self._told(text(value.get("messageID")) or message or "", text(value.get("sessionID")))
        name = text(value.get("id")) or id or f"record-{row}-{len(told.parts)}"
        known = told.parts.get(name)
        if known is None:
            known = told.parts[name] = Part(dict(value), [row])
            return known
        known.value = dict(value)
        if row not in known.rows:
            known.rows.append(row)
        return known

    def delta(self, properties: Mapping[str, Any], row: int) -> bool:
        """A piece of a part's text; False if the part is not known."""
        told = self._told(string(properties.get("messageID")), text(properties.get("sessionID")))
        part = told.parts.get(string(properties.get("partID")))
        name, piece = text(properties.get("field")), properties.get("delta")
        if part is None or name is None or not isinstance(piece, str):
            return False
        part.value[name] = string(part.value.get(name)) + piece
        part.rows.append(row)
        return True

    def remove(self, *, message: str, part: str | None = None) -> Told | Part | None:
        """Take out a message, or one of its parts, that the application took back."""
        session = self._sessions.get(self._session_of.get(message, ""))
        if session is None or message not in session.messages:
            return None
        if part is None:
            return session.messages.pop(message)
        return session.messages[message].parts.pop(part, None)

    def _told(self, name: str, home: str | None) -> Told:
        known = self._session_of.get(name)
        at = home if home else known if known is not None else ""
        if known is not None and known != at:
            moved = self._sessions[known].messages.pop(name, None)
            if moved is not None:
                self.session(at).messages[name] = moved
            if not self._sessions[known].messages and not self._sessions[known].rows:
                del self._sessions[known]
        self._session_of[name] = at
        return self.session(at).messages.setdefault(name, Told(name))
