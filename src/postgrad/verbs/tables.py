"""`Rows`: a table that cuts nothing off. Where its columns do not fit side by side, it takes another shape.

rich makes a table fit by cutting words at the terminal's edge, and a number that ends in "…" is worse than none. So
only columns that are named as flexible give way, by folding; then the space around the cells goes; a table of few rows
is turned, its rows side by side; and where none of this is enough, a row is told as its first cell and, below it,
"column value" for the others.
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

NARROWEST = 12
"""Characters that a flexible column must be left with."""
LONG_WORD = 18
"""Characters of a word, such as a path, from which on it may be broken."""
_TURNED = 6
"""Rows that may stand side by side."""


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
        for shape in (self, self._turned()):
            for space in (1, 0):
                if shape is not None and shape._needed(space) <= options.max_width:
                    yield shape._table(space)
                    return
        yield Group(*self._blocks())

    def _turned(self) -> Rows | None:
        """The same with rows for columns; None where there are too many. A column without any text is left out."""
        rows = [row for row in self.rows if row is not None]
        if not rows or len(rows) > _TURNED:
            return None
        columns = list(zip(self.columns, *rows, strict=True))
        told = [cells for cells in columns[1:] if any(cells[1:])]
        return Rows(columns[0], told, flexible=columns[0][1:] if self.flexible else ())

    def _needed(self, space: int) -> int:
        """Characters that the table takes when the flexible columns are as narrow as they may be."""
        cells = (
            (name, [row[place] for row in self.rows if row is not None]) for place, name in enumerate(self.columns)
        )
        widths = [
            _narrowest(name, texts) if name in self.flexible else _widest([name, *texts]) for name, texts in cells
        ]
        return sum(widths) + (2 * space + 1) * len(widths) + 1

    def _table(self, space: int) -> Table:
        table = Table(padding=(0, space))
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


def _widest(texts: Sequence[str]) -> int:
    """Characters of the longest line."""
    return max(cell_len(line) for text in texts for line in (text.splitlines() or [""]))


def _narrowest(name: str, texts: Sequence[str]) -> int:
    """Characters that a column needs which may fold: its name in whole, words in whole unless they are long."""
    words = [word for text in texts for word in text.split()]
    fold = min(_widest([name, *texts]), max(NARROWEST, min(LONG_WORD, _widest(["", *words]))))
    return max(cell_len(name), fold)
