"""Estimators whose baseline is the group: the completions of one prompt. `advantages` has their formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import ClassVar, Literal

from postgrad.core.errors import DataError
from postgrad.objectives.outcome import Advantages, Credits, Group, Outcome, Rewards, deviation, known_rewards, over


def group_centred(rewards: Rewards) -> Advantages:
    """Reward minus the mean of its group, one per reward, in order; None where the reward is missing.

    Raises:
        DataError: a reward is infinite.
    """
    return _less(rewards, fmean(known_rewards(rewards) or [0.0]))


def group_standardised(rewards: Rewards) -> Advantages:
    """Centred reward over the sample deviation of its group; None where the reward is missing.

    Raises:
        DataError: a reward is infinite.
    """
    return over(group_centred(rewards), deviation(known_rewards(rewards)))


def leave_one_out(rewards: Rewards) -> Advantages:
    """Reward minus the mean of the others in its group; None where the reward is missing.

    Raises:
        DataError: a reward is infinite.
    """
    n = len(known_rewards(rewards))
    return [None if centred is None else centred * n / max(1, n - 1) for centred in group_centred(rewards)]


class OfGroup:
    """What most estimators are: the group is the baseline, and a completion has one number."""

    scales: ClassVar[bool] = False
    by_group: ClassVar[bool] = True
    by_token: ClassVar[bool] = False
    needs_greedy: ClassVar[bool] = False


@dataclass(frozen=True)
class GroupCentred(OfGroup):
    """Dr. GRPO."""

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Centred on the group's mean."""
        return [[*group_centred(group.totals)] for group in groups]


@dataclass(frozen=True)
class GroupStandardised(OfGroup):
    """GRPO."""

    scales: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Centred, over the group's deviation."""
        return [[*group_standardised(group.totals)] for group in groups]


@dataclass(frozen=True)
class LeaveOneOut(OfGroup):
    """RLOO."""

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Less the mean of the others."""
        return [[*leave_one_out(group.totals)] for group in groups]


@dataclass(frozen=True)
class LengthWeighted(OfGroup):
    """OPO."""

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Less the mean reward of the group's tokens; without any token, of its completions."""
        return [[*self._of(group)] for group in groups]

    def _of(self, group: Group) -> Advantages:
        weighed = [(o.length, total) for o in group.outcomes if (total := o.total) is not None]
        tokens = sum(length for length, _ in weighed)
        if not tokens:
            return group_centred(group.totals)
        return _less(group.totals, math.fsum(length * total for length, total in weighed) / tokens)


@dataclass(frozen=True)
class GreedyBaseline(OfGroup):
    """ReMax."""

    by_group: ClassVar[bool] = False
    needs_greedy: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Less the greedy completion's reward; a group whose greedy reward is missing is left out.

        Raises:
            DataError: a group without a greedy completion.
        """
        if any(group.greedy is None for group in groups):
            raise DataError(
                "remax without the reward of the greedy completion", do="sample one greedily for each prompt"
            )
        return [[*self._of(group.totals, float(group.greedy or 0))] for group in groups]

    @staticmethod
    def _of(totals: Advantages, greedy: float) -> Advantages:
        return [None if total is None or math.isnan(greedy) else total - greedy for total in totals]


@dataclass(frozen=True)
class GroupMeanBatchDeviation(OfGroup):
    """Lite PPO."""

    scales: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Centred on the group's mean, over the deviation of all rewards."""
        scale = deviation(known_rewards([*chain.from_iterable(group.totals for group in groups)]))
        return [[*over(group_centred(group.totals), scale)] for group in groups]


@dataclass(frozen=True)
class KeptOnly(OfGroup):
    """GFPO: of each group the `keep` shortest, or those with most reward a token, learn; equals keep their order."""

    scales: ClassVar[bool] = True

    keep: int = 2
    keep_by: Literal["length", "efficiency"] = "length"

    def __call__(self, groups: Sequence[Group]) -> Credits:
        """Standardised among the kept; 0 for the others, which still count."""
        return [[*self._of(group)] for group in groups]

    def _of(self, group: Group) -> Advantages:
        totals = group.totals
        known = [place for place, total in enumerate(totals) if total is not None]
        kept = sorted(known, key=lambda place: self._rank(group.outcomes[place]))[: self.keep]
        among = group_standardised([total if place in kept else None for place, total in enumerate(totals)])
        return [None if total is None else own or 0.0 for total, own in zip(totals, among, strict=True)]

    def _rank(self, outcome: Outcome) -> float:
        """Smaller is better."""
        if self.keep_by == "length":
            return outcome.length
        assert outcome.total is not None
        return -outcome.total / max(1, outcome.length)


def _less(rewards: Rewards, baseline: float) -> Advantages:
    """Rewards minus a baseline that is a mean of theirs: exactly 0 where all are equal, which floats would not give."""
    known = known_rewards(rewards)
    equal = not known or min(known) == max(known)
    return [None if reward is None or math.isnan(reward) else 0.0 if equal else reward - baseline for reward in rewards]
