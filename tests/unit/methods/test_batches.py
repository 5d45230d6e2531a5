"""Batches are a function of seed and step."""

from __future__ import annotations

from collections import Counter

from postgrad.core.annotation import Unit
from postgrad.methods.batches import Batches

GROUPS = [[Unit(((group, row),)) for row in range(3)] for group in range(4)]


def test_an_epoch_shows_every_unit_once() -> None:
    """12 units in batches of 5: two epochs are 24 units, the first 24 places of 5 batches."""
    drawn = [unit.branches for step in range(5) for unit in Batches(GROUPS, 5, seed=1).units(step)][:24]
    assert set(Counter(drawn[:12]).values()) == {1}
    assert set(Counter(drawn[12:]).values()) == {1}


def test_a_batch_does_not_depend_on_the_batches_before() -> None:
    fresh, used = Batches(GROUPS, 5, seed=1), Batches(GROUPS, 5, seed=1)
    for step in range(7):
        used.units(step)
    assert fresh.units(7) == used.units(7)


def test_groups_stay_together_and_seeds_differ() -> None:
    orders = []
    for seed in range(4):
        groups = [unit.branches[0][0] for unit in Batches(GROUPS, 12, seed=seed).units(0)]
        assert [groups[i : i + 3] for i in range(0, 12, 3)] == [[group] * 3 for group in groups[::3]]
        orders.append(tuple(groups))
    assert len(set(orders)) > 1
