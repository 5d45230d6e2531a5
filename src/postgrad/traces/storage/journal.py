"""`Journal`: what is in a store. One file to which lines are only added, so a kill at any moment leaves a valid store.

A line says that a source is in the store (`source`, with what `ingest` told about it), that a path was looked at
(`seen`), that sources are gone (`gone`), that a segment holds rows of nobody (`stale`) or has been written anew without
them under another name (`moved`). Later lines win; a last line without its end was never written. What no line names
is not in the store, whatever files lie there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import plain_json
from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.files import write_bytes
from postgrad.traces.storage.vault import Piece, RawMode

_WORTH = 1 << 20  # bytes of lines that have lost their meaning, above which the file is written anew


class StoredSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source in the store: where it was read, its size and hash, and how its records were used.

    `reading` stamps how it was read (reader version, redaction, ...), `segment` names the files with its rows, `files`
    are name and size of the files of a folder, `report` is what `ingest` printed about it, as JSON.
    """

    path: str
    format: str
    sha256: str
    size: int
    uses: dict[str, int]
    segment: str
    reading: str = ""
    raw: RawMode = "keep"
    pieces: tuple[Piece, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    report: msgspec.Raw = msgspec.Raw(b"null")


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path as it was when it was last read: `sha256` of the source there, or why it is none."""

    path: str
    state: tuple[int | str, ...]
    reading: str
    sha256: str = ""
    report: msgspec.Raw = msgspec.Raw(b"null")


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the journal."""

    source: StoredSource | None = None
    seen: Seen | None = None
    gone: tuple[str, ...] = ()
    stale: str = ""
    moved: tuple[str, str] | None = None


_DECODER = msgspec.json.Decoder(Line)
_ENCODER = msgspec.json.Encoder()


class Journal:
    """The lines of `path`, taken together. `sources` by hash, `seen` by path, `stale` segments hold dead rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sources: dict[str, StoredSource] = {}
        self.seen: dict[str, Seen] = {}
        self.stale: set[str] = set()
        self._whole = self._dead = 0
        self._stamp = self._now()
        self._sizes: dict[str, int] = {}
        for line in self._lines():
            self._take(_line(line, path), len(line))

    @property
    def current(self) -> bool:
        """Whether the file is as it was when it was read; only asked before anything is written."""
        return self._stamp == self._now()

    def append(self, lines: Iterable[Line]) -> None:
        """Write lines and wait until the disk has them.

        Raises:
            OutsideFailure: the disk is full or not writable.
        """
        texts = [(line, _text(line)) for line in lines]
        if not texts:
            return
        try:
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                os.ftruncate(descriptor, self._whole)  # a torn last line ends here
                os.lseek(descriptor, self._whole, os.SEEK_SET)
                with os.fdopen(os.dup(descriptor), "wb") as file:
                    file.writelines(text for _, text in texts)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise OutsideFailure(f"cannot write {self.path}: {error.strerror or error}") from error
        for line, text in texts:
            self._take(line, len(text) - 1)
            self._whole += len(text)

    def tidy(self) -> None:
        """Write the file anew when most of it has lost its meaning."""
        if self._dead > max(_WORTH, self._whole // 2):
            lines = [Line(source=source) for source in self.sources.values()]
            lines += [Line(seen=seen) for seen in self.seen.values()]
            texts = [_text(line) for line in lines]
            write_bytes(self.path, b"".join(texts))
            self.path.chmod(0o600)
            self._whole, self._dead = sum(map(len, texts)), 0

    def _now(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_size, status.st_mtime_ns, status.st_ino

    def _lines(self) -> list[bytes]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        self._whole = data.rfind(b"\n") + 1
        return data[: self._whole].split(b"\n")[:-1]

    def _take(self, line: Line, size: int) -> None:
        if line.source is not None:
            self._forget(line.source.sha256)
            self._count(line.source.sha256, size)
            self.sources[line.source.sha256] = line.source
        if line.seen is not None:
            self._count(line.seen.path, size)
            self.seen[line.seen.path] = line.seen
        for sha in line.gone:
            self._forget(sha)
            self._dead += self._sizes.pop(sha, 0)
        if line.stale:
            self.stale.add(line.stale)
        if line.moved is not None:
            self._move(*line.moved)

    def _forget(self, sha: str) -> None:
        """The rows of a source are dead."""
        old = self.sources.pop(sha, None)
        if old is not None:
            self.stale.add(old.segment)

    def _move(self, old: str, new: str) -> None:
        self.stale.discard(old)
        for sha, source in self.sources.items():
            if source.segment == old:
                self.sources[sha] = msgspec.structs.replace(source, segment=new)

    def _count(self, key: str, size: int) -> None:
        self._dead += self._sizes.get(key, 0)
        self._sizes[key] = size


def _text(line: Line) -> bytearray:
    """A line with its end. Paths need not be UTF-8: what is not is written as escapes."""
    text = bytearray()
    try:
        _ENCODER.encode_into(line, text)
    except UnicodeEncodeError:
        value: dict[str, Any] = {}
        for name in ("source", "seen"):
            part = getattr(line, name)
            if part is not None:
                fields = {field: getattr(part, field) for field in part.__struct_fields__ if field != "report"}
                value[name] = {**msgspec.to_builtins(fields), "report": json.loads(bytes(part.report))}
        text[:] = plain_json(value).encode()
    text += b"\n"
    return text


def _line(data: bytes, path: Path) -> Line:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # a lone surrogate in it, which json below can read; or damage, which it will name
    try:
        value = json.loads(data)
        for part in (value.get("source"), value.get("seen")):
            if part and "report" in part:
                part["report"] = msgspec.Raw(plain_json(part["report"]).encode())
        return msgspec.convert(value, Line)
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"the store's journal is damaged: {error}", got=str(path)) from None
