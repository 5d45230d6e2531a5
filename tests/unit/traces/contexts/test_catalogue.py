"""Catalogue files: read, checked, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postgrad.core.errors import ConfigError
from postgrad.core.trace import Source
from postgrad.traces.contexts.catalogue import Catalogue, in_range

CLAUDE = Source("a", "claude_code", app="claude-code", app_version="2.1.44")


def written(folder: Path, text: str, name: str = "catalogue.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_names_its_parts_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You are an agent.", encoding="utf-8")
    tools = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    path = written(
        tmp_path,
        "entries:\n  - {app: claude-code, versions: '2.1.*', system_file: prompt.md, tools_file: tools.json}\n",
    )
    found = Catalogue.load(path).find(CLAUDE, model=None, kind="main")
    assert found is not None
    assert (found.system, [tool.name for tool in found.tools or ()]) == ("You are an agent.", ["shell"])
    assert Catalogue.load(path).find(CLAUDE, model=None, kind="compaction") is None


def test_json_is_read_as_well(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"entries": [{"app": "claude-code", "system": "x"}]}), "catalogue.json")
    found = Catalogue.load(path).find(CLAUDE, model="m", kind="main")
    assert found is not None
    assert (found.system, found.tools) == ("x", None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("entries:\n  - {app: a, sytem: x}\n", "system"),
        ("entries:\n  - {app: a, system: x, system_file: y}\n", "not both"),
        ("entries:\n  - {app: a, versions: 'about 2'}\n", "version range"),
        ("entries:\n  - {app: a, system_file: nothere.md}\n", "nothere.md"),
        ("entries:\n  - {app: a, tools: [{description: nameless}]}\n", "definitions with names"),
        ("entries:\n  - {system: x}\n", "app"),
        ("[1]\n", "mapping"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        Catalogue.load(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_catalogue_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Catalogue.load(tmp_path / "nothere.yaml")


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("2.10.0", ">2.9", True),
        ("2.1", "==2.1.0", True),
        ("2.1.0-beta.3", "2.1.*", True),
        ("v0.40.0", ">=0.40,<0.41", True),
        ("0.40.0", "!=0.40.*", False),
        ("2.2", "<2.2", False),
        ("nightly", ">0", False),
        (None, ">0", False),
    ],
)
def test_versions_compare_by_their_numbers(version: str | None, wanted: str, expected: bool) -> None:
    assert in_range(version, wanted) is expected
