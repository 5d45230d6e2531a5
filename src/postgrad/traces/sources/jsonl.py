r"""JSON lines, byte-exact: every line is a record with its offset, length, hash and status, broken ones included.

Lines end at b"\n" and nowhere else: U+2028, U+0085 and the like are legal inside JSON strings. A broken line never
ends the reading. Invalid UTF-8 becomes lone surrogates (`surrogateescape`), NaN, big integers and duplicate keys
pass as `json` reads them; the raw bytes stay in the store. Offsets, sizes and hashes count uncompressed bytes. One
line must fit in memory; of the lines before it only about 60 bytes each stay there.

msgspec decodes three to five times faster than `json` and gives the same value wherever it gives one (a property
test holds it to that); what it refuses (NaN, lone surrogates, bytes that are no UTF-8) goes to `json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from postgrad.core.canonical import DEEPEST, too_deep
from postgrad.core.errors import DataError
from postgrad.traces.packing.spool import Tape
from postgrad.traces.records import RecordStatus, RecordTable
from postgrad.traces.sources.ledger import Entry, Ledger, settled
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_OBJECT = re.compile(r'\{\s*"')  # a record starts so; inside a string of JSON its quote would be escaped
_RESTARTS = 64  # places tried on a broken line; a record that starts later than that stays unread
_LONGEST = 64 << 20  # bytes of a line that `head` reads
_BLOCK = 1 << 18  # bytes of lines that are entered together
_LINE = 200  # bytes that a line takes beside its own


class Row(NamedTuple):
    """One JSON object and the number of the line that it stands on; a glued line gives several rows."""

    number: int
    value: dict[str, Any]


def head(path: Path, *, rows: int, limit: int) -> list[dict[str, Any]]:
    """The first JSON objects of a file, for recognising its format; reads at most `limit` bytes (one row at least)."""
    found: list[dict[str, Any]] = []
    with open_raw(path) as stream:
        try:
            read = 0
            while len(found) < rows and read < limit and (line := stream.readline(_LONGEST)):
                read += len(line)
                found += decode(line)[0]
        except STREAM_FAULTS:
            pass  # what came before the fault tells the format as well
    return found


_FAST = msgspec.json.Decoder()


def decode(line: bytes) -> tuple[list[dict[str, Any]], RecordStatus]:
    """The objects on a line and how it is: "ok" is exactly one object, "glued" is several or one after a torn one."""
    try:
        value = _FAST.decode(line)
    except (ValueError, RecursionError):
        return _decode_odd(line)
    if not isinstance(value, dict) or (not shallow(line) and too_deep(value)):
        return [], "bad_json"
    return [value], "ok"


def shallow(line: bytes) -> bool:
    """Whether JSON cannot be nested too deeply: it is too short for that, or has too few brackets."""
    return len(line) <= 2 * DEEPEST or line.count(b"{") + line.count(b"[") <= DEEPEST


def _decode_odd(line: bytes) -> tuple[list[dict[str, Any]], RecordStatus]:
    """A line that is no strict JSON, read as far as `json` and recovery can."""
    text = line.removeprefix(_BOM).decode("utf-8", "surrogateescape").strip()
    if not text:
        return [], "blank"
    try:
        # Raw control characters in strings are no JSON, but nothing is lost by reading them; NUL marks a torn block.
        value = json.loads(text, strict="\0" in text)
    except (ValueError, RecursionError):
        objects = [value for value in _recover(text) if not too_deep(value)]
        return objects, "glued" if objects else "bad_json"
    if not isinstance(value, dict) or (text.count("{") + text.count("[") > DEEPEST and too_deep(value)):
        return [], "bad_json"
    return [value], "ok"


def _recover(text: str) -> list[dict[str, Any]]:
    """Whole objects from the start of the line, else those that follow a torn one and reach the line's end.

    After ``:``, ``,`` or ``[`` an object is a part of the torn one and not a record of its own.
    """
    objects, _ = _scan(text, 0)
    for start in islice(_OBJECT.finditer(text, 1), 0 if objects else _RESTARTS):
        at = start.start()
        if text[:at].rstrip()[-1:] not in (":", ",", "["):
            later, end = _scan(text, at)
            if later and end == len(text):
                objects = later
                break
    return [value for value in objects if isinstance(value, dict)]


def _scan(text: str, start: int) -> tuple[list[Any], int]:
    """The JSON objects that stand one after the other from `start`, and where they end."""
    decoder = json.JSONDecoder()
    objects: list[Any] = []
    end = start
    try:
        while text.startswith("{", end):
            value, end = decoder.raw_decode(text, end)
            objects.append(value)
            while text[end : end + 1].isspace():
                end += 1
    except (ValueError, RecursionError):
        pass  # no object any more: `end` says where
    return objects, end


@dataclass
class JsonLines(Ledger):
    """One pass over a file of JSON lines; the number of a record is the 1-based number of its line.

    `decoding` says what objects are on a line; only formats whose lines are no objects need their own.
    """

    decoding: Callable[[bytes], tuple[list[dict[str, Any]], RecordStatus]] = decode
    _digest: Any = field(default_factory=hashlib.sha256)
    _table: RecordTable = field(default_factory=RecordTable)

    def __post_init__(self) -> None:
        self.entries = cast(dict[int, Entry], _Entries(self._table))

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far."""
        return cast(str, self._digest.hexdigest())

    def rows(self) -> Iterator[Row]:
        """Every object in the file, in order."""
        return self.read(_nothing, Row)

    def read(self, whole: Callable[[int, bytes], T | None], parse: Callable[[int, dict[str, Any]], T]) -> Iterator[T]:
        """What `whole` makes of the number and the bytes of a line; where that is None, `parse` of every object on it.

        `whole` is for the lines that a format mostly has, which need no dicts (`shallow` tells whether it may).
        """
        sha256, first = hashlib.sha256, 1
        for lines in self._blocks():
            self._digest.update(b"".join(lines))
            self._table.extend(sizes := list(map(len, lines)), [sha256(line).digest() for line in lines])
            self.size += sum(sizes)
            for number, line in enumerate(lines, first):
                found = whole(number, line)
                if found is not None:
                    yield found
                    continue
                objects, status = self.decoding(line)
                if status != "ok":
                    self._odd(number, line, status, len(objects))
                for value in objects:
                    yield parse(number, value)
            first += len(lines)

    def parsed(self, parse: Callable[[int, dict[str, Any]], T]) -> Sequence[T]:
        """What `parse` makes of number and value of every object, in order; of a large file most of it lies on disk."""
        tape: Tape[T] = Tape()
        for number, value in self.rows():
            tape.append(parse(number, value), weight=self._table.lengths[number - 1])
        return tape.plain

    def use(self, number: int, used_as: str, row_kind: str) -> None:
        """Say what a line was used as. The first word stays (a glued line holds several objects)."""
        self._table.use(number - 1, used_as, row_kind)

    def use_all(self, uses: Iterable[tuple[int, str, str]]) -> None:
        """`use` for many lines: number, use and kind of each."""
        self._table.use_all((number - 1, used_as, row_kind) for number, used_as, row_kind in uses)

    def _offset(self, number: int) -> int:
        return self._table.offsets[number - 1] if 0 < number <= len(self._table) else -1

    def _closed(self) -> RecordTable:
        return settled(self._table)

    def _blocks(self) -> Iterator[list[bytes]]:
        """The lines, many at a time: entering them in the books together is faster."""
        lines: list[bytes] = []
        left = _BLOCK
        with open_raw(self.path) as stream:
            try:
                for line in stream:
                    lines.append(line)
                    left -= len(line) + _LINE
                    if left <= 0:
                        yield lines
                        lines, left = [], _BLOCK
            except STREAM_FAULTS as error:
                last = len(self._table) + len(lines)
                done = f"read the {last} lines before it"
                self.note(f"the compressed data is broken: {error}", done=done, line=last)
            except OSError as error:
                raise DataError(f"cannot read the file: {error.strerror}", got=str(self.path)) from None
        if lines:
            yield lines

    def _odd(self, number: int, line: bytes, status: RecordStatus, objects: int) -> None:
        """Write down that a line is not one object, and tell of it."""
        if status == "bad_json" and not line.endswith(b"\n"):
            status = "truncated"
        self._table.mark(number - 1, status)
        if status == "blank":
            return
        what = {
            "bad_json": "the line is not a JSON object",
            "truncated": "the last line is truncated: it stops in the middle of a JSON object",
            "glued": "the line is not one JSON object but several, or one after a torn one (glued)",
        }[status]
        done = f"recovered {objects} object(s)" if objects else "kept raw, not used"
        self.note(what, done=done, line=number)


def _nothing(number: int, line: bytes) -> None:
    """No line is of the kind that a format mostly has."""


class _Entries(Mapping[int, Entry]):
    """The lines as the entries of a ledger, to be looked at."""

    def __init__(self, table: RecordTable) -> None:
        self._table = table

    def __getitem__(self, number: int) -> Entry:
        if not 0 < number <= len(self._table):
            raise KeyError(number)
        r = self._table[number - 1]
        return Entry(r.number, r.offset, r.length, r.sha256, r.status, r.row_kind, r.used_as)

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, len(self._table) + 1))

    def __len__(self) -> int:
        return len(self._table)
