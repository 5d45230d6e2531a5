"""`Folder`: a source that is a folder; its bytes are its files' bytes, joined in the order of their paths.

    folder = Folder(path)
    for file in folder.files:
        value = folder.value(file, number)      # the whole file is one record
        document = folder.document(file, "")    # or the items of its lists are, as in `JsonDocument`

Offsets count from the start of the joined bytes. A file that is not used must be entered too (`value`, `entry`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.errors import DataError
from postgrad.traces.records import RecordStatus
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import files_of


@dataclass(frozen=True)
class File:
    """A file of the folder: its name below it, its bytes, and where they begin in the source."""

    path: Path
    name: str
    data: bytes
    offset: int


def entries_of(path: Path) -> list[Path]:
    """What lies directly in a folder, by name; empty for one that cannot be looked into."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


class Folder(Ledger):
    """The files of the folder at `path`.

    Raises:
        DataError: a file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.files: list[File] = []
        digest = hashlib.sha256()
        for file in files_of(path):
            try:
                data = file.read_bytes()
            except OSError as error:
                raise DataError(f"cannot read the file: {error.strerror or error}", got=str(file)) from None
            self.files.append(File(file, file.relative_to(path).as_posix(), data, self.size))
            self.size += len(data)
            digest.update(data)
        self.sha256 = digest.hexdigest()

    def entry(self, file: File, number: int, status: RecordStatus = "ok") -> None:
        """Enter a file as one record."""
        digest = hashlib.sha256(file.data).hexdigest()
        self.enter(Entry(number, file.offset, len(file.data), digest, status))

    def value(self, file: File, number: int) -> Any:
        """Enter a file as one record and read it as JSON; None for one that is none, with a diagnostic."""
        try:
            found = json.loads(file.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape"), strict=False)
        except (ValueError, RecursionError):
            found = None
        if found is None or too_deep(found):
            self.entry(file, number, "bad_json" if file.data.strip() else "blank")
            self.note(f"{file.name} is no JSON", done="kept raw, not used", line=number)
            return None
        self.entry(file, number)
        return found

    def document(self, file: File, *lists: str, first: int) -> JsonDocument | None:
        """Enter the items of a file's lists, numbered from `first`; None (with a diagnostic) if it is no document."""
        try:
            document = JsonDocument(file.path, *lists, first=first)
        except DataError:
            self.entry(file, first, "bad_json")
            self.note(f"{file.name} is no JSON document", done="kept raw, not used", line=first)
            return None
        lowest = min([*self.entries, 0])
        for number, entry in document.entries.items():
            own = lowest - 1 if number == ENVELOPE else number
            self.enter(replace(entry, number=own, offset=entry.offset + file.offset))
            if number == ENVELOPE:
                self.use(own, "metadata", file.name)
        self.diagnostics += document.diagnostics
        return document
