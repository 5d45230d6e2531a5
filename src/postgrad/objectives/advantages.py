"""Advantages: what a completion's reward is worth beside its siblings and the rest of the step.

With R_i the rewards of a group (one prompt's completions), l_i their lengths in tokens, std with n − 1:

    dr_grpo               A_i = R_i − mean R                                (arXiv 2503.20783: no division)
    grpo                  A_i = (R_i − mean R) / (std R + ε)                (arXiv 2402.03300)
    rloo                  A_i = R_i − mean of the others = n/(n−1) (R_i − mean R)        (arXiv 2402.14740)
    opo                   A_i = R_i − Σ l R / Σ l                           (arXiv 2505.23585)
    remax                 A_i = R_i − R of the greedy completion            (arXiv 2310.10505)
    lite_ppo              A_i = (R_i − mean R) / (std of all rewards of the step + ε)    (arXiv 2508.08221)
    gfpo                  grpo over the `keep` best by length or by reward a token; 0 for the others (arXiv 2508.09726)
    reinforce++           the return of each token, less the mean of all tokens of the step, over their deviation + ε
    reinforce++_baseline  the same of R_i − mean R                          (arXiv 2501.03262)

A token's return is the reward at the end less the penalties from that token on, each step back times `discount`.
Elsewhere penalties (a KL term in the reward) are subtracted from the reward.

A reward that is None or NaN (a verifier that broke, a completion that is masked out) is left out everywhere: its
advantage is None and all others are what they would be without it. A group of one, or one whose rewards are all equal,
gives exactly 0 wherever the baseline is the group's. An empty completion is a valid sample.

Not covered: learned values, baselines over several steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from postgrad.core.errors import ConfigError
from postgrad.objectives.batch_whitening import Whitened, WhitenedBaseline
from postgrad.objectives.group_baselines import (
    GreedyBaseline,
    GroupCentred,
    GroupMeanBatchDeviation,
    GroupStandardised,
    KeptOnly,
    LeaveOneOut,
    LengthWeighted,
)
from postgrad.objectives.outcome import Estimator

ADVANTAGES: Mapping[str, type[Estimator]] = {
    "dr_grpo": GroupCentred,
    "grpo": GroupStandardised,
    "rloo": LeaveOneOut,
    "opo": LengthWeighted,
    "remax": GreedyBaseline,
    "lite_ppo": GroupMeanBatchDeviation,
    "gfpo": KeptOnly,
    "reinforce++": Whitened,
    "reinforce++_baseline": WhitenedBaseline,
}


def estimator(name: str, **settings: Any) -> Estimator:
    """The estimator of that name; settings that are None are left to it.

    Raises:
        ConfigError: an unknown name, or a setting that it does not read.
    """
    kind = ADVANTAGES.get(name)
    if kind is None:
        expected = ", ".join(ADVANTAGES)
        raise ConfigError("unknown advantage estimator", got=name, expected=expected)
    given = {key: value for key, value in settings.items() if value is not None}
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            owners = [other for other, its in ADVANTAGES.items() if key in its.__dataclass_fields__]
            raise ConfigError(f"advantage {name} reads no {key}", do=f"leave it out; {' and '.join(owners)} read it")
    return kind(**given)
