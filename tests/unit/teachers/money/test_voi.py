"""Value of information: what is chosen first, by hand."""

from __future__ import annotations

import math

import pytest

from postgrad.core.message import Message
from postgrad.teachers.money.voi import Doubt, Prospect, Weights, cheapest, choose, features
from unit.signals.traces_by_hand import act, call


def prospect(step: int, trace: str = "t", cost: float = 1.0, **more: float | frozenset[str]) -> Prospect:
    return Prospect(trace, step, cost, **more)  # type: ignore[arg-type]


def steps(chosen: list[Prospect]) -> list[int]:
    return [one.step for one in chosen]


def test_error_sites_come_before_doubts_and_doubts_before_the_rest() -> None:
    pool = [prospect(0), prospect(1, uncertainty=0.5), prospect(2, error=1.0)]
    assert steps(choose(pool, 3.0)) == [2, 1, 0]
    assert steps(choose(pool, 2.0)) == [2, 1]


def test_worth_is_weighed_against_cost() -> None:
    """Two doubts of 0.5 for 1 dollar each are worth more than one mistake for 4: (1 + 0.05 + 0.1) / 4 < 0.5."""
    pool = [prospect(0, cost=4.0, error=1.0), prospect(1, uncertainty=0.5), prospect(2, uncertainty=0.5)]
    assert steps(choose(pool, 4.0)) == [1, 2]


def test_what_does_not_fit_is_passed_over_and_money_is_not_overspent() -> None:
    pool = [prospect(0, cost=5.0, error=1.0), prospect(1, cost=2.0), prospect(2, cost=2.0)]
    chosen = choose(pool, 4.5)
    assert steps(chosen) == [1, 2]
    assert sum(one.cost for one in chosen) <= 4.5


def test_a_mistake_like_another_counts_half() -> None:
    """Same features: novelty 1 / (1 + 1). So a lesser error of a new kind comes second."""
    same, new = frozenset(["error a"]), frozenset(["error b"])
    pool = [
        prospect(0, error=1.0, features=same),
        prospect(1, error=1.0, features=same),
        prospect(2, error=0.7, features=new),
    ]
    assert steps(choose(pool, 3.0)) == [0, 2, 1]


def test_early_steps_come_first_among_equals() -> None:
    pool = [prospect(n, position=n / 2) for n in range(3)]
    assert steps(choose(pool, 2.0)) == [0, 1]


def test_without_tools_a_step_is_worth_a_fifth() -> None:
    """A doubt of 0.5 over words: 0.2 x (0.35 + 0.1 + 0.05) = 0.1, less than the 0.15 of any other."""
    pool = [prospect(0, uncertainty=0.5, tools=False), prospect(1)]
    assert steps(choose(pool, 2.0)) == [1, 0]


def test_the_greedy_choice_is_what_looking_at_all_gives() -> None:
    """The heap with stale entries against the plain loop, on 60 prospects with shared features."""
    pool = [
        prospect(
            n, cost=1 + n % 3, error=(n % 5) / 4, uncertainty=(n % 7) / 6, features=frozenset([f"{n % 4}", f"{n % 9}"])
        )
        for n in range(60)
    ]
    counts: dict[str, int] = {}
    left, rest, expected = 40.0, list(pool), list[int]()

    def rate(one: Prospect) -> float:
        novelty = sum(1 / (1 + counts.get(feature, 0)) for feature in one.features) / len(one.features)
        w = Weights()
        worth = w.error * one.error + w.uncertainty * one.uncertainty + w.position * (1 - one.position) + w.any
        return worth * novelty / one.cost

    while fitting := [one for one in rest if one.cost <= left]:
        best = max(fitting, key=lambda one: (rate(one), -one.step))
        rest.remove(best)
        left -= best.cost
        expected.append(best.step)
        for feature in best.features:
            counts[feature] = counts.get(feature, 0) + 1
    assert sorted(steps(choose(pool, 40.0))) == sorted(expected)


def test_whole_traces_are_chosen_whole() -> None:
    pool = [prospect(0, "a"), prospect(1, "a", error=1.0), prospect(0, "b"), prospect(1, "b")]
    assert [(one.trace, one.step) for one in choose(pool, 3.0, whole=True)] == [("a", 0), ("a", 1)]


def test_the_cheapest_choice() -> None:
    pool = [prospect(0, "a", cost=3.0), prospect(0, "b", cost=2.0), prospect(1, "b", cost=2.0)]
    assert (cheapest(pool), cheapest(pool, whole=True), cheapest([])) == (2.0, 3.0, 0.0)


def test_doubt_by_hand() -> None:
    """Three of four samples agree, mean surprisal ln 2: (1/4 + 1 - 1/2) / 2 = 0.375."""
    doubt = Doubt.of(["a", "a", "b", "a"], [math.log(2)] * 4)
    assert (doubt.disagreement, doubt.entropy) == (0.25, pytest.approx(math.log(2)))
    assert doubt.value == pytest.approx(0.375)
    assert Doubt.of(["a", "a"], [0.0, 0.0]).value == Doubt.of([], []).value == Doubt().value == 0.0


def test_features_say_what_steps_share() -> None:
    found = features(act(call("get_weather", {})), Message.of("user", "It is a Sunny day"), ["tool_error"])
    assert found == {"tool get_weather", "error tool_error", "sunny", "day"}
    assert features(Message.of("assistant", "hi"), None) == {"no tool"}
