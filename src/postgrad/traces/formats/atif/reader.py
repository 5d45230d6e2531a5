"""ATIF files: one trajectory (a document), several (a list, or JSON lines).

In a document a record is a step, numbered like `step_id` from 1; subagent trajectories inside it come after. In a list
or in lines a record is a whole trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.atif.trajectory import is_trajectory, traces
from postgrad.traces.formats.datasets.rows import Rows, row_heads
from postgrad.traces.formats.shapes.plain import mapping, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head


@dataclass(frozen=True)
class ATIF:
    """Reader of ATIF files."""

    format: str = "atif"

    def recognises(self, head: Head) -> bool:
        """Objects with a schema version of ATIF, or with its agent and its kind of steps."""
        rows = row_heads(head, "steps")
        return bool(rows) and all(is_trajectory(row) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read a file.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        rows = Rows(path, "steps", "subagent_trajectories", first=1)
        agent = mapping(rows.envelope.get("agent"))
        source = Source(str(path), self.format, "", text(agent.get("name")), text(agent.get("version")))
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        index = 0
        for row in rows:
            if not is_trajectory(row.value):
                row.refuse("no ATIF trajectory")
                continue
            for trace in traces(row, source, index=index):
                index += 1
                yield trace
            row.settle("trajectory")
