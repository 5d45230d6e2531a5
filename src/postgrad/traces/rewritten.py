"""`rewritten`: a segment without its dead rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postgrad.traces.segment_tables import Tables, new_name


def rewritten(folder: Path, segment: str, sources: Sequence[str]) -> str:
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
