"""What is kept of a catalogue needs no other file, says the same, and is written only when it changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postgrad.core.errors import ConfigError
from postgrad.core.trace import Source
from postgrad.traces.contexts.catalogue import Catalogue
from postgrad.traces.contexts.kept_catalogue import keep, kept

ENTRIES = """\
entries:
  - app: claude-code
    versions: ">=2.1,<3"
    models: ["claude-opus-*"]
    system_file: prompts/p.md
    tools_file: tools.json
    tokenizer_file: tok.json
  - app: "*"
    kinds: [subagent]
    system: Be brief.
"""


def given(folder: Path) -> Path:
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "p.md").write_text("You are a coder. \u00e9\n")
    (folder / "tools.json").write_text(json.dumps([{"name": "Bash", "input_schema": {"type": "object"}}]))
    (folder / "tok.json").write_text("{}")
    (folder / "catalogue.yaml").write_text(ENTRIES)
    return folder / "catalogue.yaml"


def test_it_says_the_same_without_the_files_that_it_named(tmp_path: Path) -> None:
    path, store = given(tmp_path / "given"), tmp_path / "store"
    store.mkdir()
    assert kept(store) is None
    before = Catalogue.load(path)
    keep(path, store)
    for file in (tmp_path / "given").rglob("*.*"):
        file.unlink()
    found = kept(store)
    assert found is not None
    after = Catalogue.load(found)
    source = Source("f", "claude_code", app="claude-code", app_version="2.1.44")
    for catalogue in (before, after):
        main = catalogue.find(source, model="claude-opus-4", kind="main")
        assert main is not None
        assert (main.system, [tool.name for tool in main.tools or ()]) == ("You are a coder. \u00e9\n", ["Bash"])
        assert catalogue.find(source, model="other", kind="main") is None
        aside = catalogue.find(source, model="other", kind="subagent")
        assert aside is not None
        assert (aside.system, aside.tools) == ("Be brief.", None)
    tokenizer = after.fillings[0].tokenizer
    assert tokenizer is not None
    assert tokenizer.parent == store
    assert tokenizer.read_text() == "{}"


def test_the_same_again_writes_nothing_and_another_one_replaces_it(tmp_path: Path) -> None:
    path, store = given(tmp_path / "given"), tmp_path / "store"
    store.mkdir()
    keep(path, store)
    file = kept(store)
    assert file is not None
    first = file.stat()
    keep(path, store)
    keep(file, store)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    path.write_text("entries: [{app: codex-cli, system: Hi.}]\n")
    keep(path, store)
    assert [filling.entry.app for filling in Catalogue.load(file).fillings] == ["codex-cli"]


def test_a_tokenizer_that_is_not_there_is_told_and_nothing_is_kept(tmp_path: Path) -> None:
    path = given(tmp_path / "given")
    (tmp_path / "given" / "tok.json").unlink()
    with pytest.raises(ConfigError, match=r"tok\.json"):
        keep(path, tmp_path)
    assert kept(tmp_path) is None
