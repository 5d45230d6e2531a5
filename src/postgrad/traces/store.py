"""`Store`: a folder with the raw bytes of every source, and what was read from them, in Parquet.

    STORE/store.json              marks the folder as a store
          raw/SHA256.zst          the source's bytes, uncompressed hash, only readable by the owner
          records/SHA256.parquet  the record table
          traces/SHA256.parquet   a row per trace: plain columns, and the whole trace as JSON in `trace`
          sources/SHA256.json     the source; written last, so what it does not name is not in the store

Any Parquet reader can use the tables: ``duckdb -c "select id, steps, flagged_errors from 'STORE/traces/*.parquet'"``.
A source is named by its content: the same file again adds nothing and a file that has grown takes the place of its
older reading. Of several readings of one session (equal trace id: the reader's docstring says what that means) the
one that holds all steps of another hides it; where two went different ways after a common beginning both are kept,
the second under an id of its own. Traces are stored as given: redact before adding. Not covered: deleting a source.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from postgrad.core.canonical import canonical_json, content_id
from postgrad.core.errors import DataError
from postgrad.core.files import replacing, write_json
from postgrad.core.trace import Trace
from postgrad.traces.raw import open_raw
from postgrad.traces.records import RawRecord, ReadResult, counts

_MARK = "store.json"
_BLOCK = 1 << 20
_ROW_GROUP = 16  # traces read into memory together

_RECORDS = pa.schema(
    [("number", pa.int64()), ("offset", pa.int64()), ("length", pa.int64())]
    + [(name, pa.string()) for name in ("sha256", "status", "row_kind", "used_as")]
)
_TEXTS = ("id", "format", "path", "source", "app", "app_version", "parent", "task_id", "first_time", "last_time")
_NUMBERS = ("index", "steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
_TRACES = pa.schema(
    [(name, pa.string()) for name in _TEXTS]
    + [(name, pa.int64()) for name in _NUMBERS]
    + [("models", pa.list_(pa.string())), ("step_keys", pa.list_(pa.string())), ("trace", pa.string())]
)


class StoredSource(msgspec.Struct, frozen=True):
    """A source in the store: where it was read, its size and hash, and how its records were used."""

    path: str
    format: str
    sha256: str
    size: int
    uses: dict[str, int]


@dataclass(frozen=True)
class Store:
    """A trace store in `folder`, made when first written to."""

    folder: Path

    def add(self, result: ReadResult, *, raw: bool = True) -> bool:
        """Add a reading; True if its source is new. An older reading of the same growing file is dropped.

        Args:
            result: what a reader gave, with `traces` redacted as they are to be kept.
            raw: keep the source's bytes too.

        Raises:
            DataError: the folder holds something else, or the file changed since it was read.
            OutsideFailure: the disk is full or not writable.
        """
        self._claim()
        sha = result.source.sha256
        before = {source.sha256: source for source in self.sources()} if self.exists else {}
        older = self._copy_raw(result, before.values(), keep=raw)
        _write_table(self.folder / "records" / f"{sha}.parquet", _record_table(result.records))
        _write_table(self.folder / "traces" / f"{sha}.parquet", _trace_table(result))
        stored = StoredSource(result.source.path, result.source.format, sha, result.size, dict(result.uses))
        if sha not in before:
            write_json(self._file("sources", sha), msgspec.to_builtins(stored))
        for outgrown in older:
            self._drop(outgrown)
        return sha not in before

    @property
    def exists(self) -> bool:
        """Whether the folder is a store."""
        return (self.folder / _MARK).is_file()

    def sources(self) -> list[StoredSource]:
        """What was added, ordered by path.

        Raises:
            DataError: the folder is no trace store.
        """
        if not self.exists:
            raise DataError("no trace store here", got=str(self.folder), do="run: postgrad ingest PATH -o STORE")
        files = (self.folder / "sources").glob("*.json")
        found = [msgspec.convert(json.loads(file.read_bytes()), StoredSource) for file in files]
        return sorted(found, key=lambda source: (source.path, source.sha256))

    def traces(self) -> Iterator[Trace]:
        """Every session once, ordered by source path and place in the file; a few traces in memory at a time.

        Raises:
            DataError: the folder is no trace store.
        """
        order = [source.sha256 for source in self.sources()]
        kept = self._kept(order)
        for sha in order:
            with pq.ParquetFile(self._file("traces", sha)) as file:
                for batch in file.iter_batches(batch_size=_ROW_GROUP, columns=["id", "index", "trace"]):
                    for row in batch.to_pylist():
                        name = kept.get((sha, row["index"]))
                        if name is not None:
                            trace = msgspec.convert(json.loads(row["trace"]), Trace)
                            yield msgspec.structs.replace(trace, id=name)

    def records(self, sha256: str) -> pa.Table:
        """The record table of a source."""
        return pq.read_table(self._file("records", sha256))

    def raw(self, sha256: str) -> bytes:
        """The bytes of a source, uncompressed.

        Raises:
            DataError: the store does not hold them.
        """
        try:
            packed = self._file("raw", sha256).read_bytes()
        except FileNotFoundError:
            raise DataError("the store does not hold these bytes", got=sha256, do="ingest the file again") from None
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read()

    def _file(self, kind: str, sha: str) -> Path:
        suffix = {"raw": "zst", "sources": "json"}.get(kind, "parquet")
        return self.folder / kind / f"{sha}.{suffix}"

    def _claim(self) -> None:
        """Make the folder a store, unless it is something else."""
        if self.exists:
            return
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise DataError("the folder is not a trace store", got=str(self.folder), do="give a new or empty folder")
        write_json(self.folder / _MARK, {"format": "postgrad trace store", "version": 1})

    def _copy_raw(self, result: ReadResult, before: Any, *, keep: bool) -> list[str]:
        """Copy the bytes that were read, check their hash, and name the sources that are a beginning of them."""
        sizes = sorted({source.size for source in before if source.size < result.size})
        known = {source.sha256 for source in before}
        target = self._file("raw", result.source.sha256)
        with open_raw(Path(result.source.path)) as stream:
            if not keep or target.exists():
                digest, older = _copy(stream, None, result.size, sizes)
            else:
                with replacing(target) as temporary, temporary.open("wb") as file:
                    temporary.chmod(0o600)
                    with zstandard.ZstdCompressor(level=6).stream_writer(file) as writer:
                        digest, older = _copy(stream, writer, result.size, sizes)
                    _require_same(digest, result)
        _require_same(digest, result)
        return [sha for sha in older if sha in known]

    def _drop(self, sha: str) -> None:
        """Forget a source, its entry first: a half-dropped source is not in the store."""
        for kind in ("sources", "traces", "records", "raw"):
            self._file(kind, sha).unlink(missing_ok=True)

    def _kept(self, order: list[str]) -> dict[tuple[str, int], str]:
        """(source, index) -> trace id, for the traces that no other reading contains."""
        columns = ["id", "index", "steps", "tool_results", "step_keys"]
        readings: dict[str, list[tuple[Any, ...]]] = {}
        for place, sha in enumerate(order):
            for row in pq.read_table(self._file("traces", sha), columns=columns).to_pylist():
                rank = (-row["steps"], -row["tool_results"], place, row["index"])
                readings.setdefault(row["id"], []).append((rank, sha, row["index"], row["step_keys"]))
        kept: dict[tuple[str, int], str] = {}
        for name, versions in readings.items():
            whole: list[set[str]] = []
            for _, sha, index, keys in sorted(versions):
                if any(set(keys) <= other for other in whole):
                    continue
                apart = next((key for key in keys if not any(key in other for other in whole)), "") if whole else ""
                kept[sha, index] = f"{name}-{apart[:8]}" if whole else name
                whole.append(set(keys))
        return kept


def _copy(stream: Any, writer: Any, size: int, sizes: list[int]) -> tuple[str, list[str]]:
    """Copy `size` bytes; the hash of all of them, and of the beginnings with the given sizes."""
    digest = hashlib.sha256()
    beginnings = []
    done = 0
    for stop in [*sizes, size]:
        while done < stop and (block := stream.read(min(_BLOCK, stop - done))):
            digest.update(block)
            done += len(block)
            if writer is not None:
                writer.write(block)
        beginnings.append(digest.hexdigest())
    return beginnings[-1], beginnings[:-1]


def _require_same(digest: str, result: ReadResult) -> None:
    if digest != result.source.sha256:
        raise DataError("the file changed while it was read", got=result.source.path, do="ingest it again")


def _write_table(path: Path, table: pa.Table) -> None:
    with replacing(path) as temporary:
        group = _ROW_GROUP if "trace" in table.schema.names else None
        pq.write_table(table, temporary, compression="zstd", row_group_size=group)


def _record_table(records: tuple[RawRecord, ...]) -> pa.Table:
    return _table([msgspec.to_builtins(record) for record in records], _RECORDS)


def _trace_table(result: ReadResult) -> pa.Table:
    return _table([_trace_row(trace) for trace in result.traces], _TRACES)


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{key: _valid(value) for key, value in row.items()} for row in rows], schema=schema)


def _valid(value: Any) -> Any:
    """Parquet holds UTF-8: a lone surrogate in a name stands there as its escape."""
    if isinstance(value, list):
        return [_valid(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _trace_row(trace: Trace) -> dict[str, Any]:
    times = sorted(step.time for step in trace.steps if step.time)
    source = trace.source
    return {
        "id": trace.id,
        "format": source.format,
        "path": source.path,
        "source": source.sha256,
        "app": source.app,
        "app_version": source.app_version,
        "parent": trace.parent,
        "task_id": trace.task_id,
        "first_time": times[0] if times else None,
        "last_time": times[-1] if times else None,
        "index": trace.index,
        **counts(trace),
        "models": sorted({c.model for step in trace.steps for c in step.candidates if c.model}),
        "step_keys": _step_keys(trace),
        "trace": canonical_json(msgspec.to_builtins(trace)),
    }


def _step_keys(trace: Trace) -> list[str]:
    """A key per step that two readings of one session share: the action, and how often it was taken before."""
    seen: dict[str, int] = {}
    keys = []
    for step in trace.steps:
        action = step.action.id
        seen[action] = seen.get(action, 0) + 1
        keys.append(content_id([action, seen[action]]))
    return keys
