"""`JsonDocument`: a source that is one JSON value; its records are the items of the lists that a reader names.

The value is read in one pass that knows where every item stands, so records have true offsets and lengths. Whatever
is not in those lists is the envelope, a record of its own with the number -1. A document that stops in the middle is
read to its last whole item: the torn item is a record too ("truncated"), and so is what would have followed.

    document = JsonDocument(path, "history", "events")   # the lists at these dotted keys; "" is a list at the top
    for row in document.rows("history"): ...             # Row(number, value), numbered from `first` through all lists
    document.envelope["info"]                            # the document without those lists

A list may also be an object whose members are the records (`Item.key` is then the member's name). A star among the
keys stands for every item of a list on the way: "batches.*.scopeSpans.*.spans" (`Item.place` has the numbers). The
whole text is held in memory. NaN, lone surrogates, duplicate keys and big integers pass as `json` reads them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.errors import DataError
from postgrad.traces.sources.archive import is_bomb
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw

ENVELOPE = -1
"""The record number of everything outside the lists."""
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Item:
    """A record of a document; `key` is its member name in an object of records, `place` the keys of its list."""

    number: int
    value: Any
    key: str = ""
    place: str = ""


class JsonDocument(Ledger):
    """One pass over a JSON document.

    Args:
        path: the source.
        lists: dotted keys of the lists (or objects) whose items are records; a key that is not there gives none.
        first: number of the first record.

    Raises:
        DataError: the source cannot be opened, or does not begin with a JSON object or list.
    """

    def __init__(self, path: Path, *lists: str, first: int = 0) -> None:
        super().__init__(path)
        data = _bytes(self)
        self.size = len(data)
        self.sha256 = hashlib.sha256(data).hexdigest()
        text = data.decode("utf-8", "surrogateescape")
        scan = _Scan(text.removeprefix("\ufeff"), frozenset(lists))
        try:
            self.envelope: Any = scan.value(scan.skip(0), "")[0]
        except _TornError:
            self.envelope = scan.recovered
        if self.envelope is None:
            raise DataError("not a JSON document", got=str(path), expected="a JSON object or list")
        self._items = self._enter(scan, first, data)
        self.truncated = scan.torn is not None
        if self.truncated:
            done = f"read the {len(scan.found)} whole records before it"
            self.note("the document stops in the middle", done=done, line=first + len(scan.found))

    def rows(self, at: str = "") -> Iterator[Item]:
        """The records of one of the lists, in order."""
        yield from self._items.get(at, ())

    def _enter(self, scan: _Scan, first: int, data: bytes) -> dict[str, list[Item]]:
        items: dict[str, list[Item]] = {}
        place = _Places(scan.text, len(data))
        for number, (at, key, value, start, stop) in enumerate(scan.found, first):
            offset, end = place.of(start), place.of(stop)
            self.enter(Entry(number, offset, end - offset, hashlib.sha256(data[offset:end]).hexdigest()))
            items.setdefault(_pattern(at), []).append(Item(number, value, key, at))
        if scan.torn is not None:
            offset = place.of(scan.torn)
            torn = hashlib.sha256(data[offset:]).hexdigest()
            self.enter(Entry(first + len(scan.found), offset, len(data) - offset, torn, "truncated"))
        if isinstance(self.envelope, dict):
            self.enter(Entry(ENVELOPE, 0, len(data), self.sha256))
        return items


def _bytes(ledger: Ledger) -> bytes:
    """The source's bytes, as far as its container is whole."""
    data = bytearray()
    with open_raw(ledger.path) as stream:
        try:
            while block := stream.read(1 << 20):
                data += block
                _refuse_bomb(ledger.path, len(data))
        except STREAM_FAULTS as error:
            ledger.note(f"the compressed data is broken: {error}", done=f"read the {len(data)} bytes before it")
        except OSError as error:
            raise DataError(f"cannot read the file: {error.strerror}", got=str(ledger.path)) from None
    return bytes(data)


def _refuse_bomb(path: Path, unpacked: int) -> None:
    """A packed file that gives absurdly more than it is would fill the memory: all of a document is held there."""
    if path.is_file() and is_bomb(packed=path.stat().st_size, unpacked=unpacked):
        raise DataError(f"the file unpacks to over {unpacked >> 20} MB", got=str(path), do="unpack it first")


def _pattern(place: str) -> str:
    """The name under which a reader asked for the list at `place`."""
    return ".".join("*" if key.isdigit() else key for key in place.split("."))


class _TornError(Exception):
    """The text ends, or stops being JSON, before the document does."""


@dataclass
class _Scan:
    """Walks the objects on the way to the lists; everything else is read at once by `json`."""

    text: str
    lists: frozenset[str]
    found: list[tuple[str, str, Any, int, int]] = field(default_factory=list)
    torn: int | None = None
    recovered: Any = None

    def skip(self, at: int) -> int:
        """The first place from `at` on that is no white space."""
        found = _SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def value(self, at: int, path: str) -> tuple[Any, int]:
        """The value at `at` without its records, and where it ends."""
        opening = self.text[at : at + 1]
        wanted = _pattern(path) in self.lists
        below = f"{_pattern(path)}." if path else ""
        if opening == "[" and wanted:
            return [], self._list(at, path)
        if opening == "{" and (wanted or not path or any(name.startswith(below) for name in self.lists)):
            return self._object(at, path, records=wanted)
        if opening == "[" and any(name.startswith(f"{below}*") for name in self.lists):
            return self._items(at, path)
        if not path and opening not in ("{", "["):
            raise _TornError
        return self._decode(at)

    def _decode(self, at: int) -> tuple[Any, int]:
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except (ValueError, RecursionError):
            self.torn = at
            raise _TornError from None
        return (None if too_deep(value) else value), end

    def _list(self, at: int, path: str) -> int:
        if not path:
            self.recovered = []
        at = self.skip(at + 1)
        while not self.text.startswith("]", at):
            value, end = self._decode(at)
            self.found.append((path, "", value, at, end))
            at = self._after(end, "]")
        return at + 1

    def _items(self, at: int, path: str) -> tuple[list[Any], int]:
        """A list on the way to other lists."""
        items: list[Any] = []
        if not path:
            self.recovered = items
        at = self.skip(at + 1)
        while not self.text.startswith("]", at):
            item, end = self.value(at, f"{path}.{len(items)}" if path else str(len(items)))
            items.append(item)
            at = self._after(end, "]")
        return items, at + 1

    def _object(self, at: int, path: str, *, records: bool) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        if not path:
            self.recovered = members
        at = self.skip(at + 1)
        while not self.text.startswith("}", at):
            key, end = self._decode(at)
            end = self.skip(end)
            if not isinstance(key, str) or not self.text.startswith(":", end):
                self.torn = at
                raise _TornError
            start = self.skip(end + 1)
            if records:
                value, end = self._decode(start)
                self.found.append((path, key, value, start, end))
            else:
                members[key], end = self.value(start, f"{path}.{key}" if path else key)
            at = self._after(end, "}")
        return members, at + 1

    def _after(self, end: int, closing: str) -> int:
        """The start of the next item, or the closing bracket."""
        at = self.skip(end)
        if self.text.startswith(",", at):
            return self.skip(at + 1)
        if not self.text.startswith(closing, at):
            self.torn = at
            raise _TornError
        return at


class _Places:
    """From places in the text to places in the bytes; asked in growing order."""

    def __init__(self, text: str, size: int) -> None:
        self._text, self._ascii = text, len(text) == size
        self._at = 0
        self._bytes = size - len(text.encode("utf-8", "surrogateescape")) if not self._ascii else 0

    def of(self, at: int) -> int:
        if self._ascii:
            return at
        self._bytes += len(self._text[self._at : at].encode("utf-8", "surrogateescape"))
        self._at = at
        return self._bytes
