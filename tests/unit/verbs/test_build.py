"""The verb build: rows of every kind, with their provenance, counted, and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.report import Item
from postgrad.envs.function_calling import FunctionCalling
from postgrad.evaluate.store import Evaluated
from postgrad.evaluate.transcripts import transcripts
from postgrad.run.config import load
from postgrad.signals.records import read_records, write_records
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from postgrad.traces.redact import Redactor
from postgrad.verbs import replay
from postgrad.verbs.build import CONFIG, run, show
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call
from unit.verbs.replay_setting import RIGHT, SECRET, make_store, weather_traces

TEACHERS = [
    {"name": "one", "kind": "unit.verbs.replay_setting:Sure"},
    {"name": "two", "kind": "unit.verbs.replay_setting:Sure"},
    {"name": "shy", "kind": "unit.verbs.replay_setting:Shy"},
]


def build(out: Path, **options: Any) -> dict[str, Any]:
    return run(
        load(CONFIG, None, {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}),
        out,
    )


def replayed(tmp_path: Path, store: Path, **more: Any) -> Path:
    options = {"store": str(store), "teachers": TEACHERS, "select": "all", **more}
    return Path(replay.run(load(replay.CONFIG, None, options), tmp_path / "replay")["replayed"])


def test_every_kind_by_hand(tmp_path: Path) -> None:
    """Steps: wrong value, right, malformed. The majority (2 of 3) says the right call at all three.

    sft: 3 rows. preference: 2 pairs, the right one is the student's. hinted: the two error sites. recovery: none later.
    """
    store = make_store(tmp_path, weather_traces())
    result = build(tmp_path / "build", store=store, replayed=replayed(tmp_path, store))
    assert result["records"] == {"total": 7, "sft": 3, "preference": 2, "recovery": 0, "hinted": 2}
    assert result["dropped"] == {"preference": {"same_as_student": 1}, "recovery": {"not_recovered": 1}}
    rows = list(read_records(Path(result["path"])))
    pairs = [row for row in rows if row.rejected is not None]
    assert [row.action for row in pairs] == [RIGHT, RIGHT]
    assert {row.weight for row in pairs} == {2 / 3}
    assert {row.provenance.teachers for row in pairs} == {("one", "two")}
    hinted = [row for row in rows if row.hint is not None]
    assert [row.provenance.rule for row in hinted] == ["verifier/1", "invalid_call/1"]
    assert hinted[0].action.tool_calls[0].arguments == {"city": "Oslo"}
    json.dumps(result)
    show(result)


def test_verified_rows_are_the_runs_own_right_actions(tmp_path: Path) -> None:
    """Of the three steps the verifier passed the second."""
    result = build(tmp_path / "out", store=make_store(tmp_path, weather_traces()), kinds=["verified"])
    assert result["records"] == {"total": 1, "verified": 1}
    assert result["dropped"] == {"verified": {"verifier_said_no": 2}}
    (row,) = read_records(Path(result["path"]))
    assert (row.provenance.rule, row.rejected, row.hint) == ("verified/1", None, None)
    assert row.action.tool_calls[0].arguments == {"city": "Rome"}


def test_taken_rows_are_the_actions_without_an_error_site(tmp_path: Path) -> None:
    """Of the three steps the first and the third are error sites."""
    result = build(tmp_path / "out", store=make_store(tmp_path, weather_traces()), kinds=["taken"])
    assert result["records"] == {"total": 1, "taken": 1}
    assert result["dropped"] == {"taken": {"error_site": 2}}
    (row,) = read_records(Path(result["path"]))
    assert row.provenance.rule == "taken/1"
    assert row.action.tool_calls[0].arguments == {"city": "Rome"}


def test_transcripts_of_an_evaluation_are_never_trained_on(tmp_path: Path) -> None:
    """Held-out tasks, ingested like any log: three wrong answers, no row and no step to replay."""
    environment = FunctionCalling()
    tasks = environment.tasks("heldout", 3)
    answers = [Evaluated("", Item(task.id, task.group, 0.0), Message.of("assistant", "no")) for task in tasks]
    store = make_store(tmp_path, transcripts("m", environment, tasks, answers, Sampling()))
    kinds = ["recovery", "hinted", "verified", "taken"]
    result = build(tmp_path / "build", store=store, kinds=kinds)
    assert result["records"]["total"] == 0
    assert result["dropped"] == {kind: {"evaluation": 3} for kind in kinds}
    with pytest.raises(DataError, match="no step to replay"):
        replayed(tmp_path, store)


def test_a_context_that_is_not_known_gives_no_row(tmp_path: Path) -> None:
    traces = []
    for trace in weather_traces():
        steps = [replace(step, request=replace(step.request, fidelity="none")) for step in trace.steps]
        traces.append(replace(trace, steps=tuple(steps)))
    result = build(tmp_path / "out", store=make_store(tmp_path, traces), kinds=["hinted", "verified", "taken"])
    assert result["dropped"]["hinted"] == {"context": 2}
    assert result["dropped"]["verified"] == {"verifier_said_no": 2, "context": 1}
    assert result["dropped"]["taken"] == {"error_site": 2, "context": 1}


def test_no_secret_reaches_a_row(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    assert SECRET in path.read_text(encoding="utf-8")  # the replay is as private as the store; rows are not
    result = build(tmp_path / "build", store=store, replayed=path)
    text = Path(result["path"]).read_text(encoding="utf-8")
    assert SECRET not in text
    assert "<secret:" in text
    assert result["redactions"]


def test_a_secret_does_not_look_like_a_disagreement(tmp_path: Path) -> None:
    """Teachers saw the mark and used it; the student's action holds the secret itself: the same action."""
    student = act(call("push", {"token": SECRET}))
    marked = Redactor().redact(student)
    assert marked != student
    answers = {name: TeacherAnswer(Answer(marked, name), "local model") for name in ("one", "two")}
    path = tmp_path / "replayed.jsonl"
    write_records(path, [ReplayedStep("t", 0, Ask((Message.of("user", "push it"),)), student, answers)])
    result = build(tmp_path, replayed=path, kinds=["preference"])
    assert result["dropped"] == {"preference": {"same_as_student": 1}}


def test_kinds_are_chosen_and_gold_needs_a_gold_teacher(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    only = build(tmp_path / "a", replayed=path, kinds=["preference"])
    assert only["records"] == {"total": 2, "preference": 2}
    gold = build(tmp_path / "b", replayed=path, kinds=["sft"], imitate="gold")
    assert gold["records"] == {"total": 0, "sft": 0}
    assert gold["dropped"] == {"sft": {"no_answer": 3}}


def test_equal_rows_are_one(tmp_path: Path) -> None:
    """Two sessions with the same first step and the same recovery give one pair."""
    traces = []
    for name in ("a", "b"):
        builder = TraceBuilder().step(act(bash("git push", "c0")), [("Exit code 128\nfatal: no upstream", True)])
        traces.append(builder.step(act(bash("git push -u o m", "c1")), [(f"pushed {name}", False)]).build(name))
    result = build(tmp_path / "out", store=make_store(tmp_path, traces), kinds=["recovery"])
    assert result["records"]["recovery"] == 1
    assert result["dropped"] == {"recovery": {"duplicate": 1}}


def test_built_twice_is_the_same_file(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    one, two = (Path(build(tmp_path / name, store=store, replayed=path)["path"]) for name in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_mistakes_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to build from"):
        build(tmp_path)
    bad = tmp_path / "replayed.jsonl"
    bad.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1 is no ReplayedStep"):
        build(tmp_path, replayed=bad)
    with pytest.raises(DataError, match="no trace store"):
        build(tmp_path, store=tmp_path / "nowhere")
