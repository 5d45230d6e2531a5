"""What an ingest has to read: whatever is not as it was when it was read last, or would be read in another way now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from postgrad import __version__
from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.traces import READERS
from postgrad.traces.editions import edition
from postgrad.traces.sources.raw import state
from postgrad.traces.storage.journal import Journal, Seen, StoredSource
from postgrad.verbs.ingest_settings import Item, Settings

NO_REPORT = msgspec.Raw(b"null")
_READERS = content_id([edition(), __version__, *READERS.items()])


@dataclass
class Folders:
    """Tells which folders and archives are one source, and remembers which are none: asking all readers takes time."""

    seen: Mapping[str, Seen]
    new: list[Seen] = field(default_factory=list)

    def whole(self, path: Path) -> bool:
        """Whether a folder or an archive is one source."""
        known = self.seen.get(str(path))
        if known is not None and known.sha256:
            return True
        name, now = f"{path}{os.sep}", _looks(path)
        known = self.seen.get(name)
        if now and known is not None and known.state == now and known.reading == _READERS:
            return False
        from postgrad.traces import readers

        try:
            found = readers.detect(path) is not None
        except DataError:
            found = False
        if now and not found:
            self.new.append(Seen(name, now, _READERS))
        return found


def _looks(path: Path) -> tuple[int, ...]:
    """Times of a folder and of those in it: what a folder is recognised by is not deeper. Empty: there are none."""
    try:
        inside = sorted(one.path for one in os.scandir(path) if one.is_dir()) if path.is_dir() else []
        return tuple(os.stat(one).st_mtime_ns for one in (str(path), *inside))
    except OSError:
        return ()


@dataclass
class Changes:
    """Finds out what has to be read."""

    journal: Journal
    settings: Settings

    def item(self, path: Path) -> Item | None:
        """What to read at `path`, None if it is as it was when it was read last, and would be read just so."""
        seen = self.journal.seen.get(str(path))
        try:
            now = tuple(state(path))
        except DataError:
            return Item(path, path)
        if seen is not None and seen.state == now and self._holds(seen):
            return None
        older = tuple(bare(one, pieces=True) for one in self._by_name.get(path.name, ()))
        return Item(path, path, older, known=now[0] in self._sizes)

    def _holds(self, seen: Seen) -> bool:
        source = self.journal.sources.get(seen.sha256)
        if source is None:
            return not seen.sha256 and seen.reading == self.settings.stamp(None)
        if self.settings.format not in (None, source.format):
            return False
        return source.raw == self.settings.raw and source.reading == self.settings.stamp(source.format)

    @cached_property
    def _by_name(self) -> dict[str, list[StoredSource]]:
        """A file that grows keeps its name, if not always its folder."""
        found: dict[str, list[StoredSource]] = {}
        for source in self.journal.sources.values():
            found.setdefault(Path(source.path).name, []).append(source)
        return found

    @cached_property
    def _sizes(self) -> set[int]:
        return {source.size for source in self.journal.sources.values()}


def bare(source: StoredSource, *, pieces: bool = False) -> StoredSource:
    """An entry without what a worker does not need to know."""
    return msgspec.structs.replace(source, report=NO_REPORT, pieces=source.pieces if pieces else ())
