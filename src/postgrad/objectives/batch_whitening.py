"""REINFORCE++ (arXiv 2501.03262): credit is whitened over all tokens of the step, not within a group.

A long completion weighs as many times as it has tokens. Where all tokens of the step have the same return there is
nothing to learn, and all credit is exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from postgrad.core.annotation import FloatsT
from postgrad.objectives.group_baselines import OfGroup, group_centred
from postgrad.objectives.outcome import EPSILON, Credits, Group, Outcome, deviation

if TYPE_CHECKING:
    from numpy.typing import NDArray

Returns: TypeAlias = "list[list[FloatsT | None]]"


@dataclass(frozen=True)
class Whitened(OfGroup):
    """REINFORCE++: the return of each token; a token at distance d of the end gets discount^d of the reward."""

    scales: ClassVar[bool] = True
    by_group: ClassVar[bool] = False
    by_token: ClassVar[bool] = True

    discount: float = 1.0

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Whitened returns: one number a completion where all its tokens have the same."""
        return whitened([[self._returns(outcome) for outcome in group.outcomes] for group in groups])

    def _returns(self, outcome: Outcome) -> NDArray[Any] | None:
        """Σ_{s≥t} discount^(s−t) (what token s earned)."""
        import numpy as np

        if outcome.reward is None or outcome.total is None:
            return None
        earned_T = np.zeros(outcome.length)
        if outcome.penalties_T:
            earned_T -= outcome.penalties_T
        if outcome.length:
            earned_T[-1] += outcome.reward
        for t in reversed(range(outcome.length - 1)):
            earned_T[t] += self.discount * earned_T[t + 1]
        return earned_T


@dataclass(frozen=True)
class WhitenedBaseline(OfGroup):
    """REINFORCE++ with the group's mean as a baseline."""

    scales: ClassVar[bool] = True
    by_group: ClassVar[bool] = False

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Whitened centred rewards."""
        return whitened([self._returns(group) for group in groups])

    @staticmethod
    def _returns(group: Group) -> list[FloatsT | None]:
        import numpy as np

        centred = zip(group.outcomes, group_centred(group.totals), strict=True)
        return [None if total is None else np.full(outcome.length, total) for outcome, total in centred]


def whitened(returns: Returns) -> Credits:
    """Each token's return less the mean of all tokens, over their deviation + ε."""
    import numpy as np

    tokens = np.concatenate([np.empty(0), *(r for group in returns for r in group if r is not None)])
    scale = deviation(tokens.tolist())
    mean = tokens.mean() if len(tokens) else 0.0
    return [[_credit(own_T, mean, scale) for own_T in group] for group in returns]


def _credit(returns_T: FloatsT | None, mean: float, scale: float) -> float | FloatsT | None:
    if returns_T is None:
        return None
    if not len(returns_T) or not scale:
        return 0.0
    credit_T = (returns_T - mean) / (scale + EPSILON)
    return float(credit_T[0]) if (returns_T == returns_T[0]).all() else credit_T
