"""Pieces of the raw layer: what went in comes out, and only with the right key."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.core.errors import DataError
from postgrad.traces.storage.vault import Key, PieceWriter, read_pieces

KEY, LOCK = Key.create("a horse")
BLOCKS = [b"one" * 1000, b"", b"two"]


def written(folder: Path, key: Key | None, *, sha: str = "f" * 64) -> list[bytes]:
    writer = PieceWriter(folder / "raw" / ".x", "x", key)
    pieces = writer.write(BLOCKS, sha)
    assert writer.close()
    (folder / "raw" / ".x").rename(folder / "raw" / "x")
    return list(read_pieces(folder / "raw", pieces, key))


def test_pieces_come_back(tmp_path: Path) -> None:
    assert written(tmp_path / "plain", None) == BLOCKS
    assert written(tmp_path / "sealed", KEY) == BLOCKS
    assert b"one" not in (tmp_path / "sealed" / "raw" / "x").read_bytes()


def test_the_passphrase_makes_the_key(tmp_path: Path) -> None:
    assert Key.of("a horse", LOCK) == KEY
    with pytest.raises(DataError, match="wrong passphrase"):
        Key.of("a mouse", LOCK)
    assert Key.create("a horse")[0] != KEY, "another store has another salt"
    assert KEY.secret.hex() not in repr(KEY)


def test_a_changed_or_exchanged_piece_is_noticed(tmp_path: Path) -> None:
    writer = PieceWriter(tmp_path / "x", "x", KEY)
    first, second = writer.write([b"one", b"two"], "a" * 64)
    writer.close()
    with pytest.raises(DataError, match="the seal does not fit"):
        list(read_pieces(tmp_path, [second, first], KEY))
    data = bytearray((tmp_path / "x").read_bytes())
    data[-1] ^= 1
    (tmp_path / "x").write_bytes(data)
    pieces = read_pieces(tmp_path, [first, second], KEY)
    assert next(pieces) == b"one"
    with pytest.raises(DataError, match="damaged"):
        next(pieces)


def test_a_damaged_or_missing_file_is_told(tmp_path: Path) -> None:
    writer = PieceWriter(tmp_path / "x", "x", None)
    pieces = writer.write([b"one"], "a" * 64)
    writer.close()
    (tmp_path / "x").write_bytes(b"something else")
    with pytest.raises(DataError, match="damaged"):
        list(read_pieces(tmp_path, pieces, None))
    (tmp_path / "x").unlink()
    with pytest.raises(DataError, match="is gone"):
        list(read_pieces(tmp_path, pieces, None))


def test_what_is_cut_leaves_no_trace(tmp_path: Path) -> None:
    writer = PieceWriter(tmp_path / "x", "x", None)
    kept = writer.write([b"one"], "a" * 64)
    place = writer.place
    writer.write([b"two"], "b" * 64)
    writer.cut(place)
    kept += writer.write([b"three"], "a" * 64, first=1)
    writer.close()
    assert list(read_pieces(tmp_path, kept, None)) == [b"one", b"three"]
    assert (tmp_path / "x").stat().st_size == sum(piece.length for piece in kept)
