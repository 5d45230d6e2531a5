"""Writes that are whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.core.canonical import canonical_json, content_id
from postgrad.core.errors import OutsideFailure, UserError
from postgrad.core.files import replacing, write_folder, write_text


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError):
        _fail_halfway(target, RuntimeError())
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_an_outside_failure(tmp_path: Path) -> None:
    with pytest.raises(OutsideFailure, match="No space left"):
        _fail_halfway(tmp_path / "a", OSError(28, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(target, lambda folder: (folder / "one").write_text("1") and None)
    write_folder(target, lambda folder: (folder / "two").write_text("2") and None)
    assert [path.name for path in target.iterdir()] == ["two"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_canonical_json_ignores_key_order_and_keeps_lone_surrogates() -> None:
    assert content_id({"a": 1, "b": 2}) == content_id({"b": 2, "a": 1})
    assert canonical_json("\ud83d") == '"\\ud83d"'


def test_a_user_error_is_one_line() -> None:
    error = UserError("unknown\nkey", got="lrr", expected="lr", do="rename it")
    assert str(error) == "unknown key; got 'lrr'; expected lr; rename it"


def _fail_halfway(target: Path, error: Exception) -> None:
    with replacing(target) as temporary:
        temporary.write_text("half")
        raise error
