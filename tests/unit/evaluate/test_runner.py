"""The runner: outcomes, resuming, and that stored items never answer for another model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.message import Message, ToolCall
from postgrad.core.report import Score
from postgrad.core.task import Grade, Task
from postgrad.evaluate import runner
from postgrad.evaluate.runner import Conditions, Measurement, NotMeasurable, Part, as_text, evaluate
from postgrad.evaluate.store import Evaluated
from unit.evaluate.fakes import Echo, Parity, Spoil, tasks

GREEDY = Sampling(max_new_tokens=8)


def measure(actor: Echo, n: int = 10, environment: Parity | None = None, **conditions: Any) -> Score:
    how = Conditions(**{"batch": 4, "retries": 0, **conditions})
    return evaluate(actor, environment or Parity(), tasks(n), sampling=GREEDY, benchmark="parity/all", conditions=how)


def test_score_says_how_it_was_measured() -> None:
    score = measure(Echo("model a"))
    assert score.n == len(score.items) == 10
    assert [item.id for item in score.items] == [f"t{i}" for i in range(10)]
    assert score.mean == sum(item.score for item in score.items) / 10
    told = {"mode": "free", "max_new_tokens": "8", "temperature": "0", "actor": "model a"}
    assert told.items() <= score.settings.items()
    wrong = next(item for item in score.items if item.score == 0)
    assert wrong.error == f"wrong_answer: got {wrong.answer}"


class Denies(Parity):
    """Grades the other way round."""

    def grade(self, task: Task, message: Message) -> Grade:
        return Grade(1 - super().grade(task, message).score)


def test_benchmarks_that_are_measured_together_fill_each_others_batches() -> None:
    """6 and 5 tasks in batches of 4 are 3 calls, where 2 + 2 would be needed apart; ids may be the same in both, each
    is graded by its own environment, and a benchmark of which nothing fits has no score and spoils none.
    """
    how = Conditions(batch=4, retries=0)
    parts = [Part("a/all", Parity(), tasks(6), how), Part("b/all", Denies(), tasks(5), how)]
    echo = Echo()
    first, second = runner.measure(echo, parts, sampling=GREEDY)
    assert echo.calls == 3
    assert isinstance(first, Measurement)
    assert isinstance(second, Measurement)
    for result, part in ((first, parts[0]), (second, parts[1])):
        assert result.score.benchmark == part.benchmark
        assert [item.id for item in result.score.items] == [task.id for task in part.tasks]
        for task, answer in zip(part.tasks, result.answers, strict=True):
            assert answer.message is not None
            assert answer.item.score == part.environment.grade(task, answer.message).score

    unfit = Echo(spoil=lambda ask, call: Answer(None, "echo", "too_long") if ask.task_id == "t5" else None)
    alone = [Part("a/all", Parity(), tasks(5), how), Part("long/all", Parity(), tasks(6)[5:], how)]
    known, unknown = runner.measure(unfit, alone, sampling=GREEDY)
    assert isinstance(known, Measurement)
    assert known.score.n == 5
    assert isinstance(unknown, NotMeasurable)


def test_prompts_hash_follows_the_prompts() -> None:
    assert measure(Echo(), 10).settings["prompts"] == measure(Echo(), 10).settings["prompts"]
    assert measure(Echo(), 10).settings["prompts"] != measure(Echo(), 9).settings["prompts"]


def answer_of(task: str, reason: str) -> Spoil:
    def spoil(ask: Ask, call: int) -> Answer | None:
        return Answer(Message.of("assistant", "odd"), "echo", reason) if ask.task_id == task else None

    return spoil


def test_truncated_counts_and_too_long_does_not() -> None:
    """Task 1 is odd and answered "odd": cut off, it still scores 1; a prompt that does not fit scores nothing."""
    cut = measure(Echo(spoil=answer_of("t1", "length")))
    assert (cut.items[1].outcome, cut.items[1].score, cut.n) == ("truncated", 1.0, 10)
    unfit = measure(Echo(spoil=answer_of("t1", "too_long")))
    assert (unfit.items[1].outcome, unfit.n) == ("too_long", 9)
    rest = [item.score for item in unfit.items if item.id != "t1"]
    assert unfit.mean == pytest.approx(sum(rest) / 9)


def test_no_prompt_fits() -> None:
    everything = Echo(spoil=lambda ask, call: Answer(None, "echo", "too_long"))
    with pytest.raises(NotMeasurable, match="no prompt fits"):
        measure(everything)


def test_abstention_is_a_wrong_answer() -> None:
    score = measure(Echo(spoil=lambda ask, call: Answer(None, "echo") if ask.task_id == "t3" else None))
    assert (score.items[3].score, score.items[3].error, score.n) == (0.0, "no_answer", 10)


def test_an_endpoint_that_refuses_an_ask_gives_no_score() -> None:
    told = "refused: 400 the context is too long"
    score = measure(Echo(spoil=lambda ask, call: Answer(None, "echo", told) if ask.task_id == "t3" else None))
    assert (score.items[3].outcome, score.items[3].error, score.n) == ("infra_error", f"stop reason: {told}", 9)


def failing(task: str, until: int) -> Spoil:
    def spoil(ask: Ask, call: int) -> Answer | None:
        if ask.task_id == task and call <= until:
            raise OutsideFailure("connection reset")
        return None

    return spoil


def test_one_bad_ask_costs_one_item_and_is_asked_again(tmp_path: Path) -> None:
    store = tmp_path / "items.jsonl"
    broken = measure(Echo(spoil=failing("t2", until=99)), weights="w", store=store)
    assert [item.id for item in broken.items if item.outcome == "infra_error"] == ["t2"]
    assert broken.n == 9
    again = Echo()
    assert measure(again, weights="w", store=store) == measure(Echo(), weights="w")
    assert "t2" in again.asked
    assert len(again.asked) == 4  # its batch, no other


def test_retries_save_the_item() -> None:
    score = measure(Echo(spoil=failing("t2", until=2)), retries=2)
    assert score.n == 10


def test_an_actor_that_is_gone_stops_the_evaluation() -> None:
    def gone(ask: Ask, call: int) -> Answer | None:
        raise OutsideFailure("connection refused")

    with pytest.raises(OutsideFailure, match="connection refused"):
        measure(Echo(spoil=gone))


def test_a_dead_grader_is_no_zero() -> None:
    score = measure(Echo(), environment=Parity(dead=["t4"]))
    assert (score.items[4].outcome, score.n) == ("infra_error", 9)
    with pytest.raises(OutsideFailure, match="the sandbox died"):
        measure(Echo(), environment=Parity(dead=[f"t{i}" for i in range(10)]))


def test_stored_items_are_not_asked_again(tmp_path: Path) -> None:
    store = tmp_path / "items.jsonl"
    once = measure(Echo(), weights="w", store=store)
    silent = Echo()
    assert measure(silent, weights="w", store=store) == once
    assert silent.calls == 0


@pytest.mark.parametrize("change", ["weights", "grader"])
def test_another_model_or_grader_shares_no_line(tmp_path: Path, change: str) -> None:
    """The fault of lm-evaluation-harness issue 4063: a second model was given the first one's answers."""
    store = tmp_path / "items.jsonl"
    measure(Echo(), store=store, **{"weights": "w", "grader": "g 1"})
    other = Echo()
    measure(other, store=store, **{"weights": "w", "grader": "g 1", change: "other"})
    assert sorted(other.asked) == sorted(f"t{i}" for i in range(10))


@pytest.mark.parametrize("keep", [0, 3, 7])
def test_resumed_equals_unbroken_at_any_line(tmp_path: Path, keep: int) -> None:
    """The fake's answers depend on the place in the batch, so a resumed run that cut its batches anew would differ."""
    store = tmp_path / "items.jsonl"
    whole = measure(Echo(), weights="w", store=store)
    lines = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(b"".join(lines[:keep]) + lines[keep][:17])  # torn in the middle of a line
    assert measure(Echo(), weights="w", store=store) == whole
    ids = [msgspec.json.decode(line, type=Evaluated).item.id for line in store.read_bytes().splitlines()]
    assert sorted(ids) == sorted(f"t{i}" for i in range(10))


def test_killed_and_resumed(tmp_path: Path) -> None:
    """SIGKILL in the third batch of a real process; the resumed score equals the unbroken one, every item once."""
    store = tmp_path / "items.jsonl"
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from unit.evaluate.fakes import Echo
        from unit.evaluate.test_runner import measure

        def spoil(ask, call):
            if call == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        measure(Echo(spoil=spoil), weights="w", store=Path({str(store)!r}))
    """)
    tests, source = Path(__file__).parents[2], Path(__file__).parents[3] / "src"
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{tests}"}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(store.read_bytes().splitlines()) == 8
    resumed = Echo()
    assert measure(resumed, weights="w", store=store) == measure(Echo(), weights="w")
    assert len(resumed.asked) == 2
    assert len(store.read_bytes().splitlines()) == 10


def test_a_broken_line_is_told(tmp_path: Path) -> None:
    store = tmp_path / "items.jsonl"
    store.write_text("not json\n")
    with pytest.raises(DataError, match="line 1 is broken"):
        measure(Echo(), weights="w", store=store)


def test_tasks_must_be_there_and_distinct() -> None:
    with pytest.raises(DataError, match="no tasks"):
        measure(Echo(), 0)
    with pytest.raises(DataError, match="two tasks have one id"):
        evaluate(Echo(), Parity(), [*tasks(2), *tasks(1)], sampling=GREEDY, benchmark="parity/all")


def test_answers_are_shown_with_their_calls() -> None:
    call = ToolCall.from_raw(id="c1", name="add", raw='{"a": 1}')
    message = Message("assistant", (*Message.of("assistant", "Adding. ").blocks, call))
    assert as_text(message) == 'Adding.\nadd({"a": 1})'
