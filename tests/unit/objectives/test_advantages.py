"""Estimators by hand are in the conformance suite; here are identities, edges and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.errors import ConfigError, DataError
from postgrad.objectives.advantages import ADVANTAGES, estimator
from postgrad.objectives.group_baselines import group_centred, group_standardised, leave_one_out
from postgrad.objectives.outcome import EPSILON, Group, Outcome

REWARDS = st.lists(st.floats(-10, 10), min_size=2, max_size=8)
BY_GROUP = sorted(name for name, kind in ADVANTAGES.items() if kind.by_group)


def group(*rewards: float | None, lengths: tuple[int, ...] | None = None, greedy: float = 0.25) -> Group:
    lengths = lengths or tuple(range(1, 1 + len(rewards)))
    return Group(tuple(Outcome(r, n) for r, n in zip(rewards, lengths, strict=True)), greedy)


def test_by_hand():
    """Rewards 1, 1, 0, 0: mean 1/2, squared deviations sum to 1, sample deviation sqrt(1/3)."""
    assert group_centred([1, 1, 0, 0]) == [0.5, 0.5, -0.5, -0.5]
    scaled = 0.5 / (math.sqrt(1 / 3) + EPSILON)
    assert group_standardised([1, 1, 0, 0]) == pytest.approx([scaled, scaled, -scaled, -scaled])


@pytest.mark.parametrize("missing", [None, math.nan])
@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_a_missing_reward_moves_no_other(name: str, missing: float | None):
    """[1, ?, 0, 0] is [1, 0, 0] with a hole, in its own group and in the statistics of the whole step."""
    other = group(2.0, 1.0)
    (holed, there), (whole, alone) = (
        estimator(name)([first, other])
        for first in (group(1, missing, 0, 0, lengths=(1, 9, 2, 3)), group(1, 0, 0, lengths=(1, 2, 3)))
    )
    assert holed == [whole[0], None, *whole[1:]]
    assert there == alone


@pytest.mark.parametrize("name", BY_GROUP)
def test_a_group_without_contrast_gives_exactly_zero(name: str):
    """Three times 0.1 has a float mean that is not 0.1; a group of one must not give its raw reward."""
    found = estimator(name)(
        [group(0.1, 0.1, 0.1), group(3.0), group(3.0, None), group(None, math.nan), group(), group(1, 0)]
    )
    assert found[:5] == [[0.0, 0.0, 0.0], [0.0], [0.0, None], [None, None], []]


@pytest.mark.parametrize("name", ["reinforce++", "reinforce++_baseline"])
def test_a_step_without_contrast_gives_exactly_zero(name: str):
    assert estimator(name)([group(0.1, 0.1), group(0.1)]) == [[0.0, 0.0], [0.0]]
    assert estimator(name)([]) == []
    assert estimator(name)([group(7.0, lengths=(1,))]) == [[0.0]]


@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_an_infinite_reward_is_an_error_of_its_environment(name: str):
    with pytest.raises(DataError, match=r"a reward is infinite.*give NaN"):
        estimator(name)([group(1.0, math.inf)])


@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_empty_completions_are_valid_samples(name: str):
    """A completion of no tokens has a reward, moves baselines and gets a finite credit."""
    ((first, _), _) = estimator(name)([group(1.0, 0.0, lengths=(0, 0)), group(0.5, 2.0)])
    assert np.isfinite(first)


@given(REWARDS, st.floats(-5, 5))
def test_a_constant_changes_nothing(rewards: list[float], shift: float):
    for name in BY_GROUP:
        once, again = (estimator(name)([group(*r)])[0] for r in (rewards, [r + shift for r in rewards]))
        if name == "gfpo" or max(rewards) - min(rewards) < 1e-3:
            continue  # nearly equal rewards differ by rounding alone
        assert once == pytest.approx(again, abs=1e-6)


@given(REWARDS)
def test_rloo_is_the_centred_reward_times_n_over_n_minus_1(rewards: list[float]):
    """R_i − mean of the others, written out with the sums."""
    n = len(rewards)
    others = [(sum(rewards) - reward) / (n - 1) for reward in rewards]
    assert leave_one_out(rewards) == pytest.approx([r - o for r, o in zip(rewards, others, strict=True)], abs=1e-9)


@given(REWARDS)
def test_opo_credit_weighed_by_length_is_zero(rewards: list[float]):
    """Σ l (R − Σ l R / Σ l) = 0."""
    (found,) = estimator("opo")([group(*rewards)])
    assert sum((k + 1) * credit for k, credit in enumerate(found)) == pytest.approx(0, abs=1e-8)


@given(REWARDS, st.integers(1, 5))
def test_whitened_tokens_have_mean_0_and_deviation_1(rewards: list[float], length: int):
    lengths = tuple(length + k for k in range(len(rewards)))
    if max(rewards) - min(rewards) < 1e-2:
        return
    for name in ("reinforce++", "reinforce++_baseline"):
        ((*found,),) = estimator(name)([group(*rewards, lengths=lengths)])
        tokens = np.repeat(found, lengths)
        assert tokens.mean() == pytest.approx(0, abs=1e-6)
        assert tokens.std(ddof=1) == pytest.approx(1, rel=1e-2)


def test_penalties_are_part_of_the_reward():
    """With k1 priced at c, dr_grpo gives A_i − c (K_i − mean K): K = (2, 0), c = 1, A = ±1/2 gives −1/2 and 1/2."""
    priced = Group((Outcome(1.0, 2, (1.5, 0.5)), Outcome(0.0, 1)))
    assert estimator("dr_grpo")([priced]) == [[-0.5, 0.5]]


def test_returns_are_discounted_towards_the_start():
    """Reward 1 after 3 tokens at 1/2: (1/4, 1/2, 1); in a step with no other token its own statistics whiten it."""
    ((credit,),) = estimator("reinforce++", discount=0.5)([group(1.0, lengths=(3,))])
    returns = np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(credit, (returns - returns.mean()) / (returns.std(ddof=1) + EPSILON))


def test_gfpo_keeps_by_the_metric_and_the_others_get_zero():
    """Lengths 1..4, rewards 0, 1, 0, 1: the two shortest have 0 and 1; the best rewards a token are the 2nd and 4th."""
    own = 0.5 / (math.sqrt(0.5) + EPSILON)
    told = group(0, 1, 0, 1)
    assert estimator("gfpo", keep=2)([told]) == [[pytest.approx(-own), pytest.approx(own), 0.0, 0.0]]
    assert estimator("gfpo", keep=2, keep_by="efficiency")([told]) == [[0.0, 0.0, 0.0, 0.0]]
    assert estimator("gfpo", keep=9)([told]) == estimator("grpo")([told])


def test_remax_needs_the_greedy_reward():
    with pytest.raises(DataError, match="greedy"):
        estimator("remax")([replace(group(1.0), greedy=None)])
    assert estimator("remax")([group(1.0, None, greedy=math.nan)]) == [[None, None]]


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("grpoo", {}, "unknown advantage estimator; got 'grpoo'; expected dr_grpo, grpo"),
        ("grpo", {"discount": 0.9}, "advantage grpo reads no discount; leave it out; reinforce"),
        ("reinforce++_baseline", {"discount": 0.9}, "reads no discount"),
        ("rloo", {"keep": 2}, "reads no keep; leave it out; gfpo read it"),
    ],
)
def test_what_an_estimator_does_not_read_is_refused(name: str, settings: dict[str, float], told: str):
    with pytest.raises(ConfigError, match=told.replace("+", r"\+")):
        estimator(name, **settings)


@pytest.mark.parametrize(("name", "settings"), [("reinforce++", {"discount": 0.9}), ("gfpo", {"keep": 3})])
def test_every_setting_of_an_estimator_changes_credit(name: str, settings: dict[str, float]):
    groups = [group(1, 0, 0, 1), group(2, 1)]
    assert str(estimator(name)(groups)) != str(estimator(name, **settings)(groups))
