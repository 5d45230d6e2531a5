"""The Parquet tables of a segment: their columns, and how rows get into them.

Traces go through one by one; what is in memory is one row group of a few megabytes, with the messages that its traces
share. Files are written under hidden names and get their own when the disk has them.
"""

from __future__ import annotations

import os
import uuid
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from postgrad.core.trace import Trace
from postgrad.traces.packed import Packer
from postgrad.traces.record_table import RecordTable
from postgrad.traces.records import ReadResult

_GROUP_BYTES, _GROUP_ROWS, _RECORD_ROWS = 8 << 20, 256, 1 << 20

_TEXTS = ("id", "format", "path", "source", "app", "app_version", "parent", "task_id", "first_time", "last_time")
_NUMBERS = ("index", "steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
_LISTS = ("models", "fidelities", "step_keys", "messages")
TRACES = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _NUMBERS),
        *((name, pa.list_(pa.string())) for name in _LISTS),
        ("trace", pa.string()),
    ]
)
MESSAGES = pa.schema([("id", pa.string()), ("role", pa.string()), ("blocks", pa.string())])
_WORD = pa.dictionary(pa.int32(), pa.string())
RECORDS = pa.schema(
    [
        ("source", _WORD),
        *((name, pa.int64()) for name in ("number", "offset", "length")),
        ("sha256", pa.string()),
        *((name, _WORD) for name in ("status", "row_kind", "used_as")),
    ]
)
TABLES = {"records": RECORDS, "traces": TRACES, "messages": MESSAGES}


class Tables:
    """The Parquet files of a segment while they are written."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self.name = folder, name
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows: list[dict[str, Any]] = []
        self._packer = Packer()

    def add(self, result: ReadResult, traces: Iterable[Trace]) -> None:
        """Add the rows of a source."""
        for trace in traces:
            self._make_room()
            self._rows.append(self._packer.pack(trace))
            del trace  # a long one is most of the memory: it is gone before its rows become a table
        self._make_room()
        for rows in _record_rows(result.source.sha256, result.records):
            self.write("records", rows)

    def write(self, kind: str, rows: pa.Table) -> None:
        """Add rows to one of the tables, as a row group."""
        if kind not in self._writers:
            path = hidden(self._folder / kind / f"{self.name}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            words = [
                field.name for field in TABLES[kind] if field.name not in ("trace", "blocks", "sha256", "messages")
            ]
            # Without Arrow's own schema: other programs then see plain text where we have dictionaries.
            options = {"compression": "zstd", "compression_level": 1, "write_statistics": False, "store_schema": False}
            self._writers[kind] = pq.ParquetWriter(path, TABLES[kind], use_dictionary=words, **options)
        rows = rows if rows.schema == TABLES[kind] else rows.cast(TABLES[kind])
        self._writers[kind].write_table(rows, row_group_size=max(1, rows.num_rows))

    def close(self) -> None:
        """Put the files in place once the disk has them."""
        self._flush()
        for kind, writer in self._writers.items():
            writer.close()
            publish(self._folder / kind / f"{self.name}.parquet")
        self._writers = {}

    def drop(self) -> None:
        """Leave nothing behind."""
        for kind, writer in self._writers.items():
            writer.close()
            hidden(self._folder / kind / f"{self.name}.parquet").unlink(missing_ok=True)

    def _make_room(self) -> None:
        if self._packer.size >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write the row groups. One long trace is most of the memory here: what is written is let go of at once."""
        rows, packed = self._rows, self._packer.messages
        self._rows, self._packer = [], Packer()
        if not rows:
            return
        self.write("traces", _table(rows, TRACES))
        rows.clear()
        messages = _message_table(packed)
        packed.clear()
        self.write("messages", messages)


def new_name() -> str:
    """A name that no other segment has."""
    return uuid.uuid4().hex[:16]


def hidden(path: Path) -> Path:
    """The name of a file while it is written."""
    return path.with_name(f".{path.name}.tmp")


def publish(path: Path) -> None:
    """Give a finished file its name, after its bytes are on disk."""
    descriptor = os.open(hidden(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(hidden(path), path)


def _record_rows(sha256: str, records: RecordTable) -> Iterator[pa.Table]:
    """The columns of a record table as they are, a million rows at a time."""
    for start in range(0, len(records), _RECORD_ROWS):
        stop = min(len(records), start + _RECORD_ROWS)
        count = stop - start
        words = [_words(column.codes[start:stop], column.words) for column in records.words]
        numbers = [pa.array(column[start:stop], pa.int64()) for column in records.places]
        digests = pa.py_buffer(records.digests[32 * start : 32 * stop].hex().encode())
        ends = pa.py_buffer(array("i", range(0, 64 * (count + 1), 64)))
        hashes = pa.Array.from_buffers(pa.string(), count, [None, ends, digests])
        source = _words(array("i", bytes(4 * count)), [sha256])
        yield pa.Table.from_arrays([source, *numbers, hashes, *words], schema=RECORDS)


def _words(codes: array[int], words: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(_valid(words), pa.string()))


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([{k: _valid(v) for k, v in row.items()} for row in rows], schema=schema)


def _message_table(packed: Mapping[str, tuple[str, str]]) -> pa.Table:
    columns = [list(packed), [role for role, _ in packed.values()], [text for _, text in packed.values()]]
    try:
        return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], schema=MESSAGES)
    except UnicodeEncodeError:
        return pa.Table.from_arrays([pa.array(_valid(column), pa.string()) for column in columns], schema=MESSAGES)


def _valid(value: Any) -> Any:
    """Parquet holds UTF-8: a lone surrogate in a name stands there as its escape."""
    if isinstance(value, list):
        return [_valid(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
