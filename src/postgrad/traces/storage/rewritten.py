"""`rewritten`: a segment without its dead rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postgrad.traces.storage.tables import Tables, message_groups, new_name


def rewritten(folder: Path, segment: str, sources: Sequence[str]) -> str:
    """Copy the rows of these sources, row group by row group, to a new segment; its name."""
    tables = Tables(folder, new_name())
    wanted = pa.array(sources)
    for rows in _groups(folder / "records" / f"{segment}.parquet"):
        left = rows.filter(pc.is_in(rows["source"].cast(pa.string()), wanted))
        if left.num_rows:
            tables.write("records", left)
    for number, rows in enumerate(_groups(folder / "traces" / f"{segment}.parquet")):
        left = rows.filter(pc.is_in(rows["source"], wanted))
        if left.num_rows:
            used = pc.unique(pc.list_flatten(left["messages"].combine_chunks()))
            for messages in _messages(folder / "messages" / f"{segment}.parquet", number):
                tables.write("messages", messages.filter(pc.is_in(messages["id"], used)))
            tables.write("traces", left)
    tables.close()
    return tables.name


def _messages(path: Path, group: int) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for number in message_groups(file)[group]:
            yield file.read_row_group(number)


def _groups(path: Path) -> Iterator[pa.Table]:
    if path.exists():
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
