"""Replay, its report and its budget, with scripted teachers."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Text
from postgrad.core.trace import Step, Trace
from postgrad.teachers.budget import Budget, BudgetReached
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.prices import Price, read_prices
from postgrad.teachers.replay import ReplayedStep, Teacher, TeacherAnswer, ask_of, replay
from postgrad.teachers.report import percentile, report, total_cost
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call

ROME = act(call("get_weather", {"city": "Rome"}))


def trace(id: str, steps: int = 3) -> Trace:
    builder = TraceBuilder(f"weather in {id}?", [WEATHER], task_id=f"task-{id}")
    for number in range(steps):
        builder.step(act(call("get_weather", {"city": str(number)}, f"c{number}")), [("20", False)])
    return builder.build(id)


def test_each_selected_step_is_asked_as_the_student_saw_it() -> None:
    actor = ScriptedActor("a", lambda ask: ROME)
    traces = [trace("x"), trace("y"), trace("z")]
    steps = {"x": [0, 2], "z": [1]}
    replayed = list(replay(traces, steps, [Teacher("a", actor)], Sampling(), batch=2))
    assert [(step.trace, step.step) for step in replayed] == [("x", 0), ("x", 2), ("z", 1)]
    assert actor.asked == [step.ask for step in replayed]
    assert replayed[1].ask == ask_of(traces[0], traces[0].steps[2])
    assert replayed[1].ask.messages == traces[0].context(traces[0].steps[2])
    assert (replayed[1].ask.task_id, replayed[1].ask.tools) == ("task-x", (WEATHER,))
    assert replayed[1].action == traces[0].steps[2].action


def test_a_hint_goes_to_its_teacher_only_and_not_into_the_ask() -> None:
    told, plain = ScriptedActor("told", lambda ask: ROME), ScriptedActor("plain", lambda ask: ROME)

    def hint(trace: Trace, step: Step) -> str | None:
        return f"hint {step.index}" if step.index else None

    teachers = [Teacher("told", told, hint=hint), Teacher("plain", plain)]
    first, second = replay([trace("x")], {"x": [0, 1]}, teachers, Sampling())
    assert [ask.hint for ask in told.asked] == [None, "hint 1"]
    assert [ask.hint for ask in plain.asked] == [None, None]
    assert second.ask.hint is None
    assert (second.answers["told"].hint, second.answers["plain"].hint) == ("hint 1", None)
    assert report([first, second], teachers)["told"]["hinted"] == 1


def test_a_second_replay_is_all_from_the_cache(tmp_path: Path) -> None:
    actor = ScriptedActor("a", lambda ask: ROME)
    teachers = [Teacher("a", CachedActor(actor, tmp_path))]
    first = list(replay([trace("x")], {"x": [0, 1]}, teachers, Sampling()))
    second = list(replay([trace("x")], {"x": [0, 1, 2]}, teachers, Sampling()))
    assert [step.answers["a"].cached for step in first] == [False, False]
    assert [step.answers["a"].cached for step in second] == [True, True, False]
    assert len(actor.asked) == 3


def answered(*answers: Answer, cached: int = 0) -> list[ReplayedStep]:
    ask = Ask((Message.of("user", "?"),), (WEATHER,))
    return [
        ReplayedStep("t", place, ask, ROME, {"a": TeacherAnswer(answer, "HTTP endpoint", cached=place < cached)})
        for place, answer in enumerate(answers)
    ]


def test_report_by_hand() -> None:
    """Costs 1 + 2 + 4, the first one cached: cost 7, paid 6. Seconds 1..4: p50 is the 2nd, p95 the 4th."""
    steps = answered(
        Answer(ROME, "m-1", seconds=4.0, cost=1.0),
        Answer(act(call("get_weather", {"city": 5})), "m-2", seconds=1.0, cost=2.0),
        Answer(act(Text(" ")), "m-1", seconds=2.0, cost=4.0),
        Answer(None, "m-1", stop_reason="refused: 400 too long", seconds=3.0),
        cached=1,
    )
    told = report(steps, [Teacher("a", ScriptedActor("a", {}, kind="HTTP endpoint"), metered=True)])["a"]
    assert told == {
        "kind": "HTTP endpoint",
        "models": ["m-1", "m-2"],
        "answers": 3,
        "abstentions": 1,
        "refusals": {"refused: 400 too long": 1},
        "invalid": 2,
        "invalid_reasons": {"against_schema": 1, "empty": 1},
        "hinted": 0,
        "cost": 7.0,
        "paid": 6.0,
        "seconds_p50": 2.0,
        "seconds_p95": 4.0,
        "cache_hits": 1,
    }


def test_an_unknown_price_is_unknown_and_a_free_teacher_is_free() -> None:
    answers = [step.answers["a"] for step in answered(Answer(ROME, "m", cost=1.0), Answer(ROME, "m"))]
    assert total_cost(answers, metered=True) == "unknown"
    assert total_cost(answers, metered=False) == 1.0
    assert total_cost([], metered=True) == 0.0


def test_percentile_of_nothing_and_of_one() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.95) == 3.0


def test_a_budget_is_never_exceeded() -> None:
    """A completion token costs 1 US dollar and 10 may be written: a call may cost 10, costs 4; budget 25.

    Before call 1: 0 + 10 fits; 2: 4 + 10; 3: 8 + 10; 4: 12 + 10; 5: 16 + 10 = 26 > 25 stops. Paid 16.
    """

    class Dear:
        name, kind = "a", "HTTP endpoint"

        def answer(self, asks: list[Ask], sampling: Sampling) -> list[Answer]:
            return [Answer(ROME, "m", cost=4.0) for _ in asks]

    teacher = Teacher("a", Dear(), metered=True, price=Price(0.0, 1e6))
    sampling = Sampling(max_new_tokens=10)
    budget = Budget(25.0, [teacher], sampling)
    steps = replay([trace("x", 9)], {"x": list(range(9))}, [teacher], sampling, batch=1, before=budget.check)
    for _ in range(4):
        budget.pay(next(steps))
    assert budget.paid == 16.0
    with pytest.raises(BudgetReached):
        next(steps)


def test_a_budget_needs_prices() -> None:
    free = Teacher("local", ScriptedActor("local", {}))
    Budget(1.0, [free], Sampling())
    with pytest.raises(ConfigError, match="far has no known price"):
        Budget(1.0, [free, Teacher("far", ScriptedActor("far", {}), metered=True)], Sampling())


def test_shipped_prices_are_dated_and_own_ones_are_checked(tmp_path: Path) -> None:
    assert read_prices().models
    assert len(read_prices().as_of) == 10
    own = tmp_path / "prices.yaml"
    own.write_text('as_of: "2026-01-01"\nmodels: {m: {input: 1, output: 2}}\n', encoding="utf-8")
    assert read_prices(own).models["m"].cost(prompt_tokens=1_000_000, completion_tokens=500_000) == 2.0
    own.write_text("models: {m: {in: 1}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot use the price file"):
        read_prices(own)
