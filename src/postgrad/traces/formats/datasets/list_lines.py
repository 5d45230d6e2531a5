"""`ListLines`: JSON lines of which each is a list of messages, the first one perhaps an object about all of them.

The form of agent-trace collections (Invariant's among them). A line's list becomes a row ``{"messages": [...]}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.errors import DataError
from postgrad.traces.records import RecordStatus
from postgrad.traces.sources.document import Item
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw

_LONGEST = 16 << 20  # bytes of a line that are looked at to recognise the form


class ListLines(Ledger):
    """The lists of the file at `path`; the number of a record is the 1-based number of its line.

    Raises:
        DataError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[Item]:
        """Every list as a row, in order; what is no list is told, an object in the first line is metadata."""
        for number, line in enumerate(self._lines(), 1):
            value, status = _decode(line)
            torn = status == "bad_json" and not line.endswith(b"\n")
            status = "truncated" if torn else status
            self.enter(Entry(number, self.size, len(line), hashlib.sha256(line).hexdigest(), status))
            self.size += len(line)
            self._digest.update(line)
            if isinstance(value, list):
                yield Item(number, {"messages": value})
            elif number == 1 and isinstance(value, dict):
                self.use(number, "metadata", "object")
            elif status != "blank":
                if status == "ok":
                    self.use(number, "unknown", type(value).__name__)
                self.note("the line is no list of messages", done="kept raw, not used", line=number)

    def _lines(self) -> Iterator[bytes]:
        with open_raw(self.path) as stream:
            try:
                yield from stream
            except STREAM_FAULTS as error:
                self.note(
                    f"the compressed data is broken: {error}", done=f"read the {len(self.entries)} lines before it"
                )
            except OSError as error:
                raise DataError(f"cannot read the file: {error.strerror}", got=str(self.path)) from None


def _decode(line: bytes) -> tuple[Any, RecordStatus]:
    text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").strip()
    if not text:
        return None, "blank"
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None, "bad_json"
    return (None, "bad_json") if too_deep(value) else (value, "ok")


def first_lists(path: Path, *, lines: int = 3) -> list[Any]:
    """The lists in the first lines of a file of this form; none for another: a document's line is no whole list."""
    found: list[Any] = []
    with open_raw(path) as stream:
        try:
            heads = [line for line in (stream.readline(_LONGEST) for _ in range(lines)) if line.strip()]
        except STREAM_FAULTS:
            return []
    if len(heads) < 2 or not any(line.lstrip().startswith(b"[") for line in heads[:2]):
        return []
    for number, line in enumerate(heads):
        value, _ = _decode(line)
        if isinstance(value, list):
            found.append(value)
        elif number or not isinstance(value, dict):
            return []
    return found
