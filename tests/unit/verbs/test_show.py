"""`show` tells what a folder is, finished or cut off."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postgrad.core.artifact import Manifest, write_manifest
from postgrad.core.files import write_json
from postgrad.cycle import CycleConfig
from postgrad.cycle import run as run_cycle
from postgrad.run.rundir import RunDir
from postgrad.traces.readers import read
from postgrad.traces.storage.store import Store
from postgrad.verbs.ingest import IngestConfig
from postgrad.verbs.ingest import run as ingest
from postgrad.verbs.show import command
from unit.traces.formats.claude_file import ClaudeFile
from unit.traces.formats.claude_file import text as said


def shown(path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    data = CliRunner().invoke(command, [str(path), "--json", *arguments])
    text = CliRunner().invoke(command, [str(path), *arguments])
    assert (data.exit_code, text.exit_code) == (0, 0), data.stderr + text.stderr
    return json.loads(data.stdout), text.stdout


def test_a_training_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.start("train", {"lr": 1e-4})
    for step in range(7):
        run.log(step=step, loss=step / 3)
    write_json(tmp_path / "verdict.json", {"decision": "iterate", "reasons": ["no gain"]})
    data, text = shown(tmp_path, "--tail", "2")
    assert (data["kind"], data["complete"], data["metrics"]["lines"]) == ("run", False, 7)
    assert [line["step"] for line in data["metrics"]["tail"]] == [5, 6]
    assert "train, not complete" in text
    assert "1.667" in text
    assert "verdict: iterate; no gain" in text


def test_what_is_no_folder_of_the_three_says_how_to_look_at_it(tmp_path: Path) -> None:
    """A champion's pointer names a folder, captured exchanges can be read into a store."""
    (tmp_path / "1.jsonl").write_text("{}\n")
    write_json(tmp_path / "champion.json", {"artifact": "/best/artifact"})
    for path, told in (
        (tmp_path / "champion.json", "to look at the champion: postgrad show /best/artifact"),
        (tmp_path / "1.jsonl", "a file is not shown"),
        (tmp_path, f"to look at traces: postgrad ingest {tmp_path} -o STORE"),
    ):
        done = CliRunner().invoke(command, [str(path)])
        assert done.exit_code == 2
        assert told in done.stderr


def test_a_cycle_and_its_stages(tmp_path: Path) -> None:
    config = CycleConfig.model_validate({"name": "turn", "stages": [{"name": "a", "verb": "stages.adding"}]})
    run = RunDir(tmp_path)
    run.start("cycle", config.resolved())
    run.finish(run_cycle(config, tmp_path))
    (tmp_path / "02-b").mkdir()
    data, text = shown(tmp_path)
    assert [(stage["name"], stage["status"]) for stage in data["stages"]] == [("a", "ran"), ("b", "cut off")]
    assert "total 3" in text


def test_stages_of_a_cycle_that_was_cut_off_say_their_state_and_what_they_made(tmp_path: Path) -> None:
    """Three stages by their recipe's names: the first made rows, the second was killed, the third is still to come."""
    stages = [{"name": name, "verb": "build", "with": {}} for name in ("rows-of-mine", "more", "last")]
    run = RunDir(tmp_path)
    run.start("cycle", {"name": "turn", "stages": stages})
    first = RunDir(tmp_path / "01-rows-of-mine")
    first.start("build", {})
    records = {"total": 3, "sft": 2, "hinted": 1}
    first.finish({"records": records, "dropped": {}, "path": str(first.path / "records.jsonl")})
    write_json(first.path / "stage.json", {"complete": True, "seconds": 1.5})
    RunDir(tmp_path / "02-more").start("build", {})
    data, text = shown(tmp_path)
    told = [(stage["name"], stage["folder"], stage["status"]) for stage in data["stages"]]
    assert told == [
        ("rows-of-mine", "01-rows-of-mine", "ran"),
        ("more", "02-more", "cut off"),
        ("last", "03-last", "not run"),
    ]
    words = " ".join(re.sub("[\u2500-\u257f]", " ", text).split())
    assert "rows-of-mine build 3 rows: 2 sft, 1 hinted; 1.5 01-rows-of-mine/records.jsonl" in words
    assert {"build (cut off)", "build (not run)"} <= {cell.strip() for cell in text.split("\u2502")}
    assert f"to go on: postgrad cycle --resume {tmp_path}" in text.replace("\n", "")


def test_a_run_is_shown_as_its_verb_shows_it_and_never_as_python(tmp_path: Path) -> None:
    """An evaluation with nested results, one of a verb that is not ours, and one whose result lacks what is shown."""
    score = {"accuracy": 0.25, "stderr": 0.1, "n": 20, "low": 0.11, "high": 0.47, "outcomes": {"scored": 20}}
    for name, verb, result, told in (
        ("own", "evaluate", {"model": "m", "scores": {"a/b": score}, "unmeasured": []}, "11.0 to 47.0"),
        ("foreign", "my.module", {"inner": {"list": [1, 2], "text": "[x]"}}, "inner:"),
        ("older", "evaluate", {"model": "m", "means": {"a/b": 0.5}}, "a/b: 0.5"),
    ):
        run = RunDir(tmp_path / name)
        run.start(verb, {})
        run.finish(result)
        _, text = shown(tmp_path / name)
        assert f"{verb}, complete" in " ".join(text.split())
        assert told in text
        assert "{" not in text
    assert "[x]" in shown(tmp_path / "foreign")[1]


def test_what_is_not_complete_says_how_to_go_on(tmp_path: Path) -> None:
    """Metrics with 20 values: what stands side by side in 80 columns, the first values first."""
    run = RunDir(tmp_path)
    run.start("train", {"method": {"name": "sft"}})
    run.log(step=0, loss=0.5, **{f"a_long_name/number_{n}": n / 7 for n in range(18)})
    _, text = shown(tmp_path)
    assert f"postgrad train --resume {tmp_path}" in text.replace("\n", "")
    assert "a_long_name/number_0" in text
    assert "a_long_name/number_9" not in text
    assert "…" not in text


def test_a_folder_of_runs_lists_them_oldest_first(tmp_path: Path) -> None:
    """A finished one, one in a folder of its own that is running, one with a broken result, and a model's folder."""
    done, busy, broken = (RunDir(tmp_path / name) for name in ("train-1", "sweep/a", "odd"))
    for run, verb, date in ((done, "train", 2_000), (busy, "train", 3_000), (broken, "evaluate", 1_000)):
        run.start(verb, {})
        if run is done:
            run.finish({"steps": 7, "last": {"loss": 0.25}, "artifact": "x"})
        if run is broken:
            (run.path / "result.json").write_text("{")
        for file in run.path.iterdir():
            os.utime(file, (date, date))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with busy.locked():
        os.utime(busy.path / ".lock", (3_000, 3_000))
        data, text = shown(tmp_path)
    told = [(Path(run["path"]).relative_to(tmp_path).as_posix(), run["state"]) for run in data["runs"]]
    assert told == [("odd", "not complete"), ("train-1", "complete"), ("sweep/a", "running")]
    assert data["runs"][1]["came_to"] == "7 steps, loss 0.25 at last"
    assert "broken file" in data["runs"][0]["came_to"]
    assert "7 steps, loss" in text
    assert shown(tmp_path)[0]["runs"][2]["state"] == "not complete", "the process that held it is gone"


def test_a_store_says_how_many_more_were_read_than_it_keeps(tmp_path: Path) -> None:
    """One log under two names and a third with the same exchange and one more: three readings, one of them kept."""
    (tmp_path / "logs").mkdir()
    file = ClaudeFile()
    file.user("hi")
    file.assistant("m1", said("Hello."))
    file.write(tmp_path / "logs" / "a.jsonl")
    file.write(tmp_path / "logs" / "copy.jsonl")
    file.user("and?")
    file.assistant("m2", said("Bye."))
    file.write(tmp_path / "logs" / "later.jsonl")
    ingest(IngestConfig(paths=[str(tmp_path / "logs")], store=tmp_path / "store"), tmp_path / "run")
    data, text = shown(tmp_path / "store")
    assert (data["traces"], data["steps"], data["copies"]) == (1, 2, 2)
    assert "2 more that were read are copies or earlier states of these" in " ".join(text.split())


def test_an_artifact(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    write_manifest(tmp_path, Manifest(parent="smollm2-135m", method="dpo", kind="merged"))
    data, text = shown(tmp_path)
    assert (data["kind"], data["manifest"]["method"]) == ("artifact", "dpo")
    assert "smollm2-135m" in text


LOG = {
    "request": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "response": {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]
    },
}


def test_a_store_a_trace_and_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(LOG) + "\n")
    store = tmp_path / "store"
    Store(store).add(read(tmp_path / "log.jsonl"))
    data, text = shown(store)
    [row] = data["list"]
    assert (data["kind"], data["traces"], data["steps"], row["title"]) == ("store", 1, 1, "hi")
    assert row["short"] in text
    data, text = shown(store, row["short"])
    assert (data["kind"], data["trace"]["id"]) == ("trace", row["id"])
    assert "hello" in text
    data, text = shown(store, row["id"], "0")
    assert data["step"] == 0
    assert "1 messages in context" in text
    data, _ = shown(store, "--html", str(tmp_path / "page.html"))
    assert (data["traces"], data["whole"]) == (1, 1)
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").unlink()
    shown(store, "--html")  # alone: to page.html, whatever option comes after it
    assert (tmp_path / "page.html").is_file()


def test_mistakes_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(LOG) + "\n")
    store = tmp_path / "store"
    Store(store).add(read(tmp_path / "log.jsonl"))
    [row] = shown(store)[0]["list"]
    run = RunDir(tmp_path / "run")
    run.start("train", {})
    for words, told in (
        ([str(store), "zz"], "no such trace"),
        ([str(store), row["id"], "7"], "no such step"),
        ([str(store), "a", "b", "c"], "expected FOLDER"),
        ([str(tmp_path / "run"), "x"], "traces are shown of a store, this is a run"),
        ([], "nothing to show; expected FOLDER, STORE TRACE [STEP], or --memory RECIPE"),
    ):
        done = CliRunner().invoke(command, words)
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr


def test_nothing_of_ours(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        done = CliRunner().invoke(command, [str(path)])
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
