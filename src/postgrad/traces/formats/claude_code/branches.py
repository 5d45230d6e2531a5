"""Which answers lie on the line that the user went on with, and which on branches left by going back.

Rows form a tree. The line that counts ends at the last row of the file; it crosses compactions, whose boundary names
the row that it stands for. An answer beside that line that grows out of it was left; one with a root of its own was
not: it is an earlier part of the session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from postgrad.traces.formats.claude_code.rows import Row

Owner = TypeVar("Owner")


class Branches(Generic[Owner]):
    """The tree of one history: its rows in order, and by uuid; `owner` maps a row's uuid to its answer."""

    def __init__(self, rows: Sequence[Row], by_uuid: Mapping[str, Row], owner: Mapping[str, Owner]) -> None:
        self._rows, self._owner = by_uuid, owner
        end = next((row for row in reversed(rows) if row.role in ("user", "step")), None)
        self._line: set[str] = set() if end is None else {row.uuid for row in self._up(end)}
        self._answers = {id(owner[uuid]) for uuid in self._line if uuid in owner}

    def above(self, answer: Owner, first: Row) -> Owner | None:
        """The answer that `answer` (whose first row is given) goes on from, across compactions."""
        owner = self._owner.get
        for row in self._up(first):
            if (found := owner(row.uuid)) is not None and found is not answer:
                return found
        return None

    def left(self, answer: Owner, first: Row) -> bool:
        """Whether the user left the branch that `answer` lies on."""
        if id(answer) in self._answers:
            return False
        return any(row.uuid in self._line for row in self._up(first))

    def _up(self, first: Row) -> Iterator[Row]:
        """A row and those above it; a circle of parents ends."""
        seen: set[str] = set()
        row: Row | None = first
        while row is not None and row.uuid not in seen:
            seen.add(row.uuid)
            yield row
            above = row.parent or row.logical_parent
            row = None if above is None else self._rows.get(above)
