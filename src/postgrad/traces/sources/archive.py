"""Zip archives as folders: ``export.zip/conversations.json`` is a path, also through an archive in an archive.

An archive is foreign data: one that is broken, needs a password, is packed in a way that this Python cannot read, or
that unpacks to absurdly more than its size is a `DataError` and nothing worse.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from postgrad.core.errors import DataError

ZIP = b"PK\x03\x04"
FAULTS = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, ValueError, KeyError)
"""What the zip library raises: RuntimeError for a password, NotImplementedError for an unknown packing."""
_DEEPEST = 4  # archives in archives
_BOMB_RATIO, _BOMB_SIZE = 200, 256 << 20
_IN_MEMORY = 64 << 20


class Archive:
    """An open archive and its files by name."""

    def __init__(self, file: Path | IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file)
        self.entries = {entry.filename: entry for entry in self._zip.infolist() if not entry.is_dir()}

    def open(self, name: str) -> BinaryIO:
        """The bytes of a file."""
        entry = self.entries[name]
        if is_bomb(packed=entry.compress_size, unpacked=entry.file_size):
            raise DataError(
                f"the archive unpacks {entry.compress_size} bytes to {entry.file_size}", got=name, do="unpack it first"
            )
        return cast(BinaryIO, self._zip.open(entry))

    def inner(self, name: str) -> Archive:
        """The archive that is a file of this one; going back and forth in it needs a copy."""
        copy = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # lives as long as the archive
        with self.open(name) as packed:
            shutil.copyfileobj(packed, copy, 1 << 20)
        return Archive(cast(IO[bytes], copy))


def is_bomb(*, packed: int, unpacked: int) -> bool:
    """Whether so few bytes that give so many are no honest data. Sizes in bytes."""
    return unpacked > _BOMB_SIZE and unpacked > _BOMB_RATIO * max(1, packed)


def archive_of(path: Path) -> Path | None:
    """The archive file on disk that `path` goes into; None for a path of the file system, or of nothing."""
    if path.exists():
        return None
    return next((parent for parent in path.parents if parent.is_file()), None)


def open_member(path: Path) -> BinaryIO:
    """The bytes of the file at `path` below an archive.

    Raises:
        OSError: it is not there.
        DataError: it cannot be unpacked.
    """
    try:
        archive, name = _find(path)
        return archive.open(name)
    except FAULTS as error:
        raise DataError(f"cannot read the file: {error}", got=str(path)) from None


def entry_of(path: Path) -> zipfile.ZipInfo:
    """What the archive says about the file at `path`: size, checksum.

    Raises:
        OSError: it is not there.
        DataError: the archive is broken.
    """
    try:
        archive, name = _find(path)
    except FAULTS as error:
        raise DataError(f"cannot read the archive: {error}", got=str(path)) from None
    return archive.entries[name]


def members(path: Path) -> list[Path]:
    """The files in the archive at `path` as paths below it, in the order of their names; empty if it is no archive.

    A name that would lead out of the archive (absolute, or with "..") is left out.

    Raises:
        DataError: it is a broken archive.
    """
    try:
        with path.open("rb") if path.is_file() else open_member(path) as file:
            if file.read(4) != ZIP:
                return []
        archive = _opened(path, *_state(path)) if path.is_file() else _inner(path)
    except (OSError, *FAULTS) as error:
        raise DataError(f"cannot read the archive: {error}", got=str(path)) from None
    names = [PurePosixPath(name) for name in archive.entries]
    return sorted(path / name for name in names if ".." not in name.parts and not name.is_absolute())


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _opened(path: Path, size: int, modified: int) -> Archive:
    """An archive with thousands of files is opened once; `size` and `modified` notice that it is another now."""
    return Archive(path)


@lru_cache(maxsize=2)
def _nested(path: Path, name: str, state: tuple[int, int]) -> Archive:
    return _opened(path, *state).inner(name)


def _inner(path: Path) -> Archive:
    archive, name = _find(path)
    outer = archive_of(path)
    if outer is not None and (outer / name) == path:
        return _nested(outer, name, _state(outer))
    return archive.inner(name)


def _find(path: Path) -> tuple[Archive, str]:
    """The innermost archive on the way to `path`, and the name of the file there."""
    outer = archive_of(path)
    if outer is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    archive, rest = _opened(outer, *_state(outer)), list(path.relative_to(outer).parts)
    for depth in range(_DEEPEST):
        ways = ("/".join(rest[:length]) for length in range(len(rest), 0, -1))
        name = next((way for way in ways if way in archive.entries), None)
        if name is None:
            break
        rest = rest[name.count("/") + 1 :]
        if not rest:
            return archive, name
        archive = _nested(outer, name, _state(outer)) if depth == 0 else archive.inner(name)
    raise FileNotFoundError(errno.ENOENT, "no such file in the archive", str(path))
