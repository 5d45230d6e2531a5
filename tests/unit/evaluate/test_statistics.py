"""Intervals and tests against derived numbers, textbook values, scipy, and their own promises by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from postgrad.core.errors import DataError
from postgrad.evaluate.statistics import (
    Alternative,
    Paired,
    holm,
    items_to_detect,
    items_without_flips,
    mcnemar,
    mean_interval,
    mean_stderr,
    tango,
    wilson,
)


def paired(differences: list[float], groups: list[str] | None = None) -> Paired:
    return Paired(np.array(differences, dtype=np.float64), tuple(groups or map(str, range(len(differences)))))


def test_standard_error_by_hand() -> None:
    """Scores 1 1 1 0: mean 3/4; squared residuals 3/16 + 9/16 = 12/16; SE = sqrt((12/16) / (4 * 3)) = 1/4."""
    assert mean_stderr([1, 1, 1, 0]) == (0.75, pytest.approx(0.25))


def test_clusters_of_one_are_no_clusters() -> None:
    scores = [0.2, 0.9, 0.4, 1.0, 0.0]
    assert mean_stderr(scores, ["a", "b", "c", "d", "e"]) == pytest.approx(mean_stderr(scores))


def test_clustered_standard_error_by_hand() -> None:
    """Groups (1 1), (1 1), (0 0): mean 2/3; residual sums 2/3, 2/3, -4/3; their squares sum to 24/9.

    SE = sqrt(3/2 * 24/9) / 6 = 2/6 = 1/3, which is the SE of the three group means: duplicating items adds nothing.
    """
    clustered = mean_stderr([1, 1, 1, 1, 0, 0], list("aabbcc"))
    assert clustered == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert clustered == pytest.approx(mean_stderr([1, 1, 0]))


def test_one_item_claims_nothing() -> None:
    assert mean_stderr([1.0]) == (1.0, 0.5)
    with pytest.raises(DataError, match="no scores"):
        mean_stderr([])


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (5, 10), (57, 60), (60, 60)])
def test_wilson_agrees_with_scipy(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n, level=0.95) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_mean_interval_counts_clusters_once() -> None:
    """Every item twice in its group: the interval is that of the single items."""
    single = mean_interval([1, 0, 1, 1, 0, 1], level=0.95)
    double = mean_interval([1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1], list("aabbccddeeff"), level=0.95)
    # The design effect of pairs is 2 * (6/5) / (12/11) = 2.2 here, so six items are worth 12 / 2.2 = 5.45.
    assert double == pytest.approx(wilson(4 / 6, 12 / 2.2, level=0.95))
    assert double[0] < single[0] < single[1] < double[1]


def test_mean_interval_of_graded_scores_is_student_t() -> None:
    scores = [0.2, 0.5, 0.9, 0.4]
    half = stats.t.ppf(0.975, 3) * stats.sem(scores)
    assert mean_interval(scores, level=0.95) == (pytest.approx(max(0, 0.5 - half)), pytest.approx(0.5 + half))


def test_mcnemar_by_hand() -> None:
    """9 fixed, 3 broken: P(X <= 3 | 12, 1/2) = (1 + 12 + 66 + 220) / 4096 = 299/4096.

    Exact two-sided 598/4096; mid-p takes the probability of 3 itself, 220/4096, off.
    """
    assert mcnemar(9, 3) == (pytest.approx(598 / 4096), pytest.approx(378 / 4096))
    assert mcnemar(3, 9, alternative="less") == (pytest.approx(299 / 4096), pytest.approx(189 / 4096))
    assert mcnemar(5, 5)[1] == pytest.approx(1.0)
    assert mcnemar(0, 0) == (1.0, 1.0)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize(("fixed", "broken"), [(0, 1), (9, 3), (20, 31), (6, 6)])
def test_exact_mcnemar_is_scipys_binomial_test(fixed: int, broken: int, alternative: Alternative) -> None:
    expected = stats.binomtest(fixed, fixed + broken, 0.5, alternative=alternative).pvalue
    assert mcnemar(fixed, broken, alternative=alternative)[0] == pytest.approx(expected)


def test_tango_textbook_value() -> None:
    """Airway reactivity before and after transplantation (Bentur 2009; Fagerland et al. 2014): 1 and 7 of 21."""
    assert tango(1, 7, 21, level=0.95) == (pytest.approx(-0.517, abs=5e-4), pytest.approx(-0.026, abs=5e-4))


def test_tango_without_flips_is_no_point() -> None:
    """Nothing flipped in n = 50: the bounds are z^2 / (n + z^2) = 3.8415 / 53.8415 = 0.07135."""
    assert tango(0, 0, 50, level=0.95) == (pytest.approx(-0.07135, abs=1e-5), pytest.approx(0.07135, abs=1e-5))


def test_tango_when_all_flip() -> None:
    """5 of 5 fixed: solving n (1 - d) = z sqrt(n (1 - d^2)) gives d = (5 - z^2) / (5 + z^2) = 0.13103."""
    z2 = stats.norm.ppf(0.975) ** 2
    assert tango(5, 0, 5, level=0.95) == (pytest.approx((5 - z2) / (5 + z2)), 1.0)
    assert tango(0, 5, 5, level=0.95) == (-1.0, pytest.approx(-(5 - z2) / (5 + z2)))


@pytest.mark.parametrize(("fixed", "broken"), [(4, 9), (12, 0), (0, 3), (7, 7)])
def test_tango_is_the_score_test_turned_round(fixed: int, broken: int) -> None:
    """0 lies on the bound of the level whose z is |fixed - broken| / sqrt(fixed + broken), McNemar's statistic."""
    z = abs(fixed - broken) / math.sqrt(fixed + broken)
    if z == 0:
        assert sum(tango(fixed, broken, 40, level=0.95)) == pytest.approx(0, abs=1e-9)
    else:
        bounds = tango(fixed, broken, 40, level=2 * float(stats.norm.cdf(z)) - 1)
        assert min(abs(bound) for bound in bounds) == pytest.approx(0, abs=1e-9)


def test_swapping_the_arms_mirrors_everything() -> None:
    ours, theirs = paired([1, 1, 0, -1, 0, 1, 0]), paired([-1, -1, 0, 1, 0, -1, 0])
    low, high = ours.interval(0.95)
    assert theirs.interval(0.95) == pytest.approx((-high, -low))
    assert ours.p_value("less") == pytest.approx(theirs.p_value("greater"))


def test_holm_by_hand() -> None:
    """0.01 * 3, then 0.03 * 2, then max(0.04 * 1, 0.06)."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("effect", "flips", "items"), [(0.05, 0.1, 242), (0.05, 0.2, 489), (0.03, 0.05, 338), (0.03, 0.2, 1368)]
)
def test_items_to_detect(effect: float, flips: float, items: int) -> None:
    """(1.6449 + 0.8416)^2 (flips - effect^2) / effect^2; 5 points, 10 % flips: 6.1826 * 0.0975 / 0.0025 = 241.1."""
    assert items_to_detect(effect, variance=flips - effect**2, alpha=0.05, power=0.8) == items


def test_items_without_flips() -> None:
    """z = 1.6449, z^2 = 2.7055: n > 2.7055 * 19 = 51.4 for 5 points, and 52 items do it where 51 do not."""
    assert items_without_flips(0.05, alpha=0.05) == 52
    assert tango(0, 0, 52, level=0.9)[0] > -0.05 > tango(0, 0, 51, level=0.9)[0]


def test_clustered_binary_difference() -> None:
    """Each of 6 items three times: the design effect of 3 (6/5) / (18/17) leaves 18 / 3.4 = 5.294 independent items."""
    clustered = paired([1.0] * 12 + [0.0] * 6, [name for name in "abcdef" for _ in range(3)])
    worth = 18 / 3.4
    assert clustered.interval(0.95) == pytest.approx(tango(worth * 2 / 3, 0, worth, level=0.95))
    # Signs of the four clusters that moved: 1 of 16 ways is as high, two-sided 2/16.
    assert clustered.p_value() == pytest.approx(2 / 16)


def test_sign_flips_of_graded_scores_by_hand() -> None:
    """Differences 0.5, 0.25, 0.25: only all-plus reaches 1.0, so 1/8 one-sided and 2/8 two-sided."""
    graded = paired([0.5, 0.25, 0.25])
    assert not graded.binary
    assert graded.p_value("greater") == pytest.approx(1 / 8)
    assert graded.p_value() == pytest.approx(2 / 8)


def test_no_difference_has_p_one_and_a_variance() -> None:
    same = paired([0.0] * 10)
    assert same.p_value() == same.p_value("less") == 1.0
    assert same.variance == pytest.approx(0.05)


def _coverage(draw: object, truth: float, *, runs: int) -> float:
    assert callable(draw)
    covered = 0
    for _ in range(runs):
        low, high = draw().interval(0.95)
        covered += low <= truth <= high
    return covered / runs


@pytest.mark.parametrize(("fixed", "broken", "n"), [(0.10, 0.05, 100), (0.3, 0.1, 60), (0.02, 0.02, 164)])
def test_coverage_of_tango(fixed: float, broken: float, n: int) -> None:
    rng = np.random.default_rng(7)
    names = [str(i) for i in range(n)]

    def draw() -> Paired:
        return paired(rng.choice([1.0, -1.0, 0.0], size=n, p=[fixed, broken, 1 - fixed - broken]).tolist(), names)

    assert 0.93 <= _coverage(draw, fixed - broken, runs=800) <= 0.97


def test_coverage_of_clustered_binary() -> None:
    """40 clusters of 4 items that flip together with probability 1/2: the interval still covers."""
    rng = np.random.default_rng(11)
    names = [str(i // 4) for i in range(160)]

    def draw() -> Paired:
        alone = rng.choice([1.0, -1.0, 0.0], size=(40, 4), p=[0.2, 0.1, 0.7])
        together = rng.random(40) < 0.5
        alone[together] = alone[together, :1]
        return paired(alone.ravel().tolist(), names)

    assert 0.93 <= _coverage(draw, 0.1, runs=600) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 25, 60])
def test_coverage_of_graded_scores(clusters: int) -> None:
    """Student's t below 20 clusters, the cluster bootstrap from there on."""
    rng = np.random.default_rng(3)
    names = [str(i // 3) for i in range(3 * clusters)]

    def draw() -> Paired:
        shared = rng.normal(0.05, 0.1, size=(clusters, 1))
        return paired((shared + rng.normal(0, 0.15, size=(clusters, 3))).ravel().tolist(), names)

    assert 0.93 <= _coverage(draw, 0.05, runs=500) <= 0.97
