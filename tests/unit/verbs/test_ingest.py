"""`postgrad ingest`: what it prints is what was read, what it keeps holds no secret, mistakes are told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postgrad.core.errors import ConfigError, DataError, UserError
from postgrad.traces.store import Store
from postgrad.verbs.ingest import IngestConfig, command, run, show
from unit.traces.formats.claude_file import ClaudeFile, call, text

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def session() -> ClaudeFile:
    """Two steps, two calls, one result, which is a flagged error with a secret in it; the second call is pending."""
    file = ClaudeFile()
    file.user("push it")
    file.assistant("m1", text("Pushing."), call("t1", command=f"git push https://{SECRET}@example.org"))
    file.result("t1", f"Exit code 128\nfatal: could not read from {SECRET}", is_error=True)
    file.assistant("m2", call("t2", command="git status"))
    return file


EXCHANGE: dict[str, Any] = {
    "request": {"messages": [{"role": "user", "content": "hi"}]},
    "response": {"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]},
}


def ingest(tmp_path: Path, *paths: Path | str, **options: Any) -> dict[str, Any]:
    config = IngestConfig(paths=[str(path) for path in paths], store=tmp_path / "store", **options)
    return run(config, tmp_path / "run")


def test_the_result_says_what_was_read(tmp_path: Path) -> None:
    path = session().write(tmp_path / "s.jsonl")
    path.write_bytes(path.read_bytes() + b'{"torn')
    result = ingest(tmp_path, path)
    assert list(result) == ["store", "sources", "sites", "redactions"]
    (source,) = result["sources"]
    numbers = {"steps": 2, "tool_calls": 2, "tool_results": 1, "calls_without_result": 1, "flagged_errors": 1}
    (trace,) = source.pop("traces")
    assert {key: value for key, value in trace.items() if key != "id"} == numbers
    (told,) = source.pop("diagnostics")
    assert (told["file"], told["line"], told["offset"]) == (str(path), 5, len(session().data))
    assert source == {"path": str(path), "format": "claude_code", "records": 5, "records_accounted": 5, **numbers}
    json.dumps(result)


def test_sites_point_at_the_record_and_hold_no_secret(tmp_path: Path) -> None:
    path = session().write(tmp_path / "s.jsonl")
    result = ingest(tmp_path, path)
    (site,) = result["sites"]
    assert (site["source"], site["trace_index"], site["step"]) == (str(path), 0, 0)
    assert site["trace"] == result["sources"][0]["traces"][0]["id"]
    assert site["evidence"]["record"] == 3
    assert "could not read from <secret:github-pat:1>" in site["evidence"]["text"]
    assert result["redactions"]["github-pat"] >= 2


def test_the_store_holds_the_traces_without_secrets(tmp_path: Path) -> None:
    ingest(tmp_path, session().write(tmp_path / "s.jsonl"))
    (trace,) = Store(tmp_path / "store").traces()
    assert SECRET not in str(trace)
    arguments = trace.steps[0].action.tool_calls[0]
    assert json.loads(arguments.arguments_raw) == arguments.arguments
    for file in (tmp_path / "store").rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


def test_folders_are_searched_and_globs_expanded_once(tmp_path: Path) -> None:
    """A file that is named twice, by its folder and by a glob, is read once; hidden files are left out."""
    folder = tmp_path / "traces"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    session().write(folder / "deep" / "s.jsonl")
    session().write(folder / ".hidden" / "s.jsonl")
    (folder / "log.jsonl").write_text(json.dumps(EXCHANGE) + "\n")
    (folder / "notes.md").write_text("# notes\n")
    result = ingest(tmp_path, folder, folder / "deep" / "s.jsonl", str(folder / "**" / "*.jsonl"))
    found = {Path(source["path"]).name: source["format"] for source in result["sources"]}
    assert found == {"s.jsonl": "claude_code", "log.jsonl": "openai_chat", "notes.md": None}
    assert len(result["sources"]) == 3
    (refused,) = [source for source in result["sources"] if source["format"] is None]
    assert "no reader recognises" in refused["diagnostics"][0]["what"]
    assert len(list(Store(tmp_path / "store").traces())) == 2
    assert show(result).row_count == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.jsonl", "no such file or folder"),
        ("empty", "the folder holds no file"),
        ("*.nothing", "no such file or folder"),
        ("notes.md", "no reader recognises this file"),
        ("foreign", "no file here is a trace"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a.md").write_text("# a\n")
    (tmp_path / "notes.md").write_text("# notes\n")
    with pytest.raises(DataError, match=message):
        ingest(tmp_path, tmp_path / name)


def test_no_path_and_unknown_formats_are_configuration_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to ingest"):
        ingest(tmp_path)
    with pytest.raises(ConfigError, match="claude_code"):
        ingest(tmp_path, session().write(tmp_path / "s.jsonl"), format="claude_kode")


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    path.symlink_to(tmp_path / "gone.jsonl")
    with pytest.raises(UserError):
        ingest(tmp_path, path)


def test_the_command_prints_one_json_object_and_exits_with_0_or_2(tmp_path: Path) -> None:
    path = session().write(tmp_path / "s.jsonl")
    store, folder = str(tmp_path / "store"), str(tmp_path / "run")
    done = CliRunner().invoke(command, [str(path), "-o", store, "--run", folder, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sources"][0]["steps"] == 2
    wrong = CliRunner().invoke(command, [str(tmp_path / "none"), "-o", store, "--run", folder + "2", "--json"])
    assert wrong.exit_code == 2
    assert "no such file or folder" in wrong.stderr
    assert os.path.isdir(store)


def test_evidence_that_is_no_text_is_printed_as_valid_json(tmp_path: Path) -> None:
    """A lone surrogate and a byte that is no UTF-8, in the text of a failed call."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1", command="ls"))
    file.result("t1", "Exit code 1\nboom \ud83d RAW", is_error=True)
    path = tmp_path / "s.jsonl"
    path.write_bytes(file.data.replace(b"RAW", b"\xff"))
    done = CliRunner().invoke(command, [str(path), "-o", str(tmp_path / "st"), "--run", str(tmp_path / "r"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout_bytes.decode())["sites"][0]["evidence"]["text"].endswith("boom \ud83d \udcff")


def test_a_session_is_recognised_behind_many_rows_of_new_kinds(tmp_path: Path) -> None:
    file = ClaudeFile()
    for number in range(100):
        file.row("progress", data={"number": number, "text": "x" * 20_000})
    file.user("go")
    file.assistant("m1", text("Gone."))
    (source,) = ingest(tmp_path, file.write(tmp_path / "s.jsonl"))["sources"]
    assert (source["format"], source["records"], source["steps"]) == ("claude_code", 102, 1)


def test_a_store_inside_the_folder_is_not_ingested_into_itself(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    session().write(folder / "s.jsonl")
    config = IngestConfig(paths=[str(folder)], store=folder / "deep" / "store")
    first, again = run(config, tmp_path / "run"), run(config, tmp_path / "run")
    assert again == first
    with pytest.raises(DataError, match="is a trace store"):
        ingest(tmp_path, folder / "deep" / "store")
    assert [Path(source["path"]).name for source in again["sources"]] == ["s.jsonl"]
