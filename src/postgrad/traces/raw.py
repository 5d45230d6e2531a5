"""`open_raw(path)`: the uncompressed bytes of a source, whatever it lies in.

A source is a file, plain or packed with gzip or zstd; a file inside a zip archive, whose path goes on below the
archive's (``export.zip/conversations.json``); an SQLite database, of which the bytes are one consistent snapshot
with its write-ahead log in it; or a folder that is read as one source, of which the bytes are its files' bytes in the
order of their paths. Containers are known by their first bytes and not by their names.
"""

from __future__ import annotations

import gzip
import io
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from postgrad.core.errors import DataError

STREAM_FAULTS = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, zipfile.BadZipFile)
"""What reading a broken container raises."""
SQLITE = b"SQLite format 3\0"
ZIP = b"PK\x03\x04"


def open_raw(path: Path) -> BinaryIO:
    """The uncompressed bytes of a source.

    Raises:
        DataError: it cannot be opened.
    """
    try:
        if path.is_dir():
            return _joined(path)
        archive = archive_of(path)
        return _unpacked(archive.open(member_of(path, archive)) if archive else path.open("rb"), path)
    except OSError as error:
        raise DataError(f"cannot read the file: {error.strerror or error}", got=str(path)) from None
    except (KeyError, *STREAM_FAULTS, sqlite3.Error) as error:
        raise DataError(f"cannot read the file: {error}", got=str(path)) from None


def archive_of(path: Path) -> zipfile.ZipFile | None:
    """The zip archive that `path` lies in, None for a file of the file system."""
    if path.exists():
        return None
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    return zipfile.ZipFile(archive) if archive else None


def member_of(path: Path, archive: zipfile.ZipFile) -> str:
    """The name inside `archive` of the file at `path`."""
    return path.relative_to(Path(cast(str, archive.filename))).as_posix()


def members(path: Path) -> list[Path]:
    """The files in a zip archive, as paths below it; empty for every other file."""
    with path.open("rb") as file:
        if file.read(4) != ZIP:
            return []
    try:
        with zipfile.ZipFile(path) as archive:
            return [path / entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except STREAM_FAULTS as error:
        raise DataError(f"cannot read the archive: {error}", got=str(path)) from None


def files_of(folder: Path) -> Iterator[Path]:
    """The files of a folder that is one source, in the order in which its bytes are joined."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _unpacked(stream: Any, path: Path) -> BinaryIO:
    magic = stream.peek(16)[:16]
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        return cast(BinaryIO, io.BufferedReader(cast(Any, reader)))
    if magic == SQLITE and path.is_file():
        stream.close()
        return io.BytesIO(snapshot(path))
    return cast(BinaryIO, stream)


def snapshot(path: Path) -> bytes:
    """One consistent state of an SQLite database, its write-ahead log included, without writing beside it."""
    source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(":memory:")) as copy:
        source.backup(copy)
        return copy.serialize()


def _joined(folder: Path) -> BinaryIO:
    return io.BytesIO(b"".join(path.read_bytes() for path in files_of(folder)))
