"""Statistics of evaluation: standard errors, intervals and tests that hold at the sizes that benchmarks really have.

Items are a sample from a population of items (Miller 2024, arXiv 2411.00640), so a mean has a standard error, items
that share a source (a function, a passage, a repository) form a cluster, and two models are compared by the paired
differences of the same items. Normal intervals under-cover below a few hundred items (Bowyer et al. 2025,
arXiv 2503.01747): 0/1 scores get score intervals (Wilson for a mean, Tango for a paired difference).

Legend: N items, G clusters.
Not covered: several samples per item, sequential looks, Bayesian intervals.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from postgrad.core.errors import DataError, MissingDependency

try:
    from scipy import optimize, special, stats
except ImportError:
    raise MissingDependency("scipy", extra="eval") from None

Floats = NDArray[np.float64]
Interval = tuple[float, float]
Alternative = Literal["two-sided", "less", "greater"]

RESAMPLES = 9_999
FEWEST_CLUSTERS = 20  # below this the cluster bootstrap under-covers; Student's t is used


def mean_stderr(scores_N: Sequence[float], groups_N: Sequence[Hashable] | None = None) -> tuple[float, float]:
    """Mean and its standard error, clustered when items share a group.

    With one item a group this is sqrt(sum (s - mean)^2 / (n (n - 1))); with clusters, the sum over clusters of the
    squared sum of residuals, with the factor G / (G - 1) that makes the two agree (Miller 2024, sections 2.1 and 2.2).
    One item or one cluster says nothing of the spread: the largest that scores in [0, 1] can have, 0.5, is returned.

    Raises:
        DataError: there are no scores.
    """
    values_N = np.asarray(scores_N, dtype=np.float64)
    if values_N.size == 0:
        raise DataError("no scores to average")
    mean = float(values_N.mean())
    residuals_G = _cluster_sums(values_N - mean, groups_N)
    clusters = residuals_G.size
    if clusters == 1:
        return mean, 0.5
    return mean, float(math.sqrt(clusters / (clusters - 1) * (residuals_G**2).sum()) / values_N.size)


def mean_interval(scores_N: Sequence[float], groups_N: Sequence[Hashable] | None = None, *, level: float) -> Interval:
    """Interval of a mean of scores in [0, 1].

    0/1 scores: Wilson's, on the number of independent items that the clusters are worth (n divided by the design
    effect, Rao and Scott 1992). Other scores: Student's t with the clustered standard error, cut to [0, 1].
    """
    mean, stderr = mean_stderr(scores_N, groups_N)
    values_N = np.asarray(scores_N, dtype=np.float64)
    if np.isin(values_N, (0.0, 1.0)).all():
        return wilson(mean, values_N.size / _design_effect(values_N, groups_N), level=level)
    clusters = values_N.size if groups_N is None else len(set(groups_N))
    half = stderr * float(stats.t.ppf((1 + level) / 2, max(clusters - 1, 1)))
    return max(0.0, mean - half), min(1.0, mean + half)


def wilson(proportion: float, n: float, *, level: float) -> Interval:
    """Wilson's score interval of a proportion; `n` may be an effective, fractional number of items."""
    z2 = _z((1 + level) / 2) ** 2
    centre = (proportion + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (proportion * (1 - proportion) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def mcnemar(fixed: int, broken: int, *, alternative: Alternative = "two-sided") -> tuple[float, float]:
    """Exact and mid-p McNemar p-values of `fixed` against `broken` pairs (Fagerland et al. 2013: mid-p is recommended).

    `alternative="less"` asks whether the candidate is worse (fewer fixed than broken).
    """
    flips = fixed + broken
    if flips == 0:
        return 1.0, 1.0
    at_most, at_least = float(special.bdtr(fixed, flips, 0.5)), float(special.bdtr(broken, flips, 0.5))
    here = at_most + at_least - 1  # P(X = fixed)
    exact = {"less": at_most, "greater": at_least, "two-sided": min(1.0, 2 * min(at_most, at_least))}
    mid = {name: exact_p - here / 2 for name, exact_p in (("less", at_most), ("greater", at_least))}
    mid["two-sided"] = 2 * min(mid.values())
    return exact[alternative], mid[alternative]


def tango(fixed: float, broken: float, n: float, *, level: float) -> Interval:
    """Tango's score interval of the paired difference (fixed - broken) / n (Tango 1998, Statistics in Medicine 17).

    Solves |fixed - broken - n d| = z sqrt(n (2 q + d (1 - d))) for d, where q is the maximum-likelihood share of
    broken pairs given d. Counts may be fractional (effective). Without flips it is +-z^2 / (n + z^2), never a point.
    """
    z = _z((1 + level) / 2)
    if fixed + broken == 0:
        return -z * z / (n + z * z), z * z / (n + z * z)

    def excess(d: float, *, sign: int) -> float:
        b = -fixed - broken + (2 * n - fixed + broken) * d
        q = (math.sqrt(b * b + 8 * n * broken * d * (1 - d)) - b) / (4 * n)
        return sign * (fixed - broken - n * d) - z * math.sqrt(max(0.0, n * (2 * q + d * (1 - d))))

    estimate, edge = (fixed - broken) / n, 1 - 1e-12
    low = -1.0 if broken == n else optimize.brentq(lambda d: excess(d, sign=1), -edge, min(estimate, edge))
    high = 1.0 if fixed == n else optimize.brentq(lambda d: excess(d, sign=-1), max(estimate, -edge), edge)
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: the family-wise error rate stays below alpha."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def items_to_detect(effect: float, *, variance: float, alpha: float, power: float) -> int:
    """Items after which a paired difference of `effect` is told from 0 by a one-sided test of level `alpha`.

    n = (z_(1-alpha) + z_power)^2 variance / effect^2; for 0/1 scores the variance is flip rate - effect^2.
    """
    assert effect > 0, "an effect of 0 is never detected"
    return math.ceil((_z(1 - alpha) + _z(power)) ** 2 * variance / effect**2)


def items_without_flips(margin: float, *, alpha: float) -> int:
    """Items after which a run without a single flip has Tango's one-sided bound above -margin.

    From z^2 / (n + z^2) < margin: n > z^2 (1 - margin) / margin.
    """
    return math.floor(_z(1 - alpha) ** 2 * (1 - margin) / margin) + 1


@dataclass(frozen=True)
class Paired:
    """The differences candidate - parent of the same N items, with the group of each item.

    When every difference is -1, 0 or 1 (0/1 scores) the methods are Tango's interval and McNemar's mid-p; with
    clusters the counts are divided by the design effect and the test flips the signs of whole clusters. Any other
    scores: cluster bootstrap (Student's t below 20 clusters) and the same sign-flip test. Seeded.
    """

    differences_N: Floats
    groups_N: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        assert self.differences_N.size == len(self.groups_N) > 0, "one group an item, at least one item"

    @property
    def n(self) -> int:
        """Items."""
        return self.differences_N.size

    @property
    def difference(self) -> float:
        """Mean difference."""
        return float(self.differences_N.mean())

    @property
    def clustered(self) -> bool:
        """Whether any group has more than one item."""
        return len(set(self.groups_N)) < self.n

    @property
    def binary(self) -> bool:
        """Whether every difference is -1, 0 or 1."""
        return bool(np.isin(self.differences_N, (-1.0, 0.0, 1.0)).all())

    @property
    def variance(self) -> float:
        """Variance of one item's difference, clusters counted in; at least that of half a flip (none seen is not 0)."""
        observed = float(self.differences_N.var()) * _design_effect(self.differences_N, self.groups_N)
        return max(observed, 0.5 / self.n)

    def interval(self, level: float) -> Interval:
        """Two-sided interval of the mean difference at `level`."""
        if self.binary:
            worth = self.n / _design_effect(self.differences_N, self.groups_N)
            fixed, broken = ((self.differences_N == sign).mean() * worth for sign in (1, -1))
            return tango(fixed, broken, worth, level=level)
        if len(set(self.groups_N)) >= FEWEST_CLUSTERS:
            return self._bootstrap(level)
        _, stderr = mean_stderr(self.differences_N.tolist(), self.groups_N)
        half = stderr * float(stats.t.ppf((1 + level) / 2, max(len(set(self.groups_N)) - 1, 1)))
        return max(-1.0, self.difference - half), min(1.0, self.difference + half)

    def p_value(self, alternative: Alternative = "two-sided") -> float:
        """P-value of "no difference" against `alternative` ("less": the candidate is worse)."""
        if self.binary and not self.clustered:
            fixed, broken = (int((self.differences_N == sign).sum()) for sign in (1, -1))
            return mcnemar(fixed, broken, alternative=alternative)[1]
        sums_G = _cluster_sums(self.differences_N, self.groups_N)
        if not sums_G.any():
            return 1.0
        result = stats.permutation_test(
            (sums_G,), _total, permutation_type="samples", vectorized=True,
            n_resamples=RESAMPLES, alternative=alternative, rng=np.random.default_rng(0),
        )  # fmt: skip
        return float(result.pvalue)

    def _bootstrap(self, level: float) -> Interval:
        """Expanded percentile bootstrap over clusters of the ratio sum / size.

        The plain percentile interval is too short by sqrt((G - 1) / G) and by z instead of t; a wider level repairs
        both (Hesterberg 2015, The American Statistician 69).
        """
        sums_G = _cluster_sums(self.differences_N, self.groups_N)
        sizes_G = _cluster_sums(np.ones(self.n), self.groups_N)
        clusters = sums_G.size
        t = float(stats.t.ppf((1 + level) / 2, clusters - 1)) * math.sqrt(clusters / (clusters - 1))
        wider = 2 * float(special.ndtr(t)) - 1
        result = stats.bootstrap(
            (sums_G, sizes_G), _ratio, paired=True, vectorized=True, confidence_level=wider,
            n_resamples=RESAMPLES, method="percentile", batch=1_000, rng=np.random.default_rng(0),
        )  # fmt: skip
        return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _total(sums_G: Floats, axis: int = -1) -> Floats:
    return np.asarray(sums_G.sum(axis=axis))


def _ratio(sums_G: Floats, sizes_G: Floats, axis: int = -1) -> Floats:
    return np.asarray(sums_G.sum(axis=axis) / sizes_G.sum(axis=axis))


def _cluster_sums(values_N: Floats, groups_N: Sequence[Hashable] | None) -> Floats:
    """Sum of the values of each group, groups in order of first appearance."""
    if groups_N is None:
        return values_N
    places: dict[Hashable, int] = {}
    index_N = [places.setdefault(group, len(places)) for group in groups_N]
    return np.bincount(index_N, weights=values_N, minlength=len(places)).astype(np.float64)


def _design_effect(values_N: Floats, groups_N: Sequence[Hashable] | None) -> float:
    """Clustered variance over simple variance of the mean, at least 1 (clusters are never credited with precision)."""
    if groups_N is None or len(set(groups_N)) == values_N.size:
        return 1.0
    simple = mean_stderr(values_N.tolist())[1]
    return max(1.0, (mean_stderr(values_N.tolist(), groups_N)[1] / simple) ** 2) if simple else 1.0


def _z(probability: float) -> float:
    """Quantile of the standard normal law."""
    return float(special.ndtri(probability))
