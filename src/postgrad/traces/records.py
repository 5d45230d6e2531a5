"""What reading a file gives: the record table, diagnostics and traces.

Every raw record of a file is in the table exactly once, with the use that the reader made of it, so the table's
sum is the file: nothing is lost without a word. Blank lines have rows too (the table covers every byte) but are no
records and are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from postgrad.core.trace import Source, Trace
from postgrad.traces.record_table import BLANK, RawRecord, RecordStatus, RecordTable

__all__ = ["BLANK", "Diagnostic", "RawRecord", "ReadResult", "RecordStatus", "RecordTable", "counts", "totals"]


class Diagnostic(msgspec.Struct, frozen=True):
    """Something that could not be read as it should: where, what, and what was done about it."""

    file: str
    what: str
    done: str
    line: int | None = None
    offset: int | None = None


class ReadResult(msgspec.Struct, frozen=True):
    """A file, read. `size` counts the uncompressed bytes, of which `source.sha256` is the hash.

    Records and traces are sequences and need not be in memory: go through them one by one.
    """

    source: Source
    size: int
    records: RecordTable
    traces: Sequence[Trace]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def uses(self) -> Counter[str]:
        """How many records were used as what; the values sum to the number of records."""
        return self.records.uses()


def counts(trace: Trace) -> dict[str, int]:
    """The numbers by which a reading of a trace is checked."""
    return {
        "steps": len(trace.steps),
        "tool_calls": trace.tool_calls,
        "tool_results": trace.tool_results,
        "calls_without_result": trace.tool_calls + len(trace.orphans) - trace.tool_results,
        "flagged_errors": trace.flagged_errors,
    }


def totals(traces: Iterable[Trace]) -> dict[str, int]:
    """`counts`, summed over traces."""
    total: Counter[str] = Counter()
    for trace in traces:
        total.update(counts(trace))
    names = ("steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
    return {name: total[name] for name in names}
