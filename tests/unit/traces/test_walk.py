"""From names to sources: folders, archives in archives, what is left out, and hostile archives."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from postgrad.core.errors import DataError
from postgrad.traces.sources import archive
from postgrad.traces.sources.raw import open_raw, state
from postgrad.traces.walk import Found, walk


def nothing(path: Path) -> bool:
    return False


def names(root: Path, *under: str) -> list[str]:
    return [str(one.path.relative_to(root)) for one in walk([str(root / name) for name in under], nothing)]


def zipped(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name.replace("__", "/"), content)
    return data.getvalue()


def test_hidden_files_stay_hidden_but_those_of_tools_that_hide_theirs(tmp_path: Path) -> None:
    for name in (".git/config", ".aider.chat.history.md", ".specstory/history/a.md", "src/a.py", ".env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = names(tmp_path.parent, tmp_path.name)
    assert [name.split("/", 1)[1] for name in found] == [
        ".aider.chat.history.md",
        ".specstory/history/a.md",
        "src/a.py",
    ]


def test_what_a_run_writes_of_itself_beside_its_traces_is_no_source(tmp_path: Path) -> None:
    for name in ("config.json", "environment.json", "inputs.json", "result.json", "captures.jsonl"):
        (tmp_path / name).write_text("{}")
    assert names(tmp_path.parent, tmp_path.name) == [f"{tmp_path.name}/captures.jsonl"]
    (tmp_path / "environment.json").unlink()  # another tool's folder
    assert len(names(tmp_path.parent, tmp_path.name)) == 4


def test_what_is_recognised_as_a_whole_is_not_gone_into(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "a.json").write_text("{}")
    (tmp_path / "log.eval").write_bytes(zipped(a=b"x"))
    whole = {tmp_path / "task", tmp_path / "log.eval"}
    found = list(walk([str(tmp_path)], whole.__contains__))
    assert found == [Found(tmp_path / "log.eval"), Found(tmp_path / "task")]


def test_links_do_not_go_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "x").write_text("x")
    (tmp_path / "a" / "y").symlink_to(tmp_path / "a" / "x")
    assert names(tmp_path, "a") == ["a/x"], "the link is the same file"


def test_a_member_of_an_archive_in_an_archive(tmp_path: Path) -> None:
    inner = zipped(deep__x=b"in")
    (tmp_path / "a.zip").write_bytes(zipped(b__inner_zip=inner, c=zipped(d=zipped(e=b"far"))))
    assert names(tmp_path, "a.zip") == ["a.zip/b/inner_zip/deep/x", "a.zip/c/d/e"]
    assert open_raw(tmp_path / "a.zip" / "b/inner_zip/deep/x").read() == b"in"
    assert open_raw(tmp_path / "a.zip" / "c/d/e").read() == b"far"
    (found,) = walk([str(tmp_path / "a.zip" / "c/d/e")], nothing)
    assert found.alone


def test_an_archive_that_changes_is_another(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(x=b"one"))
    before = state(path / "x")
    assert open_raw(path / "x").read() == b"one"
    path.write_bytes(zipped(x=b"three"))
    assert open_raw(path / "x").read() == b"three"
    assert state(path / "x") != before


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../up"])
def test_names_that_lead_out_of_an_archive_are_left_out(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as target:
        target.writestr(name, "x")
        target.writestr("good", "x")
    assert archive.members(tmp_path / "a.zip") == [tmp_path / "a.zip" / "good"]


def test_bombs_passwords_and_unknown_packing_are_the_users_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_BOMB_SIZE", 1 << 16)
    (tmp_path / "bomb.zip").write_bytes(zipped(x=bytes(1 << 20)))
    with pytest.raises(DataError, match="unpacks"):
        open_raw(tmp_path / "bomb.zip" / "x")
    data = bytearray(zipped(x=b"secret"))
    for start in (data.find(b"PK\x03\x04") + 6, data.find(b"PK\x01\x02") + 8):
        data[start] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    with pytest.raises(DataError, match="password"):
        open_raw(tmp_path / "locked.zip" / "x")
    data = bytearray(zipped(x=b"secret"))
    for start in (data.find(b"PK\x03\x04") + 8, data.find(b"PK\x01\x02") + 10):
        data[start] = 99
    (tmp_path / "odd.zip").write_bytes(data)
    with pytest.raises(DataError, match="compression"):
        open_raw(tmp_path / "odd.zip" / "x")


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("x")

    def refuse(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    (found,) = walk([str(tmp_path)], nothing)
    assert found.fault == "cannot read the folder: Permission denied"
