"""`Shelf`: the traces of a store as rows in memory and details on the disk, filled while others read.

A store is read once, from its beginning to its end; what has been read can be looked at. Details are packed (deflate,
which browsers unpack) one after another in a temporary file that vanishes with the process.
"""

from __future__ import annotations

import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from postgrad.core.trace import Trace
from postgrad.serve.look.detail import as_json, detail
from postgrad.serve.look.listing import listed
from postgrad.signals.error_sites.sites import find_sites

_LEVEL = 5


class Shelf:
    """Rows and packed details, by key. One thread fills it; any number may read."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.done = False
        self.fault = ""
        self._file = tempfile.TemporaryFile(prefix="postgrad-look-")  # noqa: SIM115  (lives as long as the shelf)
        self._places: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def fill(self, traces: Iterable[Trace]) -> None:
        """Read everything; afterwards `done` is true."""
        for trace in traces:
            self.add(trace)
        self.done = True

    def add(self, trace: Trace) -> None:
        """Add one trace under the next key."""
        sites = find_sites(trace)
        key = len(self.rows)
        packed = zlib.compress(as_json(detail(trace, sites, key=key)), _LEVEL)
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(packed)
            self._places.append((start, len(packed)))
        self.rows.append(listed(trace, sites, key=key))

    def packed(self, key: int) -> bytes:
        """The detail of a trace: deflated JSON.

        Raises:
            IndexError: there is no such key, or not yet.
        """
        if key < 0:
            raise IndexError(key)
        with self._lock:
            start, length = self._places[key]
            self._file.seek(start)
            return self._file.read(length)

    def found(self, words: str) -> Iterator[int]:
        """Keys of the traces in whose detail the words stand as one text, in upper or lower case."""
        wanted = as_json(words).decode()[1:-1].lower()
        for row in list(self.rows):
            if wanted in zlib.decompress(self.packed(row["key"])).decode().lower():
                yield row["key"]
