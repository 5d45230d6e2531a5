from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgrad.objectives.advantages import ADVANTAGES, EPSILON, group_centred, group_standardised


def test_by_hand():
    """Rewards 1, 1, 0, 0: mean 1/2, squared deviations sum to 1, sample deviation sqrt(1/3)."""
    assert group_centred([1, 1, 0, 0]) == [0.5, 0.5, -0.5, -0.5]
    scaled = 0.5 / (math.sqrt(1 / 3) + EPSILON)
    assert group_standardised([1, 1, 0, 0]) == pytest.approx([scaled, scaled, -scaled, -scaled])


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_reward_does_not_move_its_siblings(missing: float | None):
    """[1, ?, 0, 0] is [1, 0, 0] with a hole: mean 1/3."""
    assert group_centred([1, missing, 0, 0]) == [
        pytest.approx(2 / 3),
        None,
        pytest.approx(-1 / 3),
        pytest.approx(-1 / 3),
    ]
    for advantages in ADVANTAGES.values():
        whole = advantages([1, 0, 0])
        assert advantages([1, missing, 0, 0]) == [whole[0], None, *whole[1:]]


@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_a_group_without_contrast_gives_exactly_zero(name: str):
    """Three times 0.1 has a float mean that is not 0.1; a group of one must not give its raw reward."""
    assert ADVANTAGES[name]([0.1, 0.1, 0.1]) == [0.0, 0.0, 0.0]
    assert ADVANTAGES[name]([3.0]) == [0.0]
    assert ADVANTAGES[name]([3.0, None]) == [0.0, None]
    assert ADVANTAGES[name]([None, math.nan]) == [None, None]
    assert ADVANTAGES[name]([]) == []


def test_an_infinite_reward_is_an_error():
    with pytest.raises(ValueError, match="infinite"):
        group_centred([1.0, math.inf])


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8), st.floats(-5, 5))
def test_sum_is_zero_and_a_constant_changes_nothing(rewards: list[float], shift: float):
    for advantages in (group_centred(rewards), group_centred([r + shift for r in rewards])):
        assert sum(a for a in advantages if a is not None) == pytest.approx(0, abs=1e-9)
    assert group_centred([r + shift for r in rewards]) == pytest.approx(group_centred(rewards), abs=1e-9)
