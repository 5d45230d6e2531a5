"""`Head`: what a reader is shown of a source to recognise its format by. Each view is made when first asked for."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.traces.sources import database, jsonl
from postgrad.traces.sources.document import JsonDocument
from postgrad.traces.sources.raw import SQLITE, STREAM_FAULTS, ZIP, members, open_raw

_START = 1 << 16


class Head:
    """A source before it is read.

    Args:
        path: where it is; its name may support a guess and never decides alone.
        rows: how many JSON objects `rows` holds at most, from the first `limit` bytes.
    """

    def __init__(self, path: Path, *, rows: int = 40, limit: int = 1 << 20) -> None:
        self.path, self._rows, self._limit = path, rows, limit

    @classmethod
    def of(cls, rows: Iterable[dict[str, Any]] = (), *, document: Any = None, path: Path = Path("trace")) -> Head:
        """A head with these views and no file, for tests and for readers that ask one another."""
        head = cls(path)
        head.__dict__ |= {"rows": list(rows), "document": document, "start": b"", "tables": frozenset(), "members": ()}
        return head

    @cached_property
    def start(self) -> bytes:
        """The first bytes, unpacked; empty for a folder."""
        if self.path.is_dir():
            return b""
        with open_raw(self.path) as stream:
            try:
                return stream.read(_START)
            except STREAM_FAULTS:
                return b""

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The first JSON objects, one a line; a document that spreads over lines gives none, nor does a container."""
        if self.path.is_dir() or self.start.startswith((ZIP, SQLITE)):
            return []
        return jsonl.head(self.path, rows=self._rows, limit=self._limit)

    @cached_property
    def document(self) -> Any:
        """The JSON object or list that the file is, None when it is something else; cut off at its end it still is."""
        start = self.start.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start[:1] not in (b"{", b"[") or (start[:1] == b"{" and len(self.rows) > 1 and _are_lines(start)):
            return None
        try:
            value, self.torn = _document(self.path)
        except DataError:
            return None
        return value

    torn = False
    """Whether `document`, once asked for, stops in the middle: what it holds is then only what is whole at the top."""

    @cached_property
    def tables(self) -> frozenset[str]:
        """The tables of an SQLite database."""
        return database.tables(self.path) if self.path.is_file() else frozenset()

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The file names in a zip archive."""
        if not self.path.is_file() or not self.start.startswith(ZIP):
            return ()
        try:
            return tuple(member.relative_to(self.path).as_posix() for member in members(self.path))
        except (DataError, zipfile.BadZipFile):
            return ()

    @cached_property
    def text(self) -> str:
        """The first bytes as text; empty for binary files."""
        return "" if b"\0" in self.start else self.start.decode("utf-8", "replace")


def _are_lines(start: bytes) -> bool:
    """Whether a text that holds several objects is JSON lines; a document written over lines has such lines too."""
    line, end, _ = start.partition(b"\n")
    return not end or jsonl.decode(line)[1] == "ok"


def _document(path: Path) -> tuple[Any, bool]:
    """The document, with a list at the top kept as a list, and whether it stops in the middle."""
    whole = JsonDocument(path, "")
    items = list(whole.rows(""))
    if isinstance(whole.envelope, list):
        return [item.value for item in items], whole.truncated
    return {item.key: item.value for item in items}, whole.truncated
