"""`open_raw(path)`: the uncompressed bytes of a source, whatever it lies in.

A source is a file, plain or packed with gzip or zstd; a file inside a zip archive, whose path goes on below the
archive's (`archive`); an SQLite database, of which the bytes are one consistent snapshot with its write-ahead log in
it; or a folder that is read as one source, of which the bytes are its files' bytes in the order of their paths.
Containers are known by their first bytes and not by their names.

`state(path)` tells cheaply whether a source is as it was. A database that is in use changes between two looks, so
`holding(path)` keeps one snapshot for as long as a source is being read and stored.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from postgrad.core.errors import DataError
from postgrad.traces.sources.archive import ZIP, archive_of, entry_of, members, open_member

__all__ = [
    "SQLITE",
    "STREAM_FAULTS",
    "ZIP",
    "files_of",
    "holding",
    "members",
    "open_raw",
    "snapshot",
    "start_of",
    "state",
    "whole",
]

STREAM_FAULTS = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, zipfile.BadZipFile)
"""What reading a broken container raises."""
SQLITE = b"SQLite format 3\0"
_BUFFER = 1 << 20

_held: dict[Path, Path] = {}  # databases whose snapshot is in use, and where it lies


def open_raw(path: Path) -> BinaryIO:
    """The uncompressed bytes of a source.

    Raises:
        DataError: it cannot be opened.
    """
    try:
        if path.is_dir():
            return io.BufferedReader(_Joined(path), _BUFFER)
        packed = open_member(path) if archive_of(path) else path.open("rb", buffering=_BUFFER)
        return _unpacked(packed, path)
    except OSError as error:
        raise DataError(f"cannot read the file: {error.strerror or error}", got=str(path)) from None
    except (*STREAM_FAULTS, sqlite3.Error) as error:
        raise DataError(f"cannot read the file: {error}", got=str(path)) from None


def start_of(path: Path, size: int) -> bytes:
    """At most the first `size` bytes of a source, to tell its form; none where its container is broken there.

    Raises:
        DataError: it cannot be opened.
    """
    with open_raw(path) as stream:
        try:
            return stream.read(size)
        except STREAM_FAULTS:
            return b""


def whole(path: Path) -> bytes:
    """All bytes of a source that is of no use in part.

    Raises:
        DataError: it cannot be opened, or its container is broken.
    """
    with open_raw(path) as stream:
        try:
            return stream.read()
        except STREAM_FAULTS as error:
            raise DataError(f"the compressed data is broken: {error}", got=str(path)) from None


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Inside, every `open_raw` of a database gives the same snapshot; other sources are not affected."""
    if not _is_database(path) or path in _held:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="postgrad-") as folder:
        copy = Path(folder) / path.name
        try:
            _backup(path, copy)
        except (sqlite3.Error, OSError):  # `open_raw` says what is wrong with it
            yield
            return
        _held[path] = copy
        try:
            yield
        finally:
            del _held[path]


def state(path: Path) -> list[int | str]:
    """Size, modification time and identity of a source: equal as long as nobody writes to it. Plain JSON data.

    Raises:
        DataError: it is not there.
    """
    try:
        if path.is_dir():
            return [_listing(path)]
        outer = archive_of(path)
        if outer is not None:
            entry = entry_of(path)
            return [*_status(outer), entry.file_size, entry.CRC]
        log = path.with_name(path.name + "-wal")
        return [*_status(path), *(_status(log) if log.exists() and _is_database(path) else ())]
    except OSError as error:
        raise DataError(f"cannot read the file: {error.strerror or error}", got=str(path)) from None


def files_of(folder: Path) -> Iterator[Path]:
    """The files of a folder that is one source, in the order in which its bytes are joined."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def snapshot(path: Path) -> BinaryIO:
    """One consistent state of an SQLite database, its write-ahead log included, without writing beside it."""
    if path in _held:
        return _held[path].open("rb", buffering=_BUFFER)
    with tempfile.TemporaryDirectory(prefix="postgrad-") as folder:
        copy = Path(folder) / "snapshot"
        _backup(path, copy)
        return copy.open("rb", buffering=_BUFFER)  # stays readable after its name is gone


def _unpacked(stream: Any, path: Path) -> BinaryIO:
    magic = stream.peek(16)[:16]
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        return io.BufferedReader(reader, _BUFFER)
    if magic == SQLITE and path.is_file():
        stream.close()
        return snapshot(path)
    return cast(BinaryIO, stream)


def _is_database(path: Path) -> bool:
    """Whether it is one; what cannot be opened is said by whoever opens it to read."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _backup(path: Path, copy: Path) -> None:
    source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _status(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _listing(folder: Path) -> str:
    """A digest of names, sizes and times of the files in a folder."""
    digest = hashlib.sha256()
    for file in files_of(folder):
        digest.update(f"{os.fsencode(file.relative_to(folder))!r} {_status(file)}\n".encode())
    return digest.hexdigest()


class _Joined(io.RawIOBase):
    """The files of a folder one after the other; one is open at a time."""

    def __init__(self, folder: Path) -> None:
        self._files = files_of(folder)
        self._open: io.FileIO | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._open is None:
                file = next(self._files, None)
                if file is None:
                    return 0
                self._open = file.open("rb", buffering=0)
            if count := self._open.readinto(buffer):
                return count
            self._open.close()
            self._open = None
