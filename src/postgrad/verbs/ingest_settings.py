"""How sources are read and kept, what there is to read, and what became of it: data, for processes to exchange.

Nothing that reads or judges is imported here: an ingest that finds everything unchanged needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from postgrad import __version__
from postgrad.core.canonical import content_id, file_sha256
from postgrad.traces import READERS
from postgrad.traces.editions import edition
from postgrad.traces.storage.journal import StoredSource
from postgrad.traces.storage.vault import Key, RawMode

if TYPE_CHECKING:
    from postgrad.traces.contexts.catalogue import Catalogue


@dataclass(frozen=True)
class Settings:
    """How sources are read and kept; the same for all of them."""

    store: Path
    format: str | None = None
    raw: RawMode = "keep"
    key: Key | None = None
    marks: bytes = b""
    redact: tuple[str, ...] = ()
    catalogue: Path | None = None  # the one that is kept with the store: one file, and all of it

    def stamp(self, format: str | None) -> str:
        """Equal stamps: a source of that format (None: of no known one) would be read just as it was."""
        if format not in self._stamps:
            reader = [self.format, *READERS.items()] if format is None else [format, _version(format)]
            parts = [edition(), __version__, reader, self.redact, self._filled]
            self._stamps[format] = content_id(parts)
        return self._stamps[format]

    @cached_property
    def _stamps(self) -> dict[str | None, str]:
        return {}

    @cached_property
    def filler(self) -> Catalogue:
        """What fills gaps in contexts."""
        from postgrad.traces.contexts.catalogue import Catalogue

        return Catalogue() if self.catalogue is None else Catalogue.load(self.catalogue)

    @cached_property
    def _filled(self) -> str:
        return "" if self.catalogue is None else file_sha256(self.catalogue)


def _version(format: str) -> str:
    """Of a reader from outside; those of the table are part of the edition, and need not be imported for this."""
    if format in READERS:
        return ""
    from postgrad.traces import readers

    return readers.version(format)


@dataclass(frozen=True)
class Item:
    """A source to read.

    `path` is its name, `place` where its bytes are, `older` may be beginnings of it; `known`: its size is that of a
    source in the store, so that it is worth a look at its hash; `again`: the source in the store that is read anew.
    """

    path: Path
    place: Path
    older: tuple[StoredSource, ...] = ()
    known: bool = False
    again: StoredSource | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of an item: a new entry for the journal, the hash of a source that is there already, or a fault."""

    path: Path
    state: tuple[int | str, ...] = ()
    reading: str = ""
    stored: StoredSource | None = None
    outgrown: tuple[str, ...] = ()
    same: str = ""
    report: bytes = b""
    fault: str = ""
