"""Rows of the benchmarks: what a ratio says, and when a target is met."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from frame import Row, gradient_difference

COST = Row("a step", "CPU s", 2.0, 10.0, "peer", "1.0", 4.0, True)


def test_a_ratio_says_how_much_better_ours_is() -> None:
    """Costs 2 and 10: 5 times better. Speeds 10 and 2: the same. Under a bound of 1.25: 2 / 10 = 0.2 of it."""
    assert COST.plain()["ratio"] == 5.0
    assert replace(COST, ours=10.0, peer=2.0, higher_is_better=True).plain()["ratio"] == 5.0
    assert replace(COST, target=1.25, bound="<=").plain()["ratio"] == 0.2


def test_a_target_is_met_by_a_right_answer_only() -> None:
    assert COST.plain()["met"] is True
    assert replace(COST, correct=False).plain()["met"] is False
    assert replace(COST, target=5.1).plain()["met"] is False
    assert replace(COST, ours=13.0, target=1.25, bound="<=").plain()["met"] is False, "1.3 is over 1.25"


def test_a_row_has_the_columns_that_every_benchmark_gives() -> None:
    names = {"case", "unit", "ours", "peer", "peer_name", "peer_version", "ratio", "target", "correct"}
    assert names <= set(COST.plain())


def test_gradients_are_compared_relatively_and_by_name() -> None:
    """(3, 4) against (3, 4.5): 0.5 / 5 = 0.1. An adapter's name in the path makes no difference."""
    ours = {"loss": 1.0, "gradient/a.default.w": np.array([3.0, 4.0])}
    theirs = {"gradient/a.w": np.array([3.0, 4.5])}
    assert np.isclose(gradient_difference(ours, theirs), 0.1)
    assert gradient_difference(ours, {"gradient/b.w": np.zeros(2)}) == float("inf")
