"""A Gemini CLI log of JSON lines, folded to what happened: messages said, messages taken back, histories replaced.

A line is the session's meta data, a whole message (an id that was there before replaces it), `{"$set": {...}}` (with
`messages` in it: the history is replaced, by a compression or because results were masked) or `{"$rewindTo": id}`
(that message and all behind it are taken back; an id that is not there takes everything back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from postgrad.traces.formats.shapes.plain import mapping, mappings, text
from postgrad.traces.sources.ledger import Ledger

_DONE = frozenset({"success", "error", "cancelled"})


@dataclass
class Entry:
    """A message: the records that brought it, its last state, and the record in which each of its calls ended."""

    id: str
    rows: list[int]
    value: Mapping[str, Any]
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The record that it first stood in: its name while the conversation is built."""
        return self.rows[0]

    def replace(self, row: int, value: Mapping[str, Any]) -> None:
        """The message as a later record has it."""
        if row not in self.rows:
            self.rows.append(row)
        self.value = value
        for call in mappings(value.get("toolCalls")):
            if text(call.get("status")) in _DONE:
                self.ends.setdefault(text(call.get("id")) or "", row)


@dataclass(frozen=True)
class Said:
    """A message came."""

    entry: Entry


@dataclass(frozen=True)
class TakenBack:
    """Messages were taken back."""

    row: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Replaced:
    """The history was replaced by these messages in these states; `new` names those that were not there before."""

    row: int
    messages: tuple[tuple[Entry, Mapping[str, Any]], ...]
    new: frozenset[str]
    dropped: bool


Change = Said | TakenBack | Replaced


class Fold:
    """The log so far: `meta` is the session's data, `changes` what happened to its messages, in order."""

    def __init__(self, ledger: Ledger) -> None:
        self.meta: dict[str, Any] = {}
        self.changes: list[Change] = []
        self._ledger = ledger
        self._live: list[Entry] = []
        self._by_id: dict[str, Entry] = {}

    def line(self, row: int, value: Mapping[str, Any]) -> None:
        """Take in one record."""
        change = value.get("$set")
        if "$rewindTo" in value:
            self._rewind(row, value["$rewindTo"])
            self._ledger.use(row, "event", "$rewindTo")
        elif isinstance(change, dict):
            self._set(row, change)
        elif isinstance(value.get("id"), str):
            self.message(row, value)
        elif "sessionId" in value:
            self.meta |= {name: part for name, part in value.items() if name != "messages"}
            self._ledger.use(row, "metadata", "session")
            for message in mappings(value.get("messages")):
                self.message(row, message)
        else:
            self._ledger.use(row, "unknown", "?")
            self._ledger.note("a record of an unknown kind", done="kept raw, not used", line=row)

    def message(self, row: int, value: Mapping[str, Any]) -> None:
        """A message, new or again."""
        name = text(value.get("id")) or f"record-{row}-{len(self._live)}"
        known = self._by_id.get(name)
        if known is not None:
            known.replace(row, value)
            return
        entry = self._by_id[name] = Entry(name, [row], value)
        entry.replace(row, value)
        self._live.append(entry)
        self.changes.append(Said(entry))

    def _rewind(self, row: int, target: object) -> None:
        place = next((place for place, entry in enumerate(self._live) if entry.id == target), 0)
        gone = tuple(self._live[place:])
        del self._live[place:]
        for entry in gone:
            del self._by_id[entry.id]
        self.changes.append(TakenBack(row, gone))

    def _set(self, row: int, change: Mapping[str, Any]) -> None:
        self.meta |= {name: part for name, part in change.items() if name != "messages"}
        messages = change.get("messages")
        if not isinstance(messages, list):
            self._ledger.use(row, "metadata", "$set")
            return
        if not self._live:
            for message in mappings(messages):
                self.message(row, message)
            return
        before = {entry.id: entry for entry in self._live}
        after = [
            (self._known(before, row, place, message), message) for place, message in enumerate(mappings(messages))
        ]
        new = frozenset(entry.id for entry, _ in after if entry.id not in before)
        dropped = bool(before.keys() - {entry.id for entry, _ in after})
        self._by_id = {entry.id: entry for entry, _ in after}
        self._live = list(self._by_id.values())
        self.changes.append(Replaced(row, tuple(after), new, dropped))
        self._ledger.use(row, "event", "$set messages")

    def _known(self, before: Mapping[str, Entry], row: int, place: int, value: Mapping[str, Any]) -> Entry:
        name = text(value.get("id")) or f"record-{row}-{place}"
        entry = before.get(name) or Entry(name, [row], value)
        if name not in before:
            entry.replace(row, value)
        return entry


def document(messages: Iterable[tuple[int, Any]], envelope: object, ledger: Ledger) -> Fold:
    """A chat that is one JSON document, as a log."""
    fold = Fold(ledger)
    fold.meta = {name: part for name, part in mapping(envelope).items() if name != "messages"}
    for number, value in messages:
        if isinstance(value, dict):
            fold.message(number, value)
        else:
            ledger.use(number, "unknown", type(value).__name__)
            ledger.note("a message that is no object", done="kept raw, not used", line=number)
    return fold
