"""`Rows`: a table that cuts nothing off. Where its columns do not fit side by side, every row gets lines of its own.

rich makes a table fit by cutting words at the terminal's edge, and a number that ends in "…" is worse than none. So
only columns that are named as flexible give way, by folding; where that is not enough, a row is told as its first cell
and, below it, "column value" for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

NARROWEST = 18
"""Characters that a flexible column must be left with."""


@dataclass(frozen=True)
class Rows:
    """A table of texts.

    Attributes:
        columns: their names.
        rows: a text a column; the rows after None stand in a section of their own.
        title: a line above.
        numbers: columns that are set to the right.
        flexible: columns that may fold.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str] | None]
    title: str = ""
    numbers: Collection[str] = ()
    flexible: Collection[str] = field(default=())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table where it fits, else the rows one below the other."""
        if self.title:
            yield Text(self.title, overflow="fold")
        if self._needed() <= options.max_width:
            yield self._table()
        else:
            yield Group(*self._blocks())

    def _needed(self) -> int:
        """Characters that the table takes when the flexible columns are as narrow as they may be."""
        widths = []
        for place, column in enumerate(self.columns):
            cells = [column, *(row[place] for row in self.rows if row is not None)]
            widest = max(cell_len(line) for cell in cells for line in (cell.splitlines() or [""]))
            widths.append(min(widest, NARROWEST) if column in self.flexible else widest)
        return sum(widths) + 3 * len(widths) + 1

    def _table(self) -> Table:
        table = Table()
        for column in self.columns:
            justify: Literal["left", "right"] = "right" if column in self.numbers else "left"
            table.add_column(Text(column), justify=justify, overflow="fold", no_wrap=column not in self.flexible)
        for row in self.rows:
            if row is None:
                table.add_section()
            else:
                table.add_row(*map(Text, row))
        return table

    def _blocks(self) -> Iterator[RenderableType]:
        for row in self.rows:
            if row is None:
                continue
            yield Text(row[0], style="bold", overflow="fold")
            told = ", ".join(f"{name} {cell}" for name, cell in zip(self.columns[1:], row[1:], strict=True) if cell)
            if told:
                yield Padding(Text(told, overflow="fold"), (0, 0, 0, 2))
