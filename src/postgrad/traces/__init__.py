"""Traces in: readers, the trace store, redaction, and postgrad's own capture form. No torch.

To add a format, write one file in `formats/` with one frozen class that has the three members of `readers.Reader`:

    format            its name, as `ingest --format` and the store show it
    recognises(head)  whether a source is of this format; strict, because every source is asked
    read(path)        a `ReadResult`: traces, a record table in which every record says what it was used as,
                      and diagnostics for whatever could not be used

and add one line to `table.READERS`. A change that makes another reading of the same bytes is a new edition
(`editions`; a test says when): stores then read them anew. A reader from outside says the same by its `version` (1
where it has none). A reader opens its source through `JsonLines`, `JsonDocument`, `Database` or another class of
`sources`, which keep the books (`sources.ledger.Ledger`); where traces are whole before the source ends, it gives them
to `stream` one by one, and memory stays flat. Without touching this package: pass
``module:Class`` as the format, or declare the entry point ``postgrad.format``.
"""

from __future__ import annotations

from postgrad.traces.table import READERS

__all__ = ["READERS"]
