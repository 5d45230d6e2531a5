"""`Database`: a source that is an SQLite database; its records are the rows of the tables that a reader names.

    with Database(path) as database:
        for row in database.rows("select * from messages order by created"): ...

Numbers count the rows in the order in which they were read, from 0. A row has no place in the file (offset -1); its
length and hash are those of its values as JSON. The database is read from one consistent snapshot in a temporary
file, its write-ahead log included, and is never written to.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from postgrad.core.canonical import canonical_json
from postgrad.core.errors import DataError
from postgrad.traces.sources.document import Item
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import SQLITE, STREAM_FAULTS, open_raw


def tables(path: Path) -> frozenset[str]:
    """The names of the tables of an SQLite database, empty for every other file."""
    with open_raw(path) as stream:
        try:
            if stream.read(len(SQLITE)) != SQLITE:
                return frozenset()
        except STREAM_FAULTS:
            return frozenset()
    try:
        with Database(path) as database:
            return frozenset(name for (name,) in database.select("select name from sqlite_master where type = 'table'"))
    except DataError:
        return frozenset()


def _copy(stream: BinaryIO, file: BinaryIO, path: Path) -> tuple[int, str]:
    """Size and SHA-256 of what was copied."""
    digest, size = hashlib.sha256(), 0
    try:
        while block := stream.read(1 << 20):
            file.write(block)
            digest.update(block)
            size += len(block)
    except STREAM_FAULTS as error:
        raise DataError(f"the compressed data is broken: {error}", got=str(path)) from None
    return size, digest.hexdigest()


class Database(Ledger):
    """A snapshot of the database at `path`.

    Raises:
        DataError: it cannot be opened or is no database.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._folder = tempfile.TemporaryDirectory(prefix="postgrad-")
        copy = Path(self._folder.name) / "database"
        with open_raw(path) as stream, copy.open("wb") as file:
            self.size, self.sha256 = _copy(stream, file, path)
            # The header may still say "write-ahead log", of which this copy has none: all of it is in the pages.
            file.seek(18)
            file.write(b"\1\1")
        self._connection = sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()
        self._folder.cleanup()

    def select(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The answer to a question that is no reading of records."""
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise DataError(f"cannot read the database: {error}", got=str(self.path)) from None

    def rows(self, query: str, *parameters: Any) -> Iterator[Item]:
        """The rows of a query as records, each a dictionary by column name; `key` is the first column as text."""
        try:
            cursor = self._connection.execute(query, parameters)
            names = [column[0] for column in cursor.description]
            for values in cursor:
                yield self._record(dict(zip(names, values, strict=True)))
        except sqlite3.Error as error:
            self.note(f"the database is broken: {error}", done=f"read the {len(self.entries)} rows before it")

    def _record(self, row: dict[str, Any]) -> Item:
        number = len(self.entries)
        shown = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
        data = canonical_json(shown).encode("utf-8", "surrogatepass")
        self.enter(Entry(number, -1, len(data), hashlib.sha256(data).hexdigest()))
        return Item(number, row, str(next(iter(row.values()), "")))
