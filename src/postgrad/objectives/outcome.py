"""What became of a step's completions, and what an advantage estimator is.

A reward that is None or NaN (a verifier that broke, a completion that is masked out) is missing: an estimator leaves it
out everywhere. An infinite one is an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Any, ClassVar, Protocol, TypeAlias

from postgrad.core.annotation import FloatsT
from postgrad.core.errors import DataError

EPSILON = 1e-6

Rewards = Sequence[float | None]
Advantages = list[float | None]
Credits: TypeAlias = "list[list[float | FloatsT | None]]"


@dataclass(frozen=True)
class Outcome:
    """What became of one completion: its reward, its length in tokens, and what each token costs (or nothing)."""

    reward: float | None
    length: int = 1
    penalties_T: tuple[float, ...] = ()

    @property
    def total(self) -> float | None:
        """Reward less penalties; None where the reward is missing."""
        if self.reward is None or math.isnan(self.reward):
            return None
        if math.isinf(self.reward):
            raise _infinite(self.reward)
        return float(self.reward) - sum(self.penalties_T)


@dataclass(frozen=True)
class Group:
    """The completions of one prompt; `greedy` is the reward of its greedy one, where an estimator asks for it."""

    outcomes: tuple[Outcome, ...]
    greedy: float | None = None

    @property
    def totals(self) -> Advantages:
        """Rewards less penalties, in order."""
        return [outcome.total for outcome in self.outcomes]


class Estimator(Protocol):
    """From all groups of a step to the credit of each completion: one number, one a token, or None.

    Attributes:
        scales: it divides by a deviation.
        by_group: its baseline is the group's, so a group of one, or of equal rewards, has none.
        by_token: penalties and discounts give each token its own credit.
        needs_greedy: groups must hold the reward of the greedy completion.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    scales: ClassVar[bool]
    by_group: ClassVar[bool]
    by_token: ClassVar[bool]
    needs_greedy: ClassVar[bool]

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Credits in the order of groups and completions.

        Raises:
            DataError: a reward is infinite.
        """
        ...


def known_rewards(rewards: Rewards) -> list[float]:
    """Those that are not missing.

    Raises:
        DataError: one is infinite.
    """
    known = [float(reward) for reward in rewards if reward is not None and not math.isnan(reward)]
    if any(math.isinf(reward) for reward in known):
        raise _infinite(known)
    return known


def _infinite(got: object) -> DataError:
    return DataError("a reward is infinite", got=got, do="give NaN for what cannot be graded: it is left out")


def deviation(values: Sequence[float]) -> float:
    """Sample deviation; exactly 0 for equal values, and for one."""
    return stdev(values) if len(values) > 1 and min(values) != max(values) else 0.0


def over(advantages: Advantages, scale: float) -> Advantages:
    """Each of them over `scale` + ε."""
    return [None if advantage is None else advantage / (scale + EPSILON) for advantage in advantages]
