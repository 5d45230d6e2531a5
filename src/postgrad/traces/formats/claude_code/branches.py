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
    """The tree of one history. `owner` maps a row's uuid to the answer that it is part of."""

    def __init__(self, rows: Sequence[Row], owner: Mapping[str, Owner]) -> None:
        self._rows = {row.uuid: row for row in rows}
        self._owner = owner
        ends = [row for row in rows if row.role in ("user", "step")]
        self._line: set[str] = set()
        self._line |= {row.uuid for row in self._up(ends[-1].uuid)} if ends else set()
        self._answers = {id(owner[uuid]) for uuid in self._line if uuid in owner}

    def above(self, answer: Owner, first: Row) -> Owner | None:
        """The answer that `answer` (whose first row is given) goes on from, across compactions."""
        owners = (self._owner.get(row.uuid) for row in self._up(first.uuid))
        return next((found for found in owners if found is not None and found is not answer), None)

    def left(self, answer: Owner, first: Row) -> bool:
        """Whether the user left the branch that `answer` lies on."""
        if id(answer) in self._answers:
            return False
        return any(row.uuid in self._line for row in self._up(first.uuid))

    def _up(self, uuid: str | None) -> Iterator[Row]:
        """A row and those above it; a circle of parents ends."""
        seen: set[str] = set()
        while uuid is not None and uuid not in seen and (row := self._rows.get(uuid)) is not None:
            seen.add(uuid)
            yield row
            uuid = row.parent or row.logical_parent
