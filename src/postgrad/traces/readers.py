"""`read(path, format=None)`: a file of traces, read by the reader that knows its format.

Without a format every reader in the table is asked, in order, whether it recognises the file's head. They are
strict: a file that merely looks similar is refused, because wrong traces are worse than none. A reader that fails on
a foreign file while it looks at it is passed over, and the others are asked.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from postgrad.core.errors import DataError
from postgrad.core.heap import few_collections
from postgrad.run.plugins import resolve
from postgrad.traces import READERS
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

# Rows and bytes to recognise a file by. New versions of an application can open a session with many rows of new kinds.
_TAR = b"ustar"
_HEADS = ((40, 1 << 20), (4000, 64 << 20))
FAULTS = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, AssertionError, RecursionError)
"""What a mistake in a reader raises on a file that its author did not think of."""


class Reader(Protocol):
    """A trace format. See the package docstring for how to add one."""

    @property
    def format(self) -> str:
        """Short name."""
        ...

    def recognises(self, head: Head) -> bool:
        """Whether a source that begins like this is of this format."""
        ...

    def read(self, path: Path) -> ReadResult:
        """Read a file to its end; whatever cannot be used becomes a diagnostic, not an exception.

        Raises:
            DataError: the file cannot be opened.
        """
        ...


def reader(format: str) -> Reader:
    """The reader of that name.

    Raises:
        ConfigError: there is none; the message lists the known ones.
    """
    return cast(Reader, resolve("format", format, READERS)())


def version(format: str) -> str:
    """The version of the reader of that name: readings of another version are made anew from the raw layer.

    A reader says it in its attribute `version`, 1 where it has none.
    """
    return str(getattr(reader(format), "version", 1))


def detect(path: Path, *, failed: Callable[[str], object] = lambda told: None) -> str | None:
    """The name of the format of `path`, None when no reader recognises it.

    Args:
        path: the source.
        failed: told of every reader that failed while it looked at the source, and where in its code.

    Raises:
        DataError: the file cannot be opened, or is a tar archive.
    """
    told: dict[str, None] = {}

    def recognises(name: str) -> bool:
        try:
            return reader(name).recognises(head)
        except FAULTS as error:
            if (fault := f"the reader {name} fails on this file while it looks at it: {place_of(error)}") not in told:
                told[fault] = None
                failed(fault)
            return False

    for rows, limit in _HEADS:
        head = Head(path, rows=rows, limit=limit)
        if head.start[257:262] == _TAR:  # its files one behind the other would be read as one
            raise DataError(
                "a tar archive is not read as it is", got=str(path), do="unpack it (tar xf) and name the folder"
            )
        name = next((name for name in READERS if recognises(name)), None)
        if name is not None or len(head.rows) < rows // 2:
            return name
    return None


def place_of(error: BaseException) -> str:
    """Kind and place of a fault in our code; its own words may hold a secret of the file."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}"


@few_collections()
def read(path: str | Path, format: str | None = None) -> ReadResult:
    """Read one file.

    Raises:
        DataError: it cannot be opened, or no reader recognises it.
        ConfigError: `format` is unknown.
    """
    path = Path(path)
    name = format or detect(path)
    if name is None:
        from postgrad.traces.sources.looks import LISTED, looks

        raise DataError(f"no reader recognises this file, {looks(path)}", got=str(path), do=LISTED)
    return reader(name).read(path)
