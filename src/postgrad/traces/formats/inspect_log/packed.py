"""The members of an `.eval` file: a zip archive whose members can be packed with zstd, and which can be torn.

Python's `zipfile` reads method 93 (zstd, the default of newer writers) only from 3.14 on, and nothing of an archive
whose directory at the end is missing, as a crash leaves it. So the directory is used where there is one, members are
unpacked here, and without a directory the local headers are followed from the start.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

_LOCAL = struct.Struct("<4s5H3I2H")
_MAGIC = b"PK\x03\x04"
_LARGEST = 2 << 30  # bytes that one member may unpack to; the archive is foreign
_STORED, _DEFLATED, _ZSTD = 0, 8, 93


@dataclass(frozen=True)
class Member:
    """A member: its name, where its packed data begins, how long it is (None: not known), and how it is packed."""

    name: str
    start: int
    size: int | None
    method: int


def members(data: bytes) -> tuple[list[Member], bool]:
    """The members in the order of the file, later ones of the same name last, and whether the archive is torn."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [_listed(data, info) for info in archive.infolist() if not info.is_dir()]
        return [member for member in found if member], False
    except (zipfile.BadZipFile, ValueError, struct.error, EOFError):
        return list(_walked(data)), True


def unpack(data: bytes, member: Member) -> bytes | None:
    """The member's bytes, None where they are broken, cut off, or packed in an unknown way."""
    packed = data[member.start : None if member.size is None else member.start + member.size]
    found = _unpacked(packed, member.method)
    return found[0] if found else None


def _listed(data: bytes, info: zipfile.ZipInfo) -> Member | None:
    header = data[info.header_offset : info.header_offset + _LOCAL.size]
    if len(header) < _LOCAL.size or header[:4] != _MAGIC:
        return None
    *_, name, extra = _LOCAL.unpack(header)
    start = info.header_offset + _LOCAL.size + name + extra
    return Member(info.filename, start, info.compress_size, info.compress_type)


def _walked(data: bytes) -> Iterator[Member]:
    """Members by their local headers; one whose length is not in its header ends where its data ends."""
    at = 0
    while data[at : at + 4] == _MAGIC and len(data) - at >= _LOCAL.size:
        _, _, flags, method, _, _, _, size, _, name, extra = _LOCAL.unpack(data[at : at + _LOCAL.size])
        start = at + _LOCAL.size + name + extra
        known = None if flags & 8 and not size else size
        named = data[at + _LOCAL.size : at + _LOCAL.size + name].decode("utf-8", "replace")
        yield Member(named, start, known, method)
        if known is None:
            found = _unpacked(data[start:], method)
            known = found[1] if found else len(data)
        at = data.find(_MAGIC, start + known)
        if at < 0:
            return


def _unpacked(packed: bytes, method: int) -> tuple[bytes, int] | None:
    """The unpacked bytes, and how many packed ones they took."""
    try:
        if method == _STORED:
            return packed, len(packed)
        if method == _DEFLATED:
            engine = zlib.decompressobj(-15)
            found = engine.decompress(packed, _LARGEST)
            return (found, len(packed) - len(engine.unused_data)) if engine.eof else None
        if method == _ZSTD:
            reader = zstandard.ZstdDecompressor().decompressobj()
            found = reader.decompress(packed)
            return (found, len(packed) - len(reader.unused_data)) if reader.eof and len(found) <= _LARGEST else None
    except (zlib.error, zstandard.ZstdError, MemoryError):
        return None
    return None
