"""`Shelf`: the traces of a store, each session once, read from the segments; and `sweep`, which takes out dead rows.

A row is alive as long as the journal says that its source is in its segment. The row of a source that was outgrown,
read anew, or added twice at the same moment is dead: readers pass it over, and the next `sweep` writes the segment
anew without it, so that other programs, which read the tables as they are, do not see it either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postgrad.core.trace import Trace
from postgrad.traces.journal import Journal, Line, StoredSource
from postgrad.traces.packed import unpack
from postgrad.traces.segment_tables import TABLES, Tables, new_name

_SMALL = ["id", "index", "source", "steps", "tool_results", "step_keys"]
_Group = tuple[str, int]  # segment, row group


class Shelf:
    """The traces of the sources given, in their order."""

    def __init__(self, folder: Path, sources: Sequence[StoredSource]) -> None:
        self._folder = folder
        self._place = {source.sha256: place for place, source in enumerate(sources)}
        self._segment = {source.sha256: source.segment for source in sources}
        self._group = lru_cache(maxsize=2)(self._read_group)

    def traces(self) -> Iterator[Trace]:
        """Every session once, ordered by source and place in it; two row groups in memory at a time."""
        groups, kept = self._index()
        for sha in self._place:
            for group in groups.get(sha, ()):
                rows, messages = self._group(*group)
                for row in rows.get(sha, ()):
                    name = kept.get((sha, row["index"]))
                    if name is not None:
                        yield msgspec.structs.replace(unpack(row, messages), id=name)

    def _index(self) -> tuple[dict[str, list[_Group]], dict[tuple[str, int], str]]:
        """Where the traces of a source are, and the id of every trace that no other reading contains."""
        groups: dict[str, list[_Group]] = {}
        readings: dict[str, list[tuple[Any, ...]]] = {}
        for segment in dict.fromkeys(self._segment.values()):
            for number, row in self._small_rows(segment):
                sha = row["source"]
                if self._segment.get(sha) != segment:
                    continue
                if (segment, number) not in groups.setdefault(sha, []):
                    groups[sha].append((segment, number))
                rank = (-row["steps"], -row["tool_results"], self._place[sha], row["index"])
                readings.setdefault(row["id"], []).append((rank, sha, row["index"], row["step_keys"]))
        return groups, _kept(readings)

    def _small_rows(self, segment: str) -> Iterator[tuple[int, dict[str, Any]]]:
        path = self._folder / "traces" / f"{segment}.parquet"
        if path.exists():  # a segment of sources without a single trace has no such file
            with pq.ParquetFile(path) as file:
                for number in range(file.num_row_groups):
                    for row in file.read_row_group(number, columns=_SMALL).to_pylist():
                        yield number, row

    def _read_group(
        self, segment: str, number: int
    ) -> tuple[dict[str, list[dict[str, Any]]], Mapping[str, tuple[str, str]]]:
        """The rows of a row group by source, and its messages."""
        with pq.ParquetFile(self._folder / "traces" / f"{segment}.parquet") as file:
            table = file.read_row_group(number, columns=["source", "index", "trace"])
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in table.to_pylist():
            rows.setdefault(row["source"], []).append(row)
        with pq.ParquetFile(self._folder / "messages" / f"{segment}.parquet") as file:
            packed = file.read_row_group(number).to_pydict()
        return rows, dict(zip(packed["id"], zip(packed["role"], packed["blocks"], strict=True), strict=True))


def _kept(readings: Mapping[str, list[tuple[Any, ...]]]) -> dict[tuple[str, int], str]:
    """(source, index) -> trace id, for the traces that no other reading contains."""
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


def sweep(folder: Path, journal: Journal) -> None:
    """Take out what the journal does not name: dead rows, and files that a killed process left behind."""
    alive: dict[str, list[str]] = {}
    for source in journal.sources.values():
        alive.setdefault(source.segment, []).append(source.sha256)
    for segment in [segment for segment in sorted(journal.stale) if segment in alive]:
        new = _rewritten(folder, segment, alive[segment])
        journal.append([Line(moved=(segment, new))])
    segments = {source.segment for source in journal.sources.values()}
    pieces = {piece.file for source in journal.sources.values() for piece in source.pieces}
    for path in [path for kind in TABLES for path in (folder / kind).glob("*") if path.stem not in segments]:
        path.unlink()
    for path in [path for path in (folder / "raw").glob("*") if path.name not in pieces]:
        path.unlink()
    for path in folder.glob(".*.tmp"):
        path.unlink()


def _rewritten(folder: Path, segment: str, sources: Sequence[str]) -> str:
    """Copy the rows of these sources, row group by row group, to a new segment; its name."""
    tables = Tables(folder, new_name())
    wanted = pa.array(sources)
    for rows in _groups(folder / "records" / f"{segment}.parquet"):
        left = rows.filter(pc.is_in(rows["source"].cast(pa.string()), wanted))
        if left.num_rows:
            tables.write("records", left)
    traces = _groups(folder / "traces" / f"{segment}.parquet")
    for rows, messages in zip(traces, _groups(folder / "messages" / f"{segment}.parquet"), strict=True):
        left = rows.filter(pc.is_in(rows["source"], wanted))
        if left.num_rows:
            used = pc.unique(pc.list_flatten(left["messages"].combine_chunks()))
            tables.write("traces", left)
            tables.write("messages", messages.filter(pc.is_in(messages["id"], used)))
    tables.close()
    return tables.name


def _groups(path: Path) -> Iterator[pa.Table]:
    if path.exists():
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
