"""Sources that are neither JSON lines nor one document: objects one after the other, and tables."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

from postgrad.core.canonical import canonical_json, too_deep
from postgrad.traces.records import RecordStatus
from postgrad.traces.sources.document import Item
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw

_DECODER = json.JSONDecoder(strict=False)
_LONGEST = 1 << 30  # characters of a field of a table


class Concatenated(Ledger):
    """Indented JSON objects one after the other, numbered from 0; one that is not whole is said and kept raw."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = _bytes(self)
        self.size, self.sha256 = len(self._data), hashlib.sha256(self._data).hexdigest()

    def items(self) -> Iterator[Item]:
        """Every object, in order."""
        text = self._data.decode("utf-8", "surrogateescape")
        at, offset, last = text.find("{"), 0, 0
        while at >= 0:
            offset += _size(text[last:at])
            number = len(self.entries)
            try:
                value, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                value, end = None, _next_object(text, at)
            length = _size(text[at:end])
            digest = hashlib.sha256(self._data[offset : offset + length]).hexdigest()
            whole = isinstance(value, dict) and not too_deep(value)
            status: RecordStatus = "ok" if whole else "truncated" if end == len(text) else "bad_json"
            self.enter(Entry(number, offset, length, digest, status))
            if whole:
                yield Item(number, value)
            else:
                self.note("an object that is not whole", done="kept raw, not used", line=number)
            offset, last, at = offset + length, end, text.find("{", end)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _next_object(text: str, at: int) -> int:
    """Where the next object at the margin begins; the end where there is none."""
    found = text.find("\n{", at + 1)
    return len(text) if found < 0 else found + 1


class Table(Ledger):
    """Comma-separated rows below a header, numbered from 1; a row has no place of its own (offset -1)."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = _bytes(self)
        self.size, self.sha256 = len(self._data), hashlib.sha256(self._data).hexdigest()

    def items(self) -> Iterator[Item]:
        """Every row as an object by column; empty fields are left out."""
        csv.field_size_limit(_LONGEST)
        rows = csv.DictReader(io.StringIO(self._data.decode("utf-8-sig", "surrogateescape"), newline=""))
        try:
            for number, row in enumerate(rows, 1):
                plain = {str(key): value for key, value in row.items() if value not in (None, "")}
                shown = canonical_json(plain).encode("utf-8", "surrogatepass")
                self.enter(Entry(number, -1, len(shown), hashlib.sha256(shown).hexdigest()))
                yield Item(number, plain)
        except csv.Error as error:
            self.note(f"the table is broken: {error}", done=f"read the {len(self.entries)} rows before it")


def _bytes(ledger: Ledger) -> bytes:
    """A source's bytes, as far as its container is whole."""
    data = bytearray()
    with open_raw(ledger.path) as stream:
        try:
            while block := stream.read(1 << 20):
                data += block
        except STREAM_FAULTS as error:
            ledger.note(f"the compressed data is broken: {error}", done=f"read the {len(data)} bytes before it")
    return bytes(data)
