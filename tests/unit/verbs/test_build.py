"""The verb build: rows of every kind, with their provenance, counted, and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.message import Message
from postgrad.core.report import Item
from postgrad.envs.function_calling import FunctionCalling
from postgrad.evaluate.store import Evaluated
from postgrad.evaluate.transcripts import transcripts
from postgrad.run.config import load
from postgrad.run.schema import fields_of
from postgrad.signals.rows.records import read_lines, read_records, write_records
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from postgrad.traces.redaction.redactor import Redactor
from postgrad.verbs import correct, replay
from postgrad.verbs.arguments import parse
from postgrad.verbs.build import CONFIG, run, show
from postgrad.verbs.build_config import RECIPES
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call
from unit.teachers.endpoint_by_script import completion, serving
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
    options = {"store": str(store), "teachers": TEACHERS, "steps": "all", **more}
    return Path(replay.run(load(replay.CONFIG, None, options), tmp_path / "replay")["replayed"])


def test_every_kind_by_hand(tmp_path: Path) -> None:
    """Steps: wrong value, right, malformed. The majority (2 of 3) says the right call at all three.

    sft: 3 rows. preference: 2 pairs, the right one is the student's. hinted: the two error sites. recovery: none later.
    """
    store = make_store(tmp_path, weather_traces())
    result = build(tmp_path / "build", store=store, replays=replayed(tmp_path, store))
    assert result["records"] == {"total": 7, "sft": 3, "preference": 2, "recovery": 0, "hinted": 2}
    assert result["dropped"] == {"preference": {"same_as_student": 1}, "recovery": {"not_recovered": 1}}
    quiet = {"steps without a site": 1}
    assert result["passed_over"] == {
        "recovery": {"sites that no later call can put right": 1, **quiet},
        "hinted": quiet,
    }
    rows = list(read_records(Path(result["path"])))
    pairs = [row for row in rows if row.rejected is not None]
    assert [row.action for row in pairs] == [RIGHT, RIGHT]
    assert {row.weight for row in pairs} == {2 / 3}
    assert {row.provenance.teachers for row in pairs} == {("one", "two")}
    hinted = [row for row in rows if row.hint is not None]
    assert [row.provenance.rule for row in hinted] == ["verifier/1", "invalid_call/2"]
    assert hinted[0].action.tool_calls[0].arguments == {"city": "Oslo"}
    json.dumps(result)
    show(result)


def test_what_gave_no_row_is_told_with_its_numbers(tmp_path: Path) -> None:
    """Three steps, of which one has a site and it is benign: a look for a file that is not there. Nothing to learn."""
    trace = TraceBuilder("look")
    trace.step(act(bash("cat nope.txt", "c1")), [("cat: nope.txt: No such file or directory", True)])
    trace.step(act(bash("cat yes.txt", "c2")), [("yes", False)])
    trace.step(Message.of("assistant", "It says yes."))
    store = make_store(tmp_path, [trace.build()])
    result = build(tmp_path / "build", store=store, recipe="hints")
    assert result["passed_over"] == {"hinted": {"benign sites": 1, "steps without a site": 2}}
    [row] = show(result).rows
    assert row == ("hinted", "0", "passed over: 1 benign sites, 2 steps without a site")


def test_verified_rows_are_the_runs_own_right_actions(tmp_path: Path) -> None:
    """Of the three steps the verifier passed the second."""
    result = build(tmp_path / "out", store=make_store(tmp_path, weather_traces()), kinds=["verified"])
    assert result["records"] == {"total": 1, "verified": 1}
    assert result["dropped"] == {"verified": {"verifier_said_no": 2}}
    (row,) = read_records(Path(result["path"]))
    assert (row.provenance.rule, row.rejected, row.hint) == ("verified/1", None, None)
    assert row.action.tool_calls[0].arguments == {"city": "Rome"}


def test_without_a_verifiers_word_nothing_is_verified_and_the_steps_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = TraceBuilder("look")
    trace.step(act(bash("cat yes.txt", "c1")), [("yes", False)])
    trace.step(Message.of("assistant", "It says yes."))
    result = build(tmp_path / "out", store=make_store(tmp_path, [trace.build()]), kinds=["verified"])
    assert result["records"] == {"total": 0, "verified": 0}
    assert result["passed_over"] == {"verified": {"steps without a verifier's word": 2}}
    [row] = show(result).rows
    assert row == ("verified", "0", "passed over: 2 steps without a verifier's word")
    assert "no row was made; what is told of each kind says why" in capsys.readouterr().err


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
    result = build(tmp_path / "build", store=store, replays=path)
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
    result = build(tmp_path, replays=path, kinds=["preference"])
    assert result["dropped"] == {"preference": {"same_as_student": 1}}


def test_kinds_are_chosen_and_gold_needs_a_gold_teacher(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    only = build(tmp_path / "a", replays=path, kinds=["preference"])
    assert only["records"] == {"total": 2, "preference": 2}
    with pytest.raises(ConfigError, match="no teacher of these replays gave gold answers"):
        build(tmp_path / "b", replays=path, kinds=["sft"], imitate="gold")
    named = build(tmp_path / "c", replays=path, kinds=["sft", "preference"], imitate="one")
    assert named["records"] == {"total": 5, "sft": 3, "preference": 2}
    assert named["rules"] == {"teacher/1": 5}
    with pytest.raises(ConfigError, match="nobody of that name answered"):
        build(tmp_path / "d", replays=path, kinds=["sft"], imitate="onee")


def test_gold_answers_give_pairs_too(tmp_path: Path) -> None:
    """Two of the three students' actions differ from the gold teacher's, whatever the others say."""
    store = make_store(tmp_path, weather_traces())
    steps = list(read_lines(replayed(tmp_path, store), ReplayedStep))
    told = [
        replace(step, answers={**step.answers, "one": replace(step.answers["one"], kind="gold answers")})
        for step in steps
    ]
    write_records(tmp_path / "gold.jsonl", told)
    result = build(tmp_path / "out", replays=tmp_path / "gold.jsonl", recipe="preferences", imitate="gold")
    assert result["records"]["preference"] == 2
    assert result["rules"] == {"gold/1": 2}
    assert {row.provenance.teachers for row in read_records(Path(result["path"]))} == {("one",)}


def test_recipes_make_the_kinds_that_belong_together(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    replays = replayed(tmp_path, store).parent  # the replay's folder will do
    made = {name: build(tmp_path / name, store=store, replays=replays, recipe=name) for name in RECIPES}
    assert {name: set(result["records"]) - {"total"} for name, result in made.items()} == {
        name: set(kinds) for name, kinds in RECIPES.items()
    }
    assert {name: result["records"]["total"] for name, result in made.items()} == {
        "preferences": 2,
        "hints": 2,
        "sft": 3,
        "distill": 3,
    }
    assert made["distill"]["levels"] == {"no_student": 3}
    rows = list(read_records(Path(made["preferences"]["path"])))
    assert {row.provenance.fidelity for row in rows} == {"exact"}
    assert all(row.provenance.why and row.provenance.cost is None for row in rows)


def test_what_the_inputs_cannot_feed_is_an_error_and_of_a_recipe_said(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    with pytest.raises(ConfigError, match=r"kind recovery cannot be made from these inputs.*a store"):
        build(tmp_path, replays=path, kinds=["sft", "recovery"])
    with pytest.raises(ConfigError, match=r"kind sft cannot be made from these inputs.*--replays"):
        build(tmp_path, store=store, kinds=["sft"])
    with pytest.raises(ConfigError, match="recipe hints cannot be made"):
        build(tmp_path, replays=path, recipe="hints")
    with pytest.raises(ConfigError, match="recipe distill cannot be made"):
        build(tmp_path, store=store, recipe="distill")
    with pytest.raises(ConfigError, match="the recipe and the kinds"):
        build(tmp_path, store=store, recipe="hints", kinds=["hinted"])
    result = build(tmp_path, store=store, recipe="preferences")
    assert result["left_out"] == {"preference": "--replays, the folder of a replay"}
    for setting in ({"imitate": "gold"}, {"mix": "1"}, {"distill.student": "x"}, {"models.judges": ["a"]}):
        with pytest.raises(ConfigError, match="has no effect here"):
            build(tmp_path, store=store, kinds=["recovery"], **setting)
    with pytest.raises(DataError, match="no replay here"):
        build(tmp_path, replays=store, kinds=["sft"])
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="no step was replayed"):
        build(tmp_path, replays=tmp_path / "empty.jsonl", kinds=["sft"])


def test_costs_are_those_of_all_answers(tmp_path: Path) -> None:
    """Two steps, teachers at 0.25 and 0.125 a step; one of them gives a pair: 0.75 in all, 0.75 a pair."""
    steps = []
    for number, (first, second) in enumerate([(RIGHT, RIGHT), (RIGHT, Message.of("assistant", "no"))]):
        answers = {
            "a": TeacherAnswer(Answer(first, "a", cost=0.25), "HTTP endpoint"),
            "b": TeacherAnswer(Answer(second, "b", cost=0.125), "HTTP endpoint"),
        }
        steps.append(ReplayedStep("t", number, Ask((Message.of("user", f"{number}"),)), act(call("x", {})), answers))
    write_records(tmp_path / "replayed.jsonl", steps)
    result = build(tmp_path / "out", replays=tmp_path, recipe="preferences")
    assert result["records"]["preference"] == 1
    assert result["dropped"] == {"preference": {"tie": 1}}
    assert result["costs"] == {"replays": 0.75, "teachers": {"a": 0.5, "b": 0.25}, "per_pair": 0.75, "models": 0.0}
    (row,) = read_records(Path(result["path"]))
    assert row.provenance.cost == 0.375


def test_an_only_teacher_is_learnt_from_but_is_no_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = ReplayedStep(
        "t", 0, Ask((Message.of("user", "?"),)), act(call("x", {})), {"a": TeacherAnswer(Answer(RIGHT, "a"), "script")}
    )
    write_records(tmp_path / "replayed.jsonl", [step])
    result = build(tmp_path / "a", replays=tmp_path, kinds=["sft", "preference", "distill"])
    assert result["records"] == {"total": 1, "sft": 1, "preference": 0, "distill": 0}
    assert result["dropped"] == {"preference": {"low_agreement": 1}, "distill": {"duplicate": 1}}
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("one teacher, a") == told.count("no majority") == 1
    assert "imitated (sft, distill); it is no majority (preference): --imitate a takes" in told
    assert build(tmp_path / "b", replays=tmp_path, kinds=["preference"], imitate="a")["records"]["preference"] == 1


def test_of_an_only_teacher_only_what_was_lost_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both sites have a template, so no hinted row is lost; the student calls at all three steps, the teacher talks."""
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store, teachers=[TEACHERS[2]])
    capsys.readouterr()
    result = build(tmp_path / "a", store=store, replays=path, kinds=["sft", "preference", "hinted"])
    assert (result["records"]["sft"], result["records"]["hinted"]) == (3, 2)
    told = " ".join(capsys.readouterr().err.split())
    assert "it is no majority (preference): --imitate shy" in told
    assert "at 3 steps where the student called a tool shy answers in words: these rows are kept (sft)" in told
    build(tmp_path / "b", store=store, replays=path, kinds=["hinted"])
    assert "one teacher" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["kinds", "recipe"])
def test_nothing_is_no_choice_of_what_to_build(tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} needs a value"):
        parse([f"--{option}", ""], fields_of(CONFIG), {})
    with pytest.raises(ConfigError, match="kinds"):
        load(CONFIG, None, {"store": str(tmp_path), "kinds": "[]"})


def test_corrections_are_learnt_with_a_mix_of_what_was_right(tmp_path: Path) -> None:
    """One correction gives a row to imitate and, as it has a reason, a verdict triple; 0.5 * 2 = 1 row is mixed in."""
    store = make_store(tmp_path, weather_traces())
    options = {
        "where": str(store),
        "trace": "trace-0",
        "step": "0",
        "calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}],
    }
    correct.run(load(correct.CONFIG, None, {**options, "reason": "I said Rome", "by": "ada"}), tmp_path)
    result = build(tmp_path / "out", store=store, kinds=["correction", "corrected", "refined"], mix="0.5")
    assert result["records"] == {"total": 4, "correction": 1, "corrected": 1, "refined": 1, "taken": 1}
    pair = next(row for row in read_records(Path(result["path"])) if row.rejected is not None)
    assert pair.action.tool_calls[0].arguments == {"city": "Rome"}
    assert (pair.provenance.rule, pair.provenance.teachers, pair.provenance.why) == (
        "correction/1",
        ("human:ada",),
        "I said Rome",
    )


def test_judges_confirm_pairs_and_are_named(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    path = replayed(tmp_path, store)
    judges = {
        "teachers": [
            {"name": "x", "kind": "unit.verbs.replay_setting:Judge", "model": "gpt-x"},
            {"name": "y", "kind": "unit.verbs.replay_setting:Judge", "model": "claude-y"},
            {"name": "z", "kind": "unit.verbs.replay_setting:Judge", "model": "claude-z"},
        ],
        "judges": ["x", "y"],
    }
    result = build(tmp_path / "out", replays=path, kinds=["preference"], models=judges)
    assert result["records"]["preference"] == 2
    rows = list(read_records(Path(result["path"])))
    assert all(row.provenance.why.endswith("judges x, y agree") for row in rows)
    with pytest.raises(ConfigError, match="judges of two families"):
        build(tmp_path / "a", replays=path, kinds=["preference"], models={**judges, "judges": ["y", "z"]})
    with pytest.raises(ConfigError, match="no model of this name; got 'w'"):
        build(tmp_path / "b", replays=path, kinds=["preference"], models={**judges, "judges": ["x", "w"]})


def test_a_judge_that_nobody_can_reach_is_no_judge_without_an_opinion(tmp_path: Path) -> None:
    """Its pairs are not dropped: the build ends, and the same command goes on."""
    path = replayed(tmp_path, make_store(tmp_path, weather_traces()))
    here, gone = {"name": "x", "kind": "unit.verbs.replay_setting:Judge", "model": "gpt-x"}, {"name": "y"}
    gone |= {"kind": "ollama", "model": "claude-y", "base_url": "http://127.0.0.1:9", "max_retries": 0}
    models = {"teachers": [here, gone], "judges": ["x", "y"]}
    with pytest.raises(OutsideFailure, match="y could not be reached for 4 of 4 questions"):
        build(tmp_path / "out", replays=path, kinds=["preference"], models=models)
    sent = json.loads((tmp_path / "out" / "sent.json").read_text())
    assert (sent["x"]["where"], sent["y"]["where"], sent["y"]["tries"]) == ("this machine", ["127.0.0.1:9"], 4)
    with pytest.raises(ConfigError, match="families has 'z', which is none of the judges"):
        build(tmp_path / "b", replays=path, kinds=["preference"], models={**models, "families": {"z": "gpt"}})


def test_what_models_were_told_is_redacted_and_on_record(tmp_path: Path) -> None:
    """The two error sites are of the first and the third trace; the first request holds a secret."""
    store = make_store(tmp_path, weather_traces())
    quiet = build(tmp_path / "quiet", store=store, recipe="hints")
    assert quiet["sent"] is None
    assert not (tmp_path / "quiet" / "sent.json").exists()
    with serving(completion("Read the schema of the tool first.")) as endpoint:
        writer = {"name": "w", "kind": "openai", "model": "m-1", "base_url": endpoint.base_url}
        writer |= {"price": {"input": 0, "output": 0}}
        models = {"teachers": [writer], "writer": "w"}
        result = build(tmp_path / "out", store=store, recipe="hints", hints={"layers": ["writer"]}, models=models)
    assert SECRET not in json.dumps(endpoint.requests)
    sent = json.loads(Path(result["sent"]).read_text())
    assert sent["w"]["where"] == [endpoint.base_url.removeprefix("http://").removesuffix("/v1")]
    assert [row["outcome"] for row in sent["w"]["requests"]] == ["answered"] * len(endpoint.requests)
    assert len(endpoint.requests) == 2
    assert "weather" not in Path(result["sent"]).read_text()


def test_half_of_a_hint_writer_is_an_error(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with pytest.raises(ConfigError, match="half of a hint writer"):
        build(tmp_path, store=store, recipe="hints", hints={"layers": ["writer"]})
    models = {"teachers": [{"name": "w", "kind": "unit.verbs.replay_setting:Shy"}], "writer": "w"}
    with pytest.raises(ConfigError, match="half of a hint writer"):
        build(tmp_path, store=store, recipe="hints", models=models)
    result = build(tmp_path, store=store, recipe="hints", hints={"layers": ["writer"]}, models=models)
    assert [row.hint for row in read_records(Path(result["path"]))] == ["I would rather not."] * 2


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
    one, two = (Path(build(tmp_path / name, store=store, replays=path)["path"]) for name in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_mistakes_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to build from"):
        build(tmp_path)
    bad = tmp_path / "replayed.jsonl"
    bad.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1 is no ReplayedStep"):
        build(tmp_path, replays=bad)
    with pytest.raises(DataError, match="no trace store"):
        build(tmp_path, store=tmp_path / "nowhere")


def test_a_replay_of_another_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three traces the replay knows all, one store the first and another the rest."""
    whole, first, rest = (tmp_path / name for name in ("whole", "first", "rest"))
    for folder in (whole, first, rest):
        folder.mkdir()
    traces = weather_traces()
    answers = replayed(first, make_store(first, traces[:1]))
    with pytest.raises(DataError, match=r"replay of another store: none of its 1 step is of a trace in .*rest"):
        build(tmp_path / "build", store=make_store(rest, traces[1:]), replays=answers)
    answers = replayed(whole, make_store(whole, traces))
    build(tmp_path / "built", store=first / "store", replays=answers)
    assert "2 steps of" in capsys.readouterr().err


def test_pairs_that_cost_nothing_have_no_price(tmp_path: Path) -> None:
    """A recovery is in the trace itself: what the replay beside it cost is not its price."""
    fails = TraceBuilder().step(act(bash("git push", "c0")), [("Exit code 128\nfatal: no upstream", True)])
    trace = fails.step(act(bash("git push -u o m", "c1")), [("pushed", False)]).build()
    store = make_store(tmp_path, [trace])
    result = build(tmp_path / "build", store=store, replays=replayed(tmp_path, store), kinds=["recovery"])
    assert (result["records"]["recovery"], result["costs"]["per_pair"]) == (1, None)
