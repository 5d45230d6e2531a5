"""The Parquet tables of a segment: their columns, and how rows get into them.

Traces go through one by one; what is in memory is one row group of a few megabytes, with the messages that its traces
share. Of a longer trace the messages are several row groups: which of them belong to which group of traces is then said
in the file's own metadata (`message_groups`). Files are written under hidden names and get their own when the disk has
them.
"""

from __future__ import annotations

import json
import os
import uuid
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from postgrad.core.heap import give_back
from postgrad.core.trace import Trace
from postgrad.traces.packing.packed import Packer
from postgrad.traces.record_table import RecordTable
from postgrad.traces.records import ReadResult

_GROUP_BYTES, _GROUP_ROWS, _RECORD_ROWS = 8 << 20, 256, 1 << 17
_LARGE = 2 << 20  # bytes of a table from which on Arrow is not to keep what it took to write it
LONG = 4000
"""Steps of a trace from which on memory is worth the time that giving it back takes."""
_GROUPS = b"postgrad.trace_groups"
"""In the metadata of a file of messages: each row group's group of traces, where it is not the one of its number."""

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
        self._groups = 0  # of traces, written
        self._group_of: list[int] = []  # of each row group of messages
        self._packer = self._new_packer()

    def add(self, result: ReadResult, traces: Iterable[Trace]) -> None:
        """Add the rows of a source."""
        for trace in traces:
            self._make_room()
            is_long = len(trace.steps) >= LONG
            self._rows.append(self._packer.pack(trace))
            del trace  # a long one is most of the memory: it is gone before its row is written
            if is_long:
                give_back()
        self._make_room()
        for rows in _record_rows(result.source.sha256, result.records):
            self.write("records", rows)

    def write(self, kind: str, rows: pa.Table) -> None:
        """Add rows to one of the tables, as a row group. Messages belong to the group of traces that comes next."""
        if kind == "messages":
            self._group_of.append(self._groups)
        self._groups += kind == "traces"
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
        if rows.nbytes >= _LARGE:
            pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Put the files in place once the disk has them."""
        self._flush()
        if self._group_of != list(range(self._groups)):
            self._writers["messages"].add_key_value_metadata({_GROUPS: json.dumps(self._group_of)})
        for kind, writer in self._writers.items():
            writer.close()
            publish(self._folder / kind / f"{self.name}.parquet")
        self._writers = {}
        pa.default_memory_pool().release_unused()

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
        self._rows, self._packer = [], self._new_packer()
        if not rows:
            return
        self._write_messages(packed)
        packed.clear()
        table = _trace_table(rows)
        rows.clear()
        self.write("traces", table)

    def _new_packer(self) -> Packer:
        return Packer(self._write_messages)

    def _write_messages(self, packed: Mapping[str, tuple[str, str]]) -> None:
        self.write("messages", _message_table(packed))


def message_groups(file: pq.ParquetFile) -> list[list[int]]:
    """For each row group of a segment's traces the row groups of this file of messages that belong to it."""
    told = (file.metadata.metadata or {}).get(_GROUPS)
    groups = range(file.num_row_groups) if told is None else json.loads(told)
    found: list[list[int]] = [[] for _ in range(max(groups, default=-1) + 1)]
    for number, group in enumerate(groups):
        found[group].append(number)
    return found


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


def _trace_table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows without another copy of a long trace's JSON."""
    texts = [row.pop("trace") for row in rows]
    ends = array("i", accumulate(map(len, texts), initial=0))
    data = texts[0] if len(texts) == 1 else b"".join(texts)
    column = pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(data)])
    return _table(rows, TRACES.remove(TRACES.get_field_index("trace"))).append_column(TRACES.field("trace"), column)


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
