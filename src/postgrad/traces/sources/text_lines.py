r"""`TextLines`: a source of plain text; its records are the sections that a reader cuts it into.

    source = TextLines(path)
    for section in source.sections(starts): ...     # starts(number) says whether a line begins a section

Sections are numbered by the 1-based number of their first line, so a record's number is where to look. Bytes that are
no UTF-8 become lone surrogates; lines end at b"\n" only. A section must fit in memory, the text with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from postgrad.core.errors import DataError
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw


@dataclass(frozen=True)
class Section:
    """Some lines of a text, without line ends, and the number of the first."""

    number: int
    lines: tuple[str, ...]


class TextLines(Ledger):
    """The text at `path`.

    Raises:
        DataError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        data = bytearray()
        with open_raw(path) as stream:
            try:
                while block := stream.read(1 << 20):
                    data += block
            except STREAM_FAULTS as error:
                self.note(f"the compressed data is broken: {error}", done=f"read the {len(data)} bytes before it")
            except OSError as error:
                raise DataError(f"cannot read the file: {error.strerror}", got=str(path)) from None
        self._data = bytes(data)
        self.size, self.sha256 = len(data), hashlib.sha256(data).hexdigest()
        self._ends = _lines(self._data)
        decoded = (line.decode("utf-8", "surrogateescape") for line in self._ends)
        self.lines = [line.removesuffix("\n").removesuffix("\r") for line in decoded]

    def sections(self, starts: Callable[[int], bool]) -> Iterator[Section]:
        """The text cut before every line whose (1-based) number `starts` says yes to."""
        first, offset, at = 1, 0, 0
        for number, line in enumerate(self._ends, 1):
            if number > first and starts(number):
                yield self._section(first, number, offset, at)
                first, offset = number, at
            at += len(line)
        if self._ends:
            yield self._section(first, len(self._ends) + 1, offset, at)

    def _section(self, first: int, after: int, start: int, stop: int) -> Section:
        lines = tuple(self.lines[first - 1 : after - 1])
        blank = not any(line.strip() for line in lines)
        digest = hashlib.sha256(self._data[start:stop]).hexdigest()
        self.enter(Entry(first, start, stop - start, digest, "blank" if blank else "ok"))
        return Section(first, lines)


def _lines(data: bytes) -> list[bytes]:
    r"""Lines with their ends; only b"\n" ends one."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines
