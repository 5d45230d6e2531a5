"""`Ledger`: the books of one source. Every record is entered once, and what it was used as is written beside it.

A reader opens its source through `JsonLines`, `JsonDocument` or `Database`; each of them is a ledger that enters the
records as it goes. The reader then calls `use` for every record and `result` at the end, which refuses to close
while a record has no use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from postgrad.core.trace import Source, Trace
from postgrad.traces.records import Diagnostic, RawRecord, ReadResult, RecordStatus


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
        entry = self.entries.get(line) if line is not None else None
        offset = entry.offset if entry and entry.offset >= 0 else None
        self.diagnostics.append(Diagnostic(str(self.path), what, done, line, offset))

    def result(self, source: Source, traces: list[Trace]) -> ReadResult:
        """The finished reading. Records that gave no object are accounted for as "unreadable" here."""
        for entry in self.entries.values():
            if not entry.used_as and entry.status != "ok":
                self.use(entry.number, "blank" if entry.status == "blank" else "unreadable", entry.status)
        records = tuple(
            RawRecord(e.number, e.offset, e.length, e.sha256, e.status, e.row_kind, e.used_as)
            for e in self.entries.values()
        )
        assert all(record.used_as for record in records), "a reader left a record unaccounted for"
        return ReadResult(source, self.size, records, tuple(traces), tuple(self.diagnostics))
