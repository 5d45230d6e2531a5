"""`RecordTable`: the record table of one source in columns, about 60 bytes a record however large the source.

A 1 GB log of short lines has a million records; as objects they would take more memory than the log. The table is
written row by row while the source is read (`add`, then `use`) and looks like a sequence of `RawRecord` afterwards.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import eq
from typing import Any, Literal, overload

import msgspec

RecordStatus = Literal["ok", "bad_json", "truncated", "glued", "blank"]
BLANK = "blank"
_DIGEST = 32


class RawRecord(msgspec.Struct, frozen=True):
    """One raw record: 1-based number, place and SHA-256 of its bytes (line end included), and what became of it.

    `status`: "truncated" is a last line that stops in the middle, "glued" several objects on one line.
    `row_kind` is the format's own word for the record; `used_as` is ours ("" would mean: not accounted for).
    """

    number: int
    offset: int
    length: int
    sha256: str
    status: RecordStatus
    row_kind: str
    used_as: str


class Words:
    """A column of few distinct words, kept as numbers. Number 0 is the empty word."""

    def __init__(self) -> None:
        self.codes = array("i")
        self.words = [""]
        self._numbers = {"": 0}

    def __getitem__(self, row: int) -> str:
        return self.words[self.codes[row]]

    def code(self, word: str) -> int:
        """The number of a word, a new one if need be."""
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self.words)
            self.words.append(word)
        return number


class RecordTable(Sequence[RawRecord]):
    """Records in the order in which they were added; rows count from 0 and are not the records' numbers."""

    def __init__(self) -> None:
        self.numbers, self.offsets, self.lengths = array("q"), array("q"), array("q")
        self.digests = bytearray()
        self.statuses, self.kinds, self.uses_as = Words(), Words(), Words()

    @property
    def places(self) -> tuple[array[int], array[int], array[int]]:
        """Numbers, offsets and lengths."""
        return self.numbers, self.offsets, self.lengths

    @property
    def words(self) -> tuple[Words, Words, Words]:
        """Statuses, kinds and uses."""
        return self.statuses, self.kinds, self.uses_as

    def add(self, number: int, *, offset: int, length: int, digest: bytes, status: RecordStatus) -> None:
        """Append a record whose use is not known yet; `digest` is the binary SHA-256."""
        self.numbers.append(number)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.digests += digest
        self.statuses.codes.append(self.statuses.code(status))
        self.kinds.codes.append(0)
        self.uses_as.codes.append(0)

    def extend(self, lengths: Sequence[int], digests: Iterable[bytes]) -> None:
        """Append records in order, which lie one behind the other and are numbered from 1, their status "ok"."""
        assert lengths
        count, end = len(self.numbers), self.offsets[-1] + self.lengths[-1] if self.offsets else 0
        self.numbers.extend(range(count + 1, count + len(lengths) + 1))
        self.offsets.extend(accumulate(lengths[:-1], initial=end))
        self.lengths.extend(lengths)
        self.digests += b"".join(digests)
        empty = bytes(len(lengths) * self.kinds.codes.itemsize)
        self.kinds.codes.frombytes(empty)
        self.uses_as.codes.frombytes(empty)
        self.statuses.codes.extend([self.statuses.code("ok")] * len(lengths))

    def mark(self, row: int, status: RecordStatus) -> None:
        """Say how the record in `row` is."""
        self.statuses.codes[row] = self.statuses.code(status)

    def use(self, row: int, used_as: str, row_kind: str) -> None:
        """Say what the record in `row` was used as, unless that is said already."""
        if not self.uses_as.codes[row]:
            self.uses_as.codes[row] = self.uses_as.code(used_as)
            self.kinds.codes[row] = self.kinds.code(row_kind)

    def use_all(self, uses: Iterable[tuple[int, str, str]]) -> None:
        """`use` for many records: row, use and kind of each."""
        used, kinds, use, kind = self.uses_as.codes, self.kinds.codes, self.uses_as.code, self.kinds.code
        for row, used_as, row_kind in uses:
            if not used[row]:
                used[row], kinds[row] = use(used_as), kind(row_kind)

    def settle(self) -> bool:
        """Use records that gave no object as "unreadable" or "blank"; True when every record has a use now."""
        if all(self.uses_as.codes):
            return True
        unused = [row for row, code in enumerate(self.uses_as.codes) if not code]
        for row in unused:
            status = self.statuses[row]
            if status != "ok":
                self.use(row, BLANK if status == BLANK else "unreadable", status)
        return all(self.uses_as.codes)

    def uses(self) -> Counter[str]:
        """Records by use, blank lines left out: they are no records."""
        found: Counter[str] = Counter()
        for (use, status), count in Counter(zip(self.uses_as.codes, self.statuses.codes, strict=True)).items():
            if self.statuses.words[status] != BLANK:
                found[self.uses_as.words[use]] += count
        return found

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, row: int) -> RawRecord: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[RawRecord, ...]: ...
    def __getitem__(self, row: int | slice) -> RawRecord | tuple[RawRecord, ...]:
        if isinstance(row, slice):
            return tuple(self._record(one) for one in range(*row.indices(len(self))))
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return self._record(row % len(self))

    def __iter__(self) -> Iterator[RawRecord]:
        return (self._record(row) for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # a table that grows has no hash, as a list has none

    def _record(self, row: int) -> RawRecord:
        status: Any = self.statuses[row]
        digest = self.digests[row * _DIGEST : (row + 1) * _DIGEST].hex()
        place = (self.numbers[row], self.offsets[row], self.lengths[row])
        return RawRecord(*place, digest, status, self.kinds[row], self.uses_as[row])
