"""What reading a file gives: the record table, diagnostics and traces.

Every raw record of a file is in the table exactly once, with the use that the reader made of it, so the table's
sum is the file: nothing is lost without a word. Blank lines have rows too (the table covers every byte) but are no
records and are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from postgrad.core.trace import Source, Trace

RecordStatus = Literal["ok", "bad_json", "truncated", "glued", "blank"]
BLANK = "blank"


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


class Diagnostic(msgspec.Struct, frozen=True):
    """Something that could not be read as it should: where, what, and what was done about it."""

    file: str
    what: str
    done: str
    line: int | None = None
    offset: int | None = None


class ReadResult(msgspec.Struct, frozen=True):
    """A file, read. `size` counts the uncompressed bytes, of which `source.sha256` is the hash."""

    source: Source
    size: int
    records: tuple[RawRecord, ...]
    traces: tuple[Trace, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def uses(self) -> Counter[str]:
        """How many records were used as what; the values sum to the number of records."""
        return Counter(record.used_as for record in self.records if record.status != BLANK)


def counts(trace: Trace) -> dict[str, int]:
    """The numbers by which a reading of a trace is checked."""
    return {
        "steps": len(trace.steps),
        "tool_calls": trace.tool_calls,
        "tool_results": trace.tool_results,
        "calls_without_result": trace.tool_calls - trace.tool_results,
        "flagged_errors": trace.flagged_errors,
    }


def totals(traces: Iterable[Trace]) -> dict[str, int]:
    """`counts`, summed over traces."""
    total: Counter[str] = Counter()
    for trace in traces:
        total.update(counts(trace))
    names = ("steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
    return {name: total[name] for name in names}
