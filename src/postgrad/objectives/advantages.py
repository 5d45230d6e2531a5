"""Advantages: what a completion's reward is worth beside its siblings of the same prompt.

    dr_grpo  A_i = R_i − mean R                     (Dr. GRPO, arXiv 2503.20783: no division by the deviation)
    grpo     A_i = (R_i − mean R) / (std R + ε)     (GRPO, arXiv 2402.03300; std with n − 1)

A reward that is None or NaN (a verifier that broke) is left out: its advantage is None and its siblings' are what they
would be without it. A group of one, or one whose rewards are all equal, gives exactly 0.

Not covered: baselines over the batch (REINFORCE++), leave-one-out (RLOO), per-token credit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev

EPSILON = 1e-6

Rewards = Sequence[float | None]
Advantages = list[float | None]


def group_centred(rewards: Rewards) -> Advantages:
    """Reward minus the mean of its group, one per reward, in order; None where the reward is missing.

    Raises:
        ValueError: a reward is infinite.
    """
    known = _known(rewards)
    if not known or min(known) == max(known):  # exact: the mean of equal floats need not equal them
        return [None if _missing(reward) else 0.0 for reward in rewards]
    mean = fmean(known)
    return [None if reward is None or math.isnan(reward) else reward - mean for reward in rewards]


def group_standardised(rewards: Rewards) -> Advantages:
    """Centred reward over the sample deviation of its group; None where the reward is missing.

    Raises:
        ValueError: a reward is infinite.
    """
    known = _known(rewards)
    scale = stdev(known) + EPSILON if len(known) > 1 else 1.0
    return [None if advantage is None else advantage / scale for advantage in group_centred(rewards)]


ADVANTAGES: Mapping[str, Callable[[Rewards], Advantages]] = {
    "dr_grpo": group_centred,
    "grpo": group_standardised,
}


def _missing(reward: float | None) -> bool:
    return reward is None or math.isnan(reward)


def _known(rewards: Rewards) -> list[float]:
    known = [float(reward) for reward in rewards if reward is not None and not math.isnan(reward)]
    if any(math.isinf(reward) for reward in known):
        raise ValueError(f"a reward is infinite: {known}")
    return known
