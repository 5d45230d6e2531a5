"""What a reader holds while it reads, on disk instead of in memory: for sources that hold more than memory does.

`OnDisk` is a list of objects that are still being put together, of which only the last used are in memory; `Index`
finds their places by keys; `Tape` is a sequence that is gone through several times, in order; `Spool` is the sequence
of finished traces. All lie in unnamed temporary files that are gone with the process.
"""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
import tempfile
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import eq
from typing import Any, Generic, TypeVar, overload

import msgspec
import zstandard

from postgrad.core.trace import Source, Trace

_IN_MEMORY = 8 << 20

T = TypeVar("T")


class OnDisk(Generic[T]):
    """A list of objects, of which the `warm` last used are in memory.

    What `[]` gives may be changed until `warm` others were asked for; keep the place of an object and not the object.
    """

    def __init__(self, *, warm: int = 64) -> None:
        self._pickles = _Pickles()
        self._warm: OrderedDict[int, T] = OrderedDict()
        self._places = array("q")
        self._limit = warm

    def append(self, item: T) -> int:
        """Add an object; its place."""
        self._places.append(-1)
        self._keep(len(self._places) - 1, item)
        return len(self._places) - 1

    def __getitem__(self, place: int) -> T:
        if place in self._warm:
            self._warm.move_to_end(place)
            return self._warm[place]
        item: T = self._pickles.load(self._places[place])
        self._keep(place, item)
        return item

    def look(self, place: int) -> T:
        """The object at a place, to be read and not to be changed: it does not push others out of memory."""
        return self._warm[place] if place in self._warm else self._pickles.load(self._places[place])

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[T]:
        return (self.look(place) for place in range(len(self)))

    def _keep(self, place: int, item: T) -> None:
        self._warm[place] = item
        if len(self._warm) > self._limit:
            oldest, cold = self._warm.popitem(last=False)
            self._places[oldest] = self._pickles.dump(cold)


class Index:
    """Words (of any length, all text) -> two integers, for millions of words. The last one that was put counts."""

    def __init__(self) -> None:
        self._base = sqlite3.connect("", isolation_level=None)  # a file without a name, written when it grows large
        self._base.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000;"
            "CREATE TABLE places (word BLOB PRIMARY KEY, place INTEGER, part INTEGER) WITHOUT ROWID; BEGIN"
        )

    def put(self, words: tuple[str | None, ...], place: int = 0, part: int = 0) -> None:
        """Set the integers of some words taken together."""
        self._base.execute("REPLACE INTO places VALUES (?, ?, ?)", (_digest(words), place, part))

    def get(self, words: tuple[str | None, ...]) -> tuple[int, int] | None:
        """The integers of some words taken together, None if there are none."""
        found = self._base.execute("SELECT place, part FROM places WHERE word = ?", (_digest(words),)).fetchone()
        return None if found is None else (int(found[0]), int(found[1]))


def _digest(words: tuple[str | None, ...]) -> bytes:
    return hashlib.blake2b(repr(words).encode(), digest_size=16).digest()


class _Pickles:
    """Objects in a file, by number.

    Pickle and not JSON: lone surrogates, NaN and integers of any size come back as they were. Nobody else writes this
    file, and it has no name.
    """

    def __init__(self, *, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._ends = array("q", [0])

    @cached_property
    def _file(self) -> Any:
        """Made when there is something to write: most sources fit into memory, and have many of these."""
        return tempfile.SpooledTemporaryFile(max_size=self._in_memory)  # lives as long as its owner

    @cached_property
    def _packer(self) -> zstandard.ZstdCompressor:
        return zstandard.ZstdCompressor(level=-5)  # of level 1 a third of the time, and nearly its size

    @cached_property
    def _unpacker(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()

    def dump(self, item: object) -> int:
        """Add an object; its number."""
        packed = self._packer.compress(pickle.dumps(item, protocol=5))
        self._file.seek(self._ends[-1])
        self._file.write(packed)
        self._ends.append(self._ends[-1] + len(packed))
        return len(self._ends) - 2

    def load(self, number: int) -> Any:
        """The object of that number."""
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return pickle.loads(self._unpacker.decompress(self._file.read(end - start)))

    def __len__(self) -> int:
        return len(self._ends) - 1


class Tape(Sequence[T]):
    """Items in the order in which they came: the last of them in memory, those before in pieces on disk.

    To go through it reads a piece at a time; the piece that was read last stays. A slice is a view, and not a copy.
    """

    def __init__(self, *, piece: int = 2 << 20) -> None:
        self._pickles = _Pickles(in_memory=piece)
        self._starts = array("q")  # the place of each piece's first item; of those in memory, the last
        self._starts.append(0)
        self._last: list[T] = []
        self._weight, self._piece = 0, piece
        self._read: tuple[int, list[T]] = (-1, [])

    def append(self, item: T, *, weight: int) -> None:
        """Add an item; `weight` is about its size in bytes."""
        self._last.append(item)
        self._weight += weight
        if self._weight >= self._piece:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory to disk."""
        self._pickles.dump(self._last)
        self._starts.append(len(self))
        self._last, self._weight = [], 0

    @property
    def plain(self) -> Sequence[T]:
        """The same items as a list where all of them are in memory."""
        return self if len(self._pickles) else self._last

    def __len__(self) -> int:
        return self._starts[-1] + len(self._last)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        if isinstance(place, slice):
            return _Part(self, range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        number = bisect_right(self._starts, place) - 1
        return self._load(number)[place - self._starts[number]]

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._starts)):
            yield from self._load(number)

    def _load(self, number: int) -> list[T]:
        if number == len(self._pickles):
            return self._last
        if self._read[0] != number:
            self._read = (-1, [])  # let go of before the next comes
            self._read = (number, self._pickles.load(number))
        return self._read[1]


class _Part(Sequence[T]):
    """Some places of a sequence."""

    def __init__(self, whole: Sequence[T], places: range) -> None:
        self._whole, self._places = whole, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        if isinstance(place, slice):
            return _Part(self._whole, self._places[place])
        return self._whole[self._places[place]]

    def __iter__(self) -> Iterator[T]:
        return (self._whole[place] for place in self._places)


class Spool(Sequence[Trace]):
    """The traces of one source, as often as needed, in order or by place; one is in memory at a time."""

    def __init__(self) -> None:
        self._pickles = _Pickles()
        self._source: Source | None = None

    def append(self, trace: Trace) -> None:
        """Add a trace."""
        self._pickles.dump(trace)

    def closed(self, source: Source) -> Spool:
        """Say which source the traces are from; `append` is over."""
        self._source = source
        return self

    def __len__(self) -> int:
        return len(self._pickles)

    @overload
    def __getitem__(self, place: int) -> Trace: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Trace, ...]: ...
    def __getitem__(self, place: int | slice) -> Trace | tuple[Trace, ...]:
        if isinstance(place, slice):
            return tuple(self._trace(one) for one in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._trace(place % len(self))

    def __iter__(self) -> Iterator[Trace]:
        return (self._trace(place) for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as a list has none

    def _trace(self, place: int) -> Trace:
        trace: Trace = self._pickles.load(place)
        return msgspec.structs.replace(trace, source=self._source or trace.source)
