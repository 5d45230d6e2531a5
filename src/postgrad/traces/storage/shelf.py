"""`Shelf`: the traces of a store, each session once, read from the segments. Dead rows (`sweep`) are passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from postgrad.core.trace import Trace
from postgrad.traces.packing.packed import unpack
from postgrad.traces.storage.journal import StoredSource
from postgrad.traces.storage.tables import message_groups

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

    def ids(self) -> frozenset[str]:
        """The id of every session."""
        return frozenset(self._index()[1].values())

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
            packed = file.read_row_groups(message_groups(file)[number]).to_pydict()
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
