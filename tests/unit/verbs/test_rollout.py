"""The verb `rollout` with a gold actor in place of a model: results, files, resuming, refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.message import Message
from postgrad.envs import GoldActor
from postgrad.envs.function_calling import FunctionCalling
from postgrad.traces.readers import read
from postgrad.verbs import rollout as verb

TASKS = FunctionCalling().tasks("train", 10)


class Pupil:
    """Gold for most tasks; says "Hm." to the first two, nothing to the third; fails after `alive` batches."""

    name = "pupil"
    kind = "script"

    def __init__(self, alive: int = 99) -> None:
        self.alive, self.batches = alive, list[list[Ask]]()
        self._gold = GoldActor(TASKS)

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        if len(self.batches) == self.alive:
            raise OutsideFailure("the line is dead")
        self.batches.append(list(asks))
        return [self._one(ask, sampling) for ask in asks]

    def _one(self, ask: Ask, sampling: Sampling) -> Answer:
        place = [task.id for task in TASKS].index(str(ask.task_id))
        if place == 2:
            return Answer(None, "pupil")
        return Answer(Message.of("assistant", "Hm."), "pupil") if place < 2 else self._gold.answer([ask], sampling)[0]


@pytest.fixture
def pupil(monkeypatch: pytest.MonkeyPatch) -> Pupil:
    pupil = Pupil()
    monkeypatch.setattr(verb, "load_actor", lambda config, tasks: (pupil, "weights-1"))
    return pupil


CONFIG = verb.RolloutConfig(model="any", n=10, batch=4)


def test_result_and_traces(pupil: Pupil, tmp_path: Path) -> None:
    """10 tasks, 7 right: 0.7. The first two want calls and get text; the third gets no answer.

    Its trace has no step, so the file has nine lines; the reader of chat logs finds nine traces in them.
    """
    assert all(task.expected for task in TASKS[:2])
    result = verb.run(CONFIG, tmp_path)
    path = tmp_path / "traces.sources.jsonl"
    assert result == {
        "n": 10,
        "accuracy": 0.7,
        "errors": {"no_call": 2, "no_answer": 1},
        "overlap": {},
        "traces": str(path),
    }
    assert json.loads(json.dumps(result)) == result
    assert len(path.read_text().splitlines()) == 9
    traces = read(path).traces
    assert [trace.task_id for trace in traces] == [task.id for i, task in enumerate(TASKS) if i != 2]
    assert [trace.steps[0].feedback[0].value for trace in traces] == [0.0, 0.0, *[1.0] * 7]
    assert all(trace.steps[0].request.tools for trace in traces)


def test_batches_and_sampling(pupil: Pupil, tmp_path: Path) -> None:
    verb.run(CONFIG, tmp_path)
    assert [len(batch) for batch in pupil.batches] == [4, 4, 2]


def test_resume_asks_only_for_what_is_missing(pupil: Pupil, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The actor dies after two of three batches; the second run asks for the third alone and ends with equal files."""
    whole = verb.run(CONFIG, tmp_path / "whole")
    dying = Pupil(alive=2)
    monkeypatch.setattr(verb, "load_actor", lambda config, tasks: (dying, "weights-1"))
    with pytest.raises(OutsideFailure, match="dead"):
        verb.run(CONFIG, tmp_path / "cut")
    assert not (tmp_path / "cut" / "traces.sources.jsonl").exists()
    fresh = Pupil()
    monkeypatch.setattr(verb, "load_actor", lambda config, tasks: (fresh, "weights-1"))
    resumed = verb.run(CONFIG, tmp_path / "cut")
    assert [len(batch) for batch in fresh.batches] == [2]
    assert Path(resumed["traces"]).read_bytes() == Path(whole["traces"]).read_bytes()
    assert {**resumed, "traces": ""} == {**whole, "traces": ""}


def test_other_weights_or_settings_are_asked_anew(
    pupil: Pupil, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verb.run(CONFIG, tmp_path)
    verb.run(CONFIG.model_copy(update={"max_turns": 2}), tmp_path)
    assert len(pupil.batches) == 6
    monkeypatch.setattr(verb, "load_actor", lambda config, tasks: (pupil, "weights-2"))
    verb.run(CONFIG, tmp_path)
    assert len(pupil.batches) == 9


@pytest.mark.parametrize(
    ("environment", "split"),
    [("function_calling", "heldout"), ("bfcl", "simple_python"), ("function_calling", "tests")],
)
def test_what_is_for_evaluation_is_refused(pupil: Pupil, tmp_path: Path, environment: str, split: str) -> None:
    config = verb.RolloutConfig(model="any", environment=environment, split=split)
    with pytest.raises(ConfigError, match="may not be trained on"):
        verb.run(config, tmp_path)
    assert pupil.batches == []


def test_show_counts_what_was_right() -> None:
    table = verb.show({"n": 10, "accuracy": 0.7, "errors": {"no_call": 2, "no_answer": 1}, "traces": "t"})
    assert list(table.rows) == [("right", "7"), ("no_call", "2"), ("no_answer", "1")]
    assert table.title == "10 rollouts in t"


def test_gold_answers_act_as_a_teacher(tmp_path: Path) -> None:
    result = verb.run(verb.RolloutConfig(model="gold", n=6), tmp_path)
    assert result["accuracy"] == 1.0
    assert '"model":"gold"' in Path(result["traces"]).read_text().replace(" ", "")


def test_rehearsal_is_checked_against_the_retention_guard(tmp_path: Path) -> None:
    config = verb.RolloutConfig(model="gold", environment="plain", n=6, benchmarks=("retention/facts",))
    assert verb.run(config, tmp_path)["overlap"] == {"retention/facts": {"name": 0, "sequence": 0, "near": 0}}


def test_tasks_are_checked_against_benchmarks(tmp_path: Path) -> None:
    """The train split overlaps with itself, and not with BFCL."""
    clean = verb.run(verb.RolloutConfig(model="gold", n=6, benchmarks=("bfcl/simple_python",)), tmp_path / "a")
    assert clean["overlap"] == {"bfcl/simple_python": {"name": 0, "sequence": 0, "near": 0}}
    with pytest.raises(DataError, match="training tasks overlap with function_calling/train"):
        verb.run(verb.RolloutConfig(model="gold", n=6, benchmarks=("function_calling/train",)), tmp_path / "b")
