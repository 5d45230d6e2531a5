"""What a store remembers between two ingests: the catalogue, the edition of the code, and that nothing has changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.errors import ConfigError
from postgrad.run.config import load
from postgrad.traces import readers
from postgrad.traces.sources.head import Head
from postgrad.traces.storage.store import Store
from postgrad.verbs.ingest import IngestConfig, run
from unit.traces.formats.claude_file import ClaudeFile, text

FILLING = {"app": "claude-code", "system_file": "prompt.md", "tools": [{"name": "Bash", "input_schema": {}}]}


def session(folder: Path, name: str = "s.jsonl") -> Path:
    """One step; the first message says which session it is."""
    file = ClaudeFile()
    file.user(f"go {name}")
    file.assistant("m1", text("Gone."))
    for row in file.rows:
        row |= {key: f"{name}-{row[key]}" for key in ("uuid", "parentUuid") if row[key]}
    folder.mkdir(exist_ok=True)
    return file.write(folder / name)


def ingest(tmp_path: Path, *paths: Path, **options: Any) -> dict[str, Any]:
    return run(IngestConfig(paths=[str(path) for path in paths], store=tmp_path / "store", **options), tmp_path / "run")


def test_an_unchanged_source_loads_nothing_that_reads_or_writes_tables(tmp_path: Path) -> None:
    """In a process of its own, as from the shell: neither Arrow nor the secret scanner nor a single reader."""
    path = session(tmp_path / "in")
    first = ingest(tmp_path, path)
    program = (
        "import json, sys; from pathlib import Path; from postgrad.verbs.ingest import IngestConfig, run;"
        f"result = run(IngestConfig(paths=[{str(path)!r}], store=Path({str(tmp_path / 'store')!r})), Path());"
        "heavy = ['pyarrow', 'betterleaks', 'numpy', 'rich', 'torch', 'hyperscan', 'postgrad.traces.sources.head',"
        " 'postgrad.signals.error_sites.sites', 'postgrad.traces.formats.claude_code.reader'];"
        "print(json.dumps([result, [name for name in heavy if name in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [first, []]


def test_a_catalogue_given_once_holds_for_the_store(tmp_path: Path) -> None:
    """Its files may go: a later source without the option has the prompt and the tools as well."""
    (tmp_path / "prompt.md").write_text("Be brief.")
    (tmp_path / "catalogue.json").write_text(json.dumps({"entries": [FILLING]}))
    one, two = session(tmp_path / "in", "one.jsonl"), session(tmp_path / "in", "two.jsonl")
    given = ingest(tmp_path, one, catalogue=tmp_path / "catalogue.json")
    (tmp_path / "catalogue.json").unlink()
    (tmp_path / "prompt.md").unlink()
    later = ingest(tmp_path, two)
    assert later["fidelity"] == given["fidelity"] == {"reconstructed": 1}
    assert run(IngestConfig(rebuild=tmp_path / "store"), tmp_path / "run")["up_to_date"] == 2
    traces = list(Store(tmp_path / "store").traces())
    assert [trace.context(trace.steps[0])[0].text for trace in traces] == ["Be brief.", "Be brief."]
    assert [trace.steps[0].request.tools[0].name for trace in traces] == ["Bash", "Bash"]


def test_another_range_of_versions_is_another_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What no longer holds for the source's version goes out of its contexts, and a line says what is done."""
    path = session(tmp_path / "in")
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps({"entries": [{"app": "claude-code", "system": "Be brief."}]}))
    ingest(tmp_path, path, catalogue=file)
    path.unlink()
    file.write_text(json.dumps({"entries": [{"app": "claude-code", "system": "Be brief.", "versions": "<0.1"}]}))
    capsys.readouterr()
    ingest(tmp_path, session(tmp_path / "in", "other.jsonl"), catalogue=file)
    assert "1 of 1 source(s) in the store were read by another version" in capsys.readouterr().err
    for trace in Store(tmp_path / "store").traces():
        assert trace.context(trace.steps[0])[0].role == "user"


def test_a_store_of_an_older_edition_is_read_anew_by_the_next_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also what is not among the names; what kept no raw bytes is told."""
    gone, dropped = session(tmp_path / "in", "gone.jsonl"), session(tmp_path / "in", "dropped.jsonl")
    ingest(tmp_path, gone)
    ingest(tmp_path, dropped, raw="drop")
    gone.unlink()
    dropped.unlink()
    before = {source.sha256: source.reading for source in Store(tmp_path / "store").sources()}
    monkeypatch.setattr("postgrad.traces.editions.EDITION", 99)
    ingest(tmp_path, session(tmp_path / "in", "new.jsonl"))
    told = capsys.readouterr().err
    assert "2 of 2 source(s) in the store were read by another version of postgrad" in told
    assert "1 source(s) stay as they were read: their raw bytes were dropped" in told
    after = {source.path: before.get(source.sha256) == source.reading for source in Store(tmp_path / "store").sources()}
    assert after == {str(gone): False, str(dropped): True, str(tmp_path / "in" / "new.jsonl"): False}
    assert len(list(Store(tmp_path / "store").traces())) == 3


def test_what_was_read_by_a_reader_from_outside_stays_where_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another source is read as ever; nobody asks for the missing reader."""
    outside = "postgrad.traces.formats.claude_code.reader:ClaudeCode"
    ingest(tmp_path, session(tmp_path / "in", "one.jsonl"), format=outside)
    other = session(tmp_path / "in", "two.jsonl")

    def gone(name: str) -> str:
        raise ConfigError("unknown format", got=name)

    monkeypatch.setattr("postgrad.traces.readers.version", gone)
    assert ingest(tmp_path, other)["sources"][0]["steps"] == 1
    assert len(list(Store(tmp_path / "store").traces())) == 2


def test_a_reader_that_fails_while_it_looks_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read by the reader that knows it, and the failure is told with its place and without its words."""
    path = session(tmp_path / "in")

    def fails(self: object, head: Head) -> bool:
        raise KeyError("a word of the file")

    monkeypatch.setattr("postgrad.traces.formats.claude_code.stream.ClaudeStream.recognises", fails)
    monkeypatch.setattr("postgrad.traces.table.READERS", dict(readers.READERS))
    order = ["claude_stream", *(name for name in readers.READERS if name != "claude_stream")]
    monkeypatch.setattr("postgrad.traces.readers.READERS", {name: readers.READERS[name] for name in order})
    (source,) = ingest(tmp_path, path)["sources"]
    assert (source["format"], source["steps"]) == ("claude_code", 1)
    (told,) = source["diagnostics"]
    assert "the reader claude_stream fails on this file while it looks at it: KeyError in test_ingest" in told["what"]
    assert "a word" not in json.dumps(source)


@pytest.mark.parametrize(
    ("kind", "told"), [("emails", "'pii'"), ("secrets", "always taken out"), ("nmes", "'pii' or 'names'")]
)
def test_kinds_of_redaction_are_told_by_their_names(kind: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load(IngestConfig, None, {"paths": "x", "redact": kind})
