"""`postgrad ingest`: what it prints is what was read, what it keeps holds no secret, mistakes are told."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from postgrad.core.errors import ConfigError, DataError, UserError
from postgrad.traces.storage.store import Store
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
    assert list(result) == ["store", "sources", "sites", "fidelity", "redactions"]
    (source,) = result["sources"]
    numbers = {"steps": 2, "tool_calls": 2, "tool_results": 1, "calls_without_result": 1, "flagged_errors": 1}
    (trace,) = source.pop("traces")
    assert trace.pop("fidelity") == result["fidelity"] == {"reconstructed": 2}
    assert {key: value for key, value in trace.items() if key != "id"} == numbers
    (told,) = source.pop("diagnostics")
    assert (told["file"], told["line"], told["offset"]) == (str(path), 5, len(session().data))
    assert source.pop("fidelity") == {"reconstructed": 2}
    assert source == {"path": str(path), "format": "claude_code", "records": 5, "records_accounted": 5, **numbers}
    json.dumps(result)


def test_sites_point_at_the_record_and_hold_no_secret(tmp_path: Path) -> None:
    path = session().write(tmp_path / "s.jsonl")
    result = ingest(tmp_path, path)
    (site,) = result["sites"]
    assert (site["source"], site["trace_index"], site["step"]) == (str(path), 0, 0)
    assert site["trace"] == result["sources"][0]["traces"][0]["id"]
    assert site["evidence"]["record"] == 3
    assert re.search(r"could not read from <secret:github-pat:\d{8}>", site["evidence"]["text"])
    assert result["redactions"]["github-pat"] >= 2


def test_a_site_says_what_is_known_of_it_and_no_more(tmp_path: Path) -> None:
    """The same edit fails twice, in steps 0 and 1, and works in step 2: the second repeats the first, both recover."""
    file = ClaudeFile()
    file.user("rename it")
    for number, found in enumerate((False, False, True)):
        old = "b" if found else "a"
        file.assistant(f"m{number}", call(f"t{number}", "Edit", file_path="x.py", old_string=old, new_string="c"))
        words = "The file x.py has been updated." if found else "String to replace not found in file."
        file.result(f"t{number}", words if found else f"<tool_use_error>{words}</tool_use_error>", is_error=not found)
    result = ingest(tmp_path, file.write(tmp_path / "s.jsonl"))
    first, second = result["sites"]
    assert (first["rule"].partition("/")[0], first["verdict"], first["hint_step"]) == ("invalid_call", "real", 0)
    assert (first["recovery_step"], second["recovery_step"]) == (2, 2)
    assert "repeat_of" not in first
    assert (second["repeat_of"], second["step"], second["call"]) == (0, 1, "t1")
    console = Console(width=80, file=io.StringIO())
    console.print(show(result))
    told = console.file.getvalue()
    assert "verdicts: 2 real" in told
    assert "rules: 2 invalid_call" in told
    assert "contexts: 3 reconstructed" in told


def test_a_catalogue_completes_what_is_stored(tmp_path: Path) -> None:
    """Read again with a catalogue, the steps in the store have its prompt and its tools, and lack neither any more."""
    path = session().write(tmp_path / "s.jsonl")
    ingest(tmp_path, path)
    filling = {"app": "claude-code", "system": "Be brief.", "tools": [{"name": "Bash", "input_schema": {}}]}
    (tmp_path / "catalogue.json").write_text(json.dumps({"entries": [filling]}))
    ingest(tmp_path, path, catalogue=tmp_path / "catalogue.json")
    (trace,) = Store(tmp_path / "store").traces()
    for step in trace.steps:
        assert (trace.context(step)[0].role, trace.context(step)[0].text) == ("system", "Be brief.")
        assert [(tool.name, tool.inferred) for tool in step.request.tools] == [("Bash", False)]
        assert not {"system prompt", "tool schemas"} & set(step.request.missing)


def test_the_store_holds_the_traces_without_secrets(tmp_path: Path) -> None:
    ingest(tmp_path, session().write(tmp_path / "s.jsonl"))
    (trace,) = Store(tmp_path / "store").traces()
    assert SECRET not in str(trace)
    arguments = trace.steps[0].action.tool_calls[0]
    assert json.loads(arguments.arguments_raw) == arguments.arguments
    for file in (tmp_path / "store").rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


def test_where_a_recording_was_made_stays_with_its_trace_without_secrets(tmp_path: Path) -> None:
    """The recorder writes it beside each call; the same key in another program's log is its own matter."""
    environment = {
        "repository": {"commit": "0f3a", "dirty": True},
        "command": ["agent", "--key", SECRET],
        "python": "3.12",
    }
    recorded = {**EXCHANGE, "environment": environment, "metadata": {"postgrad": {}}}
    other = {
        **EXCHANGE,
        "environment": {"name": "production"},
        "request": {"messages": [{"role": "user", "content": "x"}]},
    }
    path = tmp_path / "openai_chat.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (recorded, other)))
    ingest(tmp_path, path)
    found, foreign = sorted(Store(tmp_path / "store").traces(), key=lambda trace: trace.index)
    assert found.environment["repository"] == {"commit": "0f3a", "dirty": True}
    assert found.environment["command"][2].startswith("<secret:github-pat:")
    assert foreign.environment == {}


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
    listed = [row[0] for row in show(result).renderables[0].rows if row]
    log, deep = str(folder / "log.jsonl"), str(folder / "deep" / "s.jsonl")
    assert listed == ["claude_code:", deep, "openai_chat:", log, "all"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.jsonl", "no such file or folder"),
        ("empty", "the folder holds no file"),
        ("*.nothing", "no such file or folder"),
        ("notes.md", "no reader recognises this file, text"),
        ("foreign", "no reader recognises this file, text; got '.*a.md'; `postgrad ingest --help` lists the formats"),
        ("broken.zip", "cannot read the archive"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a.md").write_text("# a\n")
    (tmp_path / "notes.md").write_text("# notes\n")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataError, match=message):
        ingest(tmp_path, tmp_path / name)


def test_a_file_without_a_step_says_so(tmp_path: Path) -> None:
    """Read by force as what it is not; each record is accounted for, and nothing is learnt from it."""
    path = session().write(tmp_path / "s.jsonl")
    (source,) = ingest(tmp_path, path, format="codex_cli")["sources"]
    assert (source["steps"], source["records"]) == (0, source["records_accounted"])
    told = source["diagnostics"][-1]
    assert "read as codex_cli, and no step of a model is in it" in told["what"]
    assert ingest(tmp_path / "right", path)["sources"][0]["diagnostics"] == []


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


def test_archives_are_folders(tmp_path: Path) -> None:
    """Members by their paths, also through an archive in the archive; what a Mac adds is left out."""
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("deep/s.jsonl", session().data)
    outer = tmp_path / "outer.zip"
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(inner, "more/inner.zip")
        archive.writestr("log.jsonl", json.dumps(EXCHANGE) + "\n")
        archive.writestr("__MACOSX/log.jsonl", json.dumps(EXCHANGE) + "\n")
    result = ingest(tmp_path, outer)
    found = {source["path"].removeprefix(str(outer)): source["format"] for source in result["sources"]}
    assert found == {"/log.jsonl": "openai_chat", "/more/inner.zip/deep/s.jsonl": "claude_code"}
    assert ingest(tmp_path, outer / "log.jsonl")["sources"][0]["steps"] == 1
    assert len(Store(tmp_path / "store").sources()) == 2


def test_what_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    session().write(folder / "s.jsonl")
    (folder / "notes.md").write_text("# notes\n")
    first = ingest(tmp_path, folder)
    monkeypatch.setattr("postgrad.verbs.ingest_sources.readers.read", None)
    monkeypatch.setattr("postgrad.verbs.ingest_sources.readers.detect", None)
    assert ingest(tmp_path, folder) == first


def test_a_touched_file_and_a_copy_are_known_by_their_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session().write(tmp_path / "s.jsonl")
    first = ingest(tmp_path, path)
    monkeypatch.setattr("postgrad.verbs.ingest_sources.readers.read", None)
    os.utime(path, (1, 1))
    assert ingest(tmp_path, path) == first
    copy = session().write(tmp_path / "copy.jsonl")
    copied = ingest(tmp_path, copy)
    assert copied["sources"][0]["path"] == copied["sites"][0]["source"] == str(copy)
    assert copied["sources"][0]["traces"] == first["sources"][0]["traces"]
    assert len(Store(tmp_path / "store").sources()) == 1


def test_a_file_that_is_being_written_is_completed_by_the_next_ingest(tmp_path: Path) -> None:
    """Cut in the middle of the last row: 1 step, then 2; and both secrets have the mark that they had before."""
    file = session()
    path = tmp_path / "s.jsonl"
    path.write_bytes(file.data[:-20])
    first = ingest(tmp_path, path)
    assert [told["what"][:9] for told in first["sources"][0]["diagnostics"]] == ["the last "]
    path.write_bytes(file.data)
    second = ingest(tmp_path, path)
    assert [result["sources"][0]["steps"] for result in (first, second)] == [1, 2]
    assert second["sources"][0]["diagnostics"] == []
    assert first["sites"][0]["evidence"] == second["sites"][0]["evidence"]
    assert len(Store(tmp_path / "store").sources()) == 1


def test_many_files_are_read_by_processes_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes twice, read by two processes at the same time, are one source."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for number in range(4):
        file = session()
        file.user(f"{number % 3}")
        file.assistant("m9", text("Done."))
        file.write(folder / f"{number}.jsonl")
    alone = ingest(tmp_path, folder)
    monkeypatch.setattr("postgrad.verbs.ingest_batches._SPREAD", 0)
    monkeypatch.setattr("postgrad.verbs.ingest_batches._BATCH_FILES", 1)
    monkeypatch.setattr("postgrad.verbs.ingest_batches._cores", lambda: 2)
    store = tmp_path / "other"
    store.mkdir()
    (store / "redaction.key").write_bytes((tmp_path / "store" / "redaction.key").read_bytes())
    (store / "store.json").write_bytes((tmp_path / "store" / "store.json").read_bytes())
    several = run(IngestConfig(paths=[str(folder)], store=store), tmp_path / "run")
    assert several == {**alone, "store": str(store)}
    assert len(Store(store).sources()) == 3
    assert list(Store(store).traces()) == list(Store(tmp_path / "store").traces())


@pytest.mark.parametrize(("care", "ending"), [("encrypt", ".sealed"), ("drop", "")])
def test_the_care_for_raw_bytes_holds_for_the_store(
    care: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest that does not say it again neither opens what was sealed nor keeps what was to be dropped."""
    monkeypatch.setenv("POSTGRAD_PASSPHRASE", "long and secret")
    first, other = session().write(tmp_path / "a.jsonl"), session()
    other.user("more")
    second = other.write(tmp_path / "b.jsonl")
    ingest(tmp_path, first, raw=care)
    ingest(tmp_path, first)
    ingest(tmp_path, second)
    assert {path.suffix for path in (tmp_path / "store" / "raw").rglob("*") if path.is_file()} - {ending} == set()
    assert {source.raw for source in Store(tmp_path / "store").sources()} == {care}
    ingest(tmp_path, second, raw="keep")  # said, it is done
    assert {source.raw for source in Store(tmp_path / "store").sources()} == {care, "keep"}


def test_encrypted_bytes_need_the_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session().write(tmp_path / "s.jsonl")
    monkeypatch.setenv("POSTGRAD_PASSPHRASE", "a horse")
    ingest(tmp_path, path, raw="encrypt")
    store = Store(tmp_path / "store")
    (source,) = store.sources()
    for file in (tmp_path / "store").rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()
    assert store.raw(source.sha256) == path.read_bytes()
    monkeypatch.setenv("POSTGRAD_PASSPHRASE", "a mouse")
    with pytest.raises(DataError, match="wrong passphrase"):
        store.raw(source.sha256)
    with pytest.raises(DataError, match="wrong passphrase"):
        ingest(tmp_path, path, raw="encrypt")
    monkeypatch.delenv("POSTGRAD_PASSPHRASE")
    with pytest.raises(ConfigError, match="POSTGRAD_PASSPHRASE"):
        ingest(tmp_path, path, raw="encrypt")
    assert len(list(store.traces())) == 1, "the traces need none"


def test_a_store_is_rebuilt_from_its_raw_bytes_without_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer edition of the readers reads what the store kept; what kept nothing is named."""
    kept = session().write(tmp_path / "kept.jsonl")
    ingest(tmp_path, kept)
    dropped = tmp_path / "log.jsonl"
    dropped.write_text(json.dumps(EXCHANGE) + "\n")
    ingest(tmp_path, dropped, raw="drop")
    before = list(Store(tmp_path / "store").traces())
    kept.unlink()
    dropped.unlink()
    rebuild = IngestConfig(rebuild=tmp_path / "store")
    expected = {"store": str(tmp_path / "store"), "rebuilt": 0, "up_to_date": 2, "without_raw": []}
    assert run(rebuild, tmp_path / "run") == expected
    monkeypatch.setattr("postgrad.traces.editions.EDITION", 99)
    result = run(rebuild, tmp_path / "run")
    assert result == {**expected, "rebuilt": 1, "up_to_date": 0, "without_raw": [str(dropped)]}
    assert len(show(result).rows) == 1
    assert list(Store(tmp_path / "store").traces()) == before
    assert run(rebuild, tmp_path / "run")["up_to_date"] == 1
    with pytest.raises(ConfigError, match="--rebuild reads a store"):
        run(IngestConfig(rebuild=tmp_path / "store", paths=["x"]), tmp_path / "run")
    with pytest.raises(DataError, match="no trace store here"):
        run(IngestConfig(rebuild=tmp_path / "none"), tmp_path / "run")


def test_personal_data_goes_on_request_and_does_not_come_back(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("mail alice@example.com, uuid 550e8400-e29b-41d4-a716-446655440000")
    file.assistant("m1", text("Mailed alice@example.com."))
    path = file.write(tmp_path / "s.jsonl")
    first = ingest(tmp_path, path)
    assert first["redactions"] == {}
    second = ingest(tmp_path, path, redact=["pii"])
    assert second["redactions"] == {"email": 3}, "in the question, in the event that tells of it, in the answer"
    assert ingest(tmp_path, path) == second, "the store remembers"
    (trace,) = Store(tmp_path / "store").traces()
    texts = [message.text for message in trace.messages.values()] + [trace.steps[0].action.text]
    assert len(set(re.findall(r"<pii:email:\d{8}>", " ".join(texts)))) == 1
    assert "alice" not in " ".join(texts)
    assert "550e8400-e29b-41d4-a716-446655440000" in texts[0]


def test_discovery_lists_and_reads_only_when_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".claude" / "projects" / "p").mkdir(parents=True)
    path = session().write(home / ".claude" / "projects" / "p" / "s.jsonl")
    monkeypatch.setattr("postgrad.traces.discover.Path.home", lambda: home)
    for variable in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    arguments = ["--discover", "-o", str(tmp_path / "store"), "--run", str(tmp_path / "r"), "--json"]
    listed = CliRunner().invoke(command, arguments)
    assert listed.exit_code == 0, listed.output
    place = {"app": "claude-code", "path": str(home / ".claude" / "projects"), "files": 1, "bytes": path.stat().st_size}
    assert json.loads(listed.stdout) == {"discovered": [place], "read": False}
    assert "nothing was read" in listed.stderr
    assert not (tmp_path / "store").exists()
    done = CliRunner().invoke(command, [*arguments, "--yes"])
    assert json.loads(done.stdout)["sources"][0]["steps"] == 2
    assert len(show({"discovered": [place], "read": False}).rows) == 1
    with pytest.raises(ConfigError, match="looks for paths itself"):
        run(IngestConfig(paths=["x"], discover=True), tmp_path)


def test_a_file_that_postgrad_itself_fails_on_ends_no_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by its place in the code (the error's own words may hold a secret), and nothing half of it is kept."""
    folder = tmp_path / "in"
    folder.mkdir()
    bad = session().write(folder / "a.jsonl")
    good = folder / "b.jsonl"
    good.write_text(json.dumps(EXCHANGE) + "\n")

    def failing(trace: Any) -> Any:
        if trace.source.path == str(bad):
            raise KeyError(SECRET)
        return []

    monkeypatch.setattr("postgrad.verbs.ingest_sources.find_sites", failing)
    result = ingest(tmp_path, folder)
    assert [(source["path"], source["format"]) for source in result["sources"]] == [
        (str(bad), None),
        (str(good), "openai_chat"),
    ]
    (told,) = result["sources"][0]["diagnostics"]
    assert re.search(r"a bug in postgrad: KeyError in test_ingest.py:\d+", told["what"])
    assert SECRET not in json.dumps(result)
    assert [trace.source.path for trace in Store(tmp_path / "store").traces()] == [str(good)]
    monkeypatch.undo()
    assert [source["steps"] for source in ingest(tmp_path, folder)["sources"]] == [2, 1]


def test_an_empty_name_is_not_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`postgrad ingest "$UNSET"`."""
    session().write(tmp_path / "s.jsonl")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="an empty name is no path"):
        ingest(tmp_path, "")


def test_memory_is_given_back_for_long_traces_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten sessions of one step and one of three, where three are long: twice, before sites and before tables.

    A log can hold a hundred thousand conversations, and a collection for each would take minutes.
    """
    given: list[int] = []
    monkeypatch.setattr("postgrad.verbs.ingest_sources.LONG", 3)
    monkeypatch.setattr("postgrad.verbs.ingest_sources._give_back_all", lambda: given.append(1))
    folder = tmp_path / "in"
    folder.mkdir()
    for number, steps in enumerate([*[1] * 10, 3]):
        file = ClaudeFile(session=f"s{number}")
        file.user(f"go {number}")
        for step in range(steps):
            file.assistant(f"m{number}-{step}", text("Sure."))
        for row in file.rows:
            row |= {key: f"{number}-{row[key]}" for key in ("uuid", "parentUuid") if row[key]}
        file.write(folder / f"{number}.jsonl")
    result = run(IngestConfig(paths=[str(folder)], store=tmp_path / "store"), tmp_path / "run")
    assert sum(source["steps"] for source in result["sources"]) == 13
    assert len(given) == 2
