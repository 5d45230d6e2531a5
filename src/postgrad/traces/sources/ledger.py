"""`Ledger`: the books of one source. Every record is entered once, and what it was used as is written beside it.

A reader opens its source through `JsonLines`, `JsonDocument` or `Database`; each of them is a ledger that enters the
records as it goes. The reader then calls `use` for every record and, at the end, `result`, which refuses to close
while a record has no use. A reader that can finish traces before the end of its source gives them to `stream`
instead, one by one, so that a source larger than the memory can be read. Traces of a large source are not kept in
memory (`set_aside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from postgrad.core.trace import Source, Trace
from postgrad.traces.packing.set_aside import LARGE, SetAside
from postgrad.traces.packing.spool import Spool
from postgrad.traces.records import Diagnostic, ReadResult, RecordStatus, RecordTable


@dataclass
class Entry:
    """A record while its use is still being found out. An offset of -1: the record has no place of its own."""

    number: int
    offset: int
    length: int
    sha256: str
    status: RecordStatus = "ok"
    row_kind: str = ""
    used_as: str = ""


@dataclass
class Ledger:
    """The records of the source at `path`, by number, and what there is to say about them."""

    path: Path
    diagnostics: list[Diagnostic] = field(default_factory=list)
    size: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)

    def enter(self, entry: Entry) -> None:
        """Add a record; its number must be new."""
        assert entry.number not in self.entries, f"record {entry.number} is entered twice"
        self.entries[entry.number] = entry

    def use(self, number: int, used_as: str, row_kind: str) -> None:
        """Say what a record was used as. The first word stays (a glued line holds several objects)."""
        entry = self.entries[number]
        if not entry.used_as:
            entry.used_as, entry.row_kind = used_as, row_kind

    def note(self, what: str, *, done: str, line: int | None = None) -> None:
        """Add a diagnostic about a record, or about the whole source."""
        offset = self._offset(line) if line is not None else -1
        self.diagnostics.append(Diagnostic(str(self.path), what, done, line, offset if offset >= 0 else None))

    def result(self, source: Source, traces: Sequence[Trace]) -> ReadResult:
        """The finished reading. Records that gave no object are accounted for as "unreadable" here."""
        table = self._closed()
        kept = SetAside(traces) if self.size >= LARGE else tuple(traces)
        return ReadResult(source, self.size, table, kept, tuple(self.diagnostics))

    def stream(self, traces: Iterable[Trace], source: Callable[[], Source]) -> ReadResult:
        """The finished reading of traces that come one by one, while the records are still being read.

        Args:
            traces: usually a generator that goes through `rows`; their `source` may be anything.
            source: called after the last trace, when hash and version are known. It becomes every trace's source.
        """
        spool = Spool()
        for trace in traces:
            spool.append(trace)
        found = source()
        return ReadResult(found, self.size, self._closed(), spool.closed(found), tuple(self.diagnostics))

    def _offset(self, number: int) -> int:
        entry = self.entries.get(number)
        return entry.offset if entry else -1

    def _closed(self) -> RecordTable:
        table = RecordTable()
        for row, e in enumerate(self.entries.values()):
            digest = bytes.fromhex(e.sha256)
            table.add(e.number, offset=e.offset, length=e.length, digest=digest, status=e.status)
            if e.used_as:
                table.use(row, e.used_as, e.row_kind)
        return settled(table)


def settled(table: RecordTable) -> RecordTable:
    """A finished table: every record says what it was used as."""
    assert table.settle(), "a reader left a record unaccounted for"
    return table
