"""`Segment`: the rows of some sources in one file a table, written once and never changed.

    raw/NAME.zst              the sources' bytes in pieces (`vault`), only readable by the owner; `.sealed` if encrypted
    records/NAME.parquet      the record tables
    traces/NAME.parquet       a row per trace
    messages/NAME.parquet     the messages of those traces; row group N belongs to row group N of the traces, unless
                              the file says otherwise (`tables.message_groups`)

A segment is written under hidden names and gets its own at `close`, when the disk has it. It is in the store when the
journal names it. Traces go through one by one: what is in memory is one of them, or a row group of a few megabytes.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from postgrad.core.errors import DataError
from postgrad.core.trace import Trace
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.raw import files_of, open_raw
from postgrad.traces.storage.journal import StoredSource
from postgrad.traces.storage.tables import Tables, hidden, new_name, publish
from postgrad.traces.storage.vault import PIECE, Key, Piece, PieceWriter, RawMode


class Segment:
    """A new segment of the store in `folder`; use it in a `with` block, which closes it or leaves nothing behind."""

    def __init__(self, folder: Path, *, raw: RawMode = "keep", key: Key | None = None) -> None:
        assert (raw == "encrypt") == (key is not None)
        self.name = new_name()
        self._raw = raw
        file = f"{self.name}.{'sealed' if key else 'zst'}"
        self._raw_path = folder / "raw" / file
        self._pieces = PieceWriter(hidden(self._raw_path), file, key)
        self._tables = Tables(folder, self.name)

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        there = self._pieces.close()
        if kind is None:
            if there:
                publish(self._raw_path)
            self._tables.close()
        else:
            hidden(self._raw_path).unlink(missing_ok=True)
            self._tables.drop()

    def add(
        self, result: ReadResult, traces: Iterable[Trace], *, reading: str = "", older: Iterable[StoredSource] = ()
    ) -> tuple[StoredSource, list[str]]:
        """Add a reading; give its entry for the journal and the hashes of the sources that it outgrew.

        Args:
            result: what a reader gave.
            traces: its traces as they are to be kept, taken one by one.
            reading: stamp of how it was read.
            older: sources that may be a beginning of this one.

        Raises:
            DataError: the source changed since it was read.
        """
        path = Path(result.source.path)
        place = self._pieces.place
        try:
            pieces, outgrown = self._copy(path, result, [one for one in older if one.size < result.size])
        except DataError:
            self._pieces.cut(place)
            raise
        files = _listing(path) if path.is_dir() else ()
        source = result.source
        stored = StoredSource(str(path), source.format, source.sha256, result.size, dict(result.uses), self.name)
        self._tables.add(result, traces)
        about = {"reading": reading, "raw": self._raw, "pieces": tuple(pieces), "files": files}
        return msgspec.structs.replace(stored, **about), outgrown

    def add_again(
        self, stored: StoredSource, result: ReadResult, traces: Iterable[Trace], *, reading: str
    ) -> StoredSource:
        """Add a new reading of bytes that the store has; its raw layer stays as it is.

        Raises:
            DataError: the reader saw other bytes.
        """
        if result.source.sha256 != stored.sha256:
            raise DataError("the bytes in the store are not those that were read", got=stored.path)
        self._tables.add(result, traces)
        return msgspec.structs.replace(stored, segment=self.name, reading=reading, uses=dict(result.uses))

    def _copy(self, path: Path, result: ReadResult, older: list[StoredSource]) -> tuple[list[Piece], list[str]]:
        """Copy the bytes that were read, check their hash, and name the sources that are a beginning of them.

        Pieces of the longest beginning are kept as they are: only what is new is written.
        """
        outgrown, base = _beginnings(path, older)
        kept = list(base.pieces) if base is not None and base.raw == self._raw != "drop" else []
        with open_raw(path) as stream:
            blocks = _Hashed(stream, result.size, skip=sum(piece.size for piece in kept))
            sha = result.source.sha256
            if self._raw == "drop":
                deque(blocks, maxlen=0)
            else:
                kept += self._pieces.write(blocks, sha, first=len(kept))
        if blocks.digest.hexdigest() != sha:
            raise DataError("the file changed while it was read", got=str(path), do="ingest it again")
        return kept, outgrown


class _Hashed:
    """Blocks of a stream up to `size` bytes, all of them hashed; the first `skip` bytes are hashed only."""

    def __init__(self, stream: BinaryIO, size: int, *, skip: int) -> None:
        self._stream, self._left, self._skip = stream, size, skip
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while self._left and (block := self._read(min(PIECE, self._left, self._skip or PIECE))):
            self.digest.update(block)
            self._left -= len(block)
            if self._skip:
                self._skip -= len(block)
            else:
                yield block

    def _read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end: pieces are not to depend on how a stream gives its bytes."""
        parts = [self._stream.read(size)]
        while parts[-1] and sum(map(len, parts)) < size:
            parts.append(self._stream.read(size - sum(map(len, parts))))
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _beginnings(path: Path, older: list[StoredSource]) -> tuple[list[str], StoredSource | None]:
    """Which of the sources are a beginning of the one at `path`, and the longest of them."""
    found: list[StoredSource] = []
    if older:
        digest, done = hashlib.sha256(), 0
        with open_raw(path) as stream:
            for source in sorted(older, key=lambda one: one.size):
                while done < source.size and (block := stream.read(min(PIECE, source.size - done))):
                    digest.update(block)
                    done += len(block)
                if digest.hexdigest() == source.sha256:
                    found.append(source)
    return [source.sha256 for source in found], found[-1] if found else None


def _listing(folder: Path) -> tuple[tuple[str, int], ...]:
    return tuple((file.relative_to(folder).as_posix(), file.stat().st_size) for file in files_of(folder))
