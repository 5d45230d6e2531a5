"""Files that are never half-written: write beside, flush, then rename."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from postgrad.core.canonical import plain_json
from postgrad.core.errors import OutsideFailure


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it takes the place of `path`, else it is removed.

    Raises:
        OutsideFailure: the disk is full or not writable.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise OutsideFailure(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON in one step, keys in their order: a tool's parameters are shown to models as they stand."""
    write_text(path, plain_json(value) + "\n")


def append_line(path: Path, line: bytes) -> None:
    """Add `line` and its end, all of it or nothing; on return it is with the system, so no kill can lose it.

    A full disk takes a part of what it is given and calls that no error. Not covered: two writers on a full disk.

    Raises:
        OutsideFailure: the disk is full or not writable.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as stream:
            before, left = os.fstat(stream.fileno()).st_size, line + b"\n"
            try:
                while left:
                    left = left[stream.write(left) :]
            except OSError:
                os.ftruncate(stream.fileno(), before)
                raise
    except OSError as error:
        raise OutsideFailure(f"cannot write {path}: {error.strerror or error}") from error


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write a folder beside `path`, then put it in place; a folder already there is replaced.

    Raises:
        OutsideFailure: the disk is full or not writable.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    old = temporary.with_suffix(".old")
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
    except OSError as error:
        raise OutsideFailure(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _flush(path: Path) -> None:
    """Force a file's bytes to disk, so that a rename never outruns its content."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
