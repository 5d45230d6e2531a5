"""Content hashes of files and folders: what a run read, so that a resumed or repeated run knows if it changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from postgrad.core.canonical import content_id, file_sha256

_known: dict[tuple[str, int, int], str] = {}


def input_hash(path: Path) -> str:
    """SHA-256 of a file, or of a folder's listing of relative paths and file hashes; hidden files do not count.

    A file is read once per process as long as its size and modification time stay the same.

    Raises:
        OSError: there is nothing at `path`, or it cannot be read.
    """
    if not path.is_dir():
        return _file_hash(path)
    listing = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in relative.parts):
            listing.update(f"{relative.as_posix()}\0{_file_hash(file)}\n".encode(errors="surrogateescape"))
    return listing.hexdigest()


def input_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """Path -> hash for every path that exists."""
    return {str(path): input_hash(path) for path in paths if path.exists()}


def paths_in(value: object, *, outside: Path) -> list[Path]:
    """Existing files and folders that texts inside plain data name, except those in or around the folder `outside`.

    A run's own folder is no input of it, and a folder that contains the run folder would change while it runs.
    """
    here = outside.resolve()
    found = (Path(text).expanduser() for text in texts_in(value) if text and len(text) < 1024 and "\0" not in text)
    resolved = {path: path.resolve() for path in found if path.exists()}
    return sorted(
        path for path, real in resolved.items() if not (real.is_relative_to(here) or here.is_relative_to(real))
    )


def stamp(*parts: object) -> str:
    """A short id of plain data: equal parts have equal stamps."""
    return content_id(list(parts))


def texts_in(value: object) -> Iterable[str]:
    """Every text inside plain data, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def _file_hash(path: Path) -> str:
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _known:
        _known[key] = file_sha256(path)
    return _known[key]
