"""`Rows`: a file of conversations, one a row, whatever the file is: JSON lines, a JSON list, one JSON object, Parquet.

    rows = Rows(path, "conversations")
    rows.result(source, (trace_of(row) for row in rows))    # row.value["conversations"] is its list of turns

Records are the rows: lines count from 1, items of a list and rows of a table from 0. A file that is one object is one
conversation, and there every turn is a record of its own, counted from 0. Parquet files are read a batch at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from postgrad.core.canonical import canonical_json
from postgrad.core.errors import DataError
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.datasets.list_lines import ListLines, first_lists
from postgrad.traces.formats.shapes.plain import opened
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, Item, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import start_of, whole

PARQUET = b"PAR1"
_LINES = frozenset({".jsonl", ".ndjson"})
_LISTS: WeakKeyDictionary[Head, list[Any]] = WeakKeyDictionary()


class Books(Protocol):
    """Where it is written down what a record was used as; a ledger is one."""

    def use(self, number: int, used_as: str, row_kind: str) -> None:
        """Say what a record was used as."""
        ...

    def note(self, what: str, *, done: str, line: int | None = None) -> None:
        """Add a diagnostic."""
        ...


@dataclass(frozen=True)
class Row:
    """One conversation. `records` has one number for each turn, or a single one for all of them.

    `beside` has the numbers of the items of further lists, by the list's name.
    """

    value: dict[str, Any]
    records: tuple[int, ...]
    books: Books
    beside: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def record(self, turn: int) -> int:
        """The record that turn number `turn` stands in."""
        return self.records[turn] if len(self.records) > 1 else self.records[0]

    def use(self, turn: int, used_as: str, kind: str) -> None:
        """Say what a turn was used as."""
        self.books.use(self.record(turn), used_as, kind)

    def odd(self, turn: int, what: str) -> None:
        """A turn that cannot be read."""
        self.use(turn, "unknown", "turn")
        self.books.note(what, done="kept raw, in no step", line=self.record(turn))

    def settle(self, kind: str) -> None:
        """Account for the items of further lists, and for a row that no turn spoke for."""
        for number in (*self.records, *(number for numbers in self.beside.values() for number in numbers)):
            self.books.use(number, "context", kind)

    def refuse(self, why: str) -> None:
        """A row that gave no trace."""
        for number in self.records:
            self.books.use(number, "unknown", "object")
        self.books.note(why, done="kept raw, in no step", line=self.records[0])


class Rows:
    """The conversations of the file at `path`.

    Args:
        path: the file.
        keys: the names that the list of turns can have in a file that is one object and one conversation.
            The items of further lists among them are records too (`Row.beside`).
        within: the name of the list of conversations in a file that is one object and holds many.
        first: the number of the first turn in a file that is one conversation.

    Raises:
        DataError: the file cannot be opened or holds no JSON and no table.
    """

    def __init__(self, path: Path, *keys: str, within: str = "", first: int = 0) -> None:
        self.path, self._keys, self._within, self._first = path, keys, within, first
        self.ledger: JsonLines | ListLines | JsonDocument | ParquetRows = self._open()
        self._words: dict[int, tuple[str, str]] = {}

    def __iter__(self) -> Iterator[Row]:
        for item in self._items():
            if isinstance(item.value, dict):
                yield Row(item.value, (item.number,), self)
                self.settle()
            else:
                self.ledger.use(item.number, "unknown", type(item.value).__name__)
                self.ledger.note("the row is no JSON object", done="kept raw, in no step", line=item.number)
        if isinstance(self.ledger, JsonDocument) and isinstance(self.ledger.envelope, dict) and not self._within:
            yield from self._whole(self.ledger)
            self.settle()

    @property
    def envelope(self) -> dict[str, Any]:
        """What stands beside the list of conversations in a file that is one object."""
        found = self.ledger.envelope if isinstance(self.ledger, JsonDocument) else None
        return found if isinstance(found, dict) else {}

    def use(self, number: int, used_as: str, row_kind: str) -> None:
        """Say what a record was used as; one that holds a whole conversation takes the best word of its turns."""
        if number not in self._words or used_as == "step":
            self._words[number] = used_as, row_kind

    def note(self, what: str, *, done: str, line: int | None = None) -> None:
        """Add a diagnostic about a record."""
        self.ledger.note(what, done=done, line=line)

    def result(self, source: Source, traces: Iterable[Trace]) -> ReadResult:
        """The finished reading; `traces` is a generator that goes through the rows, `source` lacks only its hash."""
        return self.ledger.stream(self._all(traces), lambda: msgspec.structs.replace(source, sha256=self.ledger.sha256))

    def _all(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces, and then a word for what no turn spoke for."""
        yield from traces
        if ENVELOPE in self.ledger.entries:
            self.ledger.use(ENVELOPE, "metadata", "envelope")
        if not isinstance(self.ledger, JsonLines):
            for number, entry in self.ledger.entries.items():
                if entry.status == "ok":
                    self.ledger.use(number, "unknown", "turn")

    def settle(self) -> None:
        """Write down the uses of the rows so far."""
        for number, (used_as, kind) in self._words.items():
            self.ledger.use(number, used_as, kind)
        self._words.clear()

    def _open(self) -> JsonLines | ListLines | JsonDocument | ParquetRows:
        start = start_of(self.path, 1 << 12)
        if start.startswith(PARQUET):
            return ParquetRows(self.path)
        first = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if first in (b"[", b"{") and first_lists(self.path):
            return ListLines(self.path)
        if first == b"[":
            return JsonDocument(self.path, "")
        if _LINES & set(self.path.suffixes) or len(Head(self.path, rows=2).rows) > 1:
            return JsonLines(self.path)
        if self._within:
            return JsonDocument(self.path, self._within)
        return JsonDocument(self.path, *self._keys, first=self._first)

    def _items(self) -> Iterator[Item]:
        if isinstance(self.ledger, JsonLines):
            yield from (Item(row.number, row.value) for row in self.ledger.rows())
        elif isinstance(self.ledger, ParquetRows | ListLines):
            yield from self.ledger.rows()
        elif self._within or not isinstance(self.ledger.envelope, dict):
            yield from self.ledger.rows(self._within if isinstance(self.ledger.envelope, dict) else "")

    def _whole(self, document: JsonDocument) -> Iterator[Row]:
        """The one conversation of a document that is an object."""
        value = dict(document.envelope)
        numbers: dict[str, tuple[int, ...]] = {}
        for key in self._keys:
            items = list(document.rows(key))
            if items:
                value[key] = [item.value for item in items]
                numbers[key] = tuple(item.number for item in items)
        turns = next(iter(numbers), "")
        yield Row(value, numbers.pop(turns, (ENVELOPE,)), self, numbers)


class ParquetRows(Ledger):
    """The rows of a Parquet table; a row has no place in the file (offset -1), its hash is that of its JSON."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        data = whole(path)
        self.size, self.sha256 = len(data), hashlib.sha256(data).hexdigest()
        self._data = data

    def rows(self) -> Iterator[Item]:
        """Every row as a dictionary by column name; texts of JSON are opened."""
        try:
            with pq.ParquetFile(pa.BufferReader(self._data)) as table:
                for batch in table.iter_batches(batch_size=64):
                    for row in batch.to_pylist():
                        yield self._record(row)
        except (pa.ArrowException, OSError) as error:
            self.note(f"the table is broken: {error}", done=f"read the {len(self.entries)} rows before it")

    def _record(self, row: dict[str, Any]) -> Item:
        number = len(self.entries)
        plain = _plain(row)
        data = canonical_json(plain).encode("utf-8", "surrogatepass")
        self.enter(Entry(number, -1, len(data), hashlib.sha256(data).hexdigest()))
        return Item(number, {key: opened(value) for key, value in plain.items()})


def _plain(value: Any) -> Any:
    """A cell as plain JSON data: bytes as hexadecimal digits, times and the like as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str | int | float) else str(value)


def table_head(head: Head, *, rows: int = 4) -> list[dict[str, Any]]:
    """The first rows of a Parquet file, for recognising its format; none for another file."""
    if not head.start.startswith(PARQUET):
        return []
    try:
        table = ParquetRows(head.path).rows()
        return [item.value for item, _ in zip(table, range(rows), strict=False)]
    except DataError:
        return []


def row_heads(head: Head, *keys: str) -> list[dict[str, Any]]:
    """The first conversations of a source, for recognising its format: rows, items, or the one object that it is.

    `keys` are the names of its lists of turns: an object that was torn inside one of them is shown with what is left.
    """
    if head.start.startswith(PARQUET):
        return table_head(head)
    if lists := _lists(head):
        return [{"messages": listed} for listed in lists]
    document = head.document
    if isinstance(document, list):
        return [item for item in document[:40] if isinstance(item, dict)]
    if isinstance(document, dict):
        return [_with_torn_lists(head, document, keys)]
    return head.rows


def _lists(head: Head) -> list[Any]:
    """`first_lists` of a source, found once for all readers that are asked: long lines take their time."""
    if head not in _LISTS:
        _LISTS[head] = first_lists(head.path) if head.path.is_file() else []
    return _LISTS[head]


def _with_torn_lists(head: Head, document: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    torn = [key for key in keys if key not in document and f'"{key}"' in head.text]
    if not torn:
        return document
    whole = JsonDocument(head.path, *torn)
    return {**document, **{key: [item.value for item in whole.rows(key)] for key in torn}}
