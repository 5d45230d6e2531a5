"""Hashes of inputs, and which texts of a configuration count as inputs."""

from __future__ import annotations

import os
from pathlib import Path

from postgrad.run.inputs import input_hash, paths_in, stamp


def fill(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_folder_is_its_names_and_contents(tmp_path: Path) -> None:
    a, b = fill(tmp_path / "a", x="1", y="2"), fill(tmp_path / "b", y="2", x="1")
    assert input_hash(a) == input_hash(b)
    assert input_hash(fill(tmp_path / "c", x="2", y="1")) != input_hash(a)
    assert input_hash(fill(tmp_path / "d", x="1", z="2")) != input_hash(a)


def test_hidden_files_do_not_count(tmp_path: Path) -> None:
    a = fill(tmp_path / "a", x="1")
    before = input_hash(a)
    (a / ".lock").touch()
    assert input_hash(a) == before


def test_a_rewritten_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("1")
    before = input_hash(file)
    file.write_text("2")
    os.utime(file, ns=(1, 1))  # same size; only the time tells
    assert input_hash(file) != before


def test_only_existing_paths_outside_the_run_count(tmp_path: Path) -> None:
    source, run = fill(tmp_path / "source", x="1"), fill(tmp_path / "run", y="1")
    config = {
        "a": str(source / "x"),
        "b": [str(run / "y"), str(tmp_path), "no such file", ""],
        "c": {"d": str(source)},
        "e": "nul\0byte",
        "f": "x" * 5000,
    }
    assert paths_in(config, outside=run) == [source, source / "x"]


def test_a_stamp_depends_on_values_and_not_on_the_order_of_keys() -> None:
    assert stamp({"a": 1, "b": 2}, []) == stamp({"b": 2, "a": 1}, [])
    assert stamp({"a": 1}, []) != stamp({"a": 2}, [])
