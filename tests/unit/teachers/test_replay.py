"""Replay with scripted teachers and scripted endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.actor import Ask
from postgrad.core.errors import ConfigError
from postgrad.core.trace import Step, Trace
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.gateway import Gateway, Limits
from postgrad.teachers.money.budget import Budget
from postgrad.teachers.money.prices import Price
from postgrad.teachers.money.schedule import ask_of
from postgrad.teachers.replay import ReplayedStep, Teacher, replay
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call
from unit.teachers.asking import SAMPLING, openai, teacher
from unit.teachers.endpoint_by_script import ERROR, Reply, completion, serving

ROME = act(call("get_weather", {"city": "Rome"}))
DISCOUNT = Price(1.0, 1.0, cached_input=0.1)


def trace(id: str, steps: int = 3) -> Trace:
    builder = TraceBuilder(f"weather in {id}?", [WEATHER], task_id=f"task-{id}")
    for number in range(steps):
        builder.step(act(call("get_weather", {"city": str(number)}, f"c{number}")), [("20", False)])
    return builder.build(id)


def over(traces: Sequence[Trace], teachers: Sequence[Teacher], **options: Any) -> list[ReplayedStep]:
    """All steps of `traces`."""
    steps = {one.id: [step.index for step in one.steps] for one in traces}
    return list(replay(traces, steps, teachers, SAMPLING, **options))


def test_each_selected_step_is_asked_as_the_student_saw_it() -> None:
    actor = ScriptedActor("a", lambda ask: ROME)
    traces = [trace("x"), trace("y"), trace("z")]
    steps = {"x": [0, 2], "z": [1]}
    replayed = list(replay(traces, steps, [Teacher("a", actor)], SAMPLING, batch=2))
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
    first, second = over([trace("x", 2)], teachers)
    assert [ask.hint for ask in told.asked] == [None, "hint 1"]
    assert [ask.hint for ask in plain.asked] == [None, None]
    assert (first.answers["told"].hint, second.ask.hint) == (None, None)
    assert (second.answers["told"].hint, second.answers["plain"].hint) == ("hint 1", None)


def test_a_second_replay_is_all_from_the_cache(tmp_path: Path) -> None:
    actor = ScriptedActor("a", lambda ask: ROME)
    teachers = [Teacher("a", CachedActor(actor, tmp_path))]
    first = over([trace("x", 2)], teachers)
    second = over([trace("x", 3)], teachers)
    assert [step.answers["a"].cached for step in first] == [False, False]
    assert [step.answers["a"].cached for step in second] == [True, True, False]
    assert len(actor.asked) == 3


def test_teachers_of_every_kind_answer_each_step_in_the_order_of_the_recipe(tmp_path: Path) -> None:
    with serving(completion("far")) as endpoint:
        teachers = [
            Teacher("near", ScriptedActor("near", lambda ask: ROME)),
            Teacher("http", teacher(tmp_path, openai(endpoint.base_url))),
        ]
        replayed = over([trace("x"), trace("y")], teachers, batch=4)
    assert [list(step.answers) for step in replayed] == [["near", "http"]] * 6
    texts = [step.answers["http"].answer.message for step in replayed]
    assert [message.text for message in texts if message] == ["far"] * 6


def test_with_a_discount_a_traces_steps_go_one_after_the_other_and_traces_side_by_side(tmp_path: Path) -> None:
    """Two traces of three steps. Each begins with the same tools, so the first leads; then the other runs beside it."""
    with serving(answer=lambda body: Reply(completion("hi").body, wait=0.2)) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=DISCOUNT, limits=Limits(8))
        over([trace("x"), trace("y")], [Teacher("http", asked, price=DISCOUNT)])
    requests = [(body["messages"][0]["content"], len(body["messages"])) for body in endpoint.requests]
    for city in "xy":
        assert [length for words, length in requests if words == f"weather in {city}?"] == [1, 3, 5]
    assert requests[0] == ("weather in x?", 1)
    assert endpoint.most_at_once == 2


def test_without_a_discount_everything_goes_at_once(tmp_path: Path) -> None:
    with serving(answer=lambda body: Reply(completion("hi").body, wait=1.0)) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=Limits(8))
        over([trace("x"), trace("y")], [Teacher("http", asked)])
    assert endpoint.most_at_once == 6


def test_a_budget_ends_a_replay_at_steps_that_all_have_answered(tmp_path: Path) -> None:
    """A written token costs 1 US dollar, 20 are written and 64 may be: of 100 US dollars 20, 40 leave room for 64."""
    price = Price(0.0, 1e6)
    with serving(completion("hi")) as endpoint:
        gateway = Gateway(budget=Budget(100.0))
        dear = teacher(tmp_path, openai(endpoint.base_url), price=price, gateway=gateway, limits=Limits(1))
        free = ScriptedActor("free", lambda ask: ROME)
        replayed = over([trace("x", 5)], [Teacher("http", dear, price=price), Teacher("free", free)])
        assert len(endpoint.requests) == 2
    assert [step.step for step in replayed] == [0, 1]
    assert all(set(step.answers) == {"http", "free"} for step in replayed)
    assert (gateway.budget.paid, gateway.budget.stopped) == (40.0, True)
    assert len(free.asked) == 2


def test_a_leader_that_fails_does_not_hold_the_others(tmp_path: Path) -> None:
    with serving(Reply(ERROR, 400), completion("hi")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=DISCOUNT)
        replayed = over([trace("x", 1), trace("y", 1)], [Teacher("http", asked, price=DISCOUNT)])
    assert [step.answers["http"].answer.error for step in replayed] == ["refused", None]


def test_a_users_mistake_ends_a_replay_once_what_is_under_way_has_ended(tmp_path: Path) -> None:
    def say(body: dict[str, Any]) -> Reply:
        return Reply(ERROR, 401) if "x" in body["messages"][0]["content"] else Reply(completion("hi").body, wait=0.2)

    with serving(answer=say) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=Limits(8))
        with pytest.raises(ConfigError, match="refused the key"):
            over([trace("x", 1), trace("y", 1)], [Teacher("http", asked)])
        (known,) = asked.known([ask_of(trace("y", 1), trace("y", 1).steps[0])], SAMPLING)
    assert known is not None
    assert known.message is not None


def test_an_ask_is_the_context_alone() -> None:
    one = trace("x", 1)
    assert ask_of(one, one.steps[0]) == Ask(one.context(one.steps[0]), (WEATHER,), "task-x")
