"""Every advantage estimator on two groups, by hand.

    group 1: rewards (1, 1, 0, 0), lengths (1, 4, 2, 8), greedy 1/2      mean 1/2, Σ dev² = 1
    group 2: rewards (3, 1), lengths (2, 2), greedy 2                    mean 2,   Σ dev² = 2

ε = 1e-6 is added to deviations and left out of the derivations. All 19 tokens of the step, for REINFORCE++: rewards sum
to 5 + 0 + 6 + 2 = 13 and their squares to 25, so the variance is (25 − 13²/19)/18 = 17/19.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from postgrad.conformance.case import Case, Measure
from postgrad.conformance.verl_policy import verl_credit
from postgrad.objectives.advantages import estimator
from postgrad.objectives.outcome import Group, Outcome
from postgrad.objectives.policy_objectives import OBJECTIVES

GROUPS = (
    Group((Outcome(1.0, 1), Outcome(1.0, 4), Outcome(0.0, 2), Outcome(0.0, 8)), greedy=0.5),
    Group((Outcome(3.0, 2), Outcome(1.0, 2)), greedy=2.0),
)
MASKED = (Group((Outcome(1.0, 2), Outcome(None, 2), Outcome(0.0, 2), Outcome(0.0, 2))),)
ALONE = (Group((Outcome(1.0, 2),)), Group((Outcome(3.0, 2),)))
R3, R2 = math.sqrt(3), math.sqrt(2)
MEAN, WIDTH = 13 / 19, math.sqrt(17 / 19)
CENTRE, SPREAD = -2.5 / 19, math.sqrt(47 / 114)  # of the centred rewards: Σ = −2.5, Σ² = 7.75


def cases() -> list[Case]:
    """All estimators, and what must not move a baseline."""
    return [*_of_groups(), *_of_some(), *_whitened(), *_edges()]


def credit_case(
    name: str,
    advantage: str,
    by_hand: str,
    expected: Sequence[float | None],
    *,
    groups: Sequence[Group] = GROUPS,
    verl: Measure | None = None,
    **settings: Any,
) -> Case:
    """A case over all completions in order; credit by token is given token by token."""

    def ours() -> list[float | None]:
        found: list[float | None] = []
        for own in estimator(advantage, **settings)(groups):
            for credit in own:
                found += [credit] if credit is None or isinstance(credit, float) else credit.tolist()
        return found

    source = next(row.source for row in OBJECTIVES.values() if row.advantage == advantage)
    peers = {} if verl is None else {"verl": verl}
    return Case(f"advantage/{name}", source, by_hand, tuple(expected), ours, peers, tolerance=5e-6)


def verl_differs(case: Case, why: str) -> Case:
    """A case in which verl is known to give something else."""
    return replace(case, notes={"verl": why})


def _of_groups() -> list[Case]:
    of = partial(verl_credit, GROUPS)
    return [
        credit_case(
            "dr_grpo",
            "dr_grpo",
            "R − ½; R − 2",
            (0.5, 0.5, -0.5, -0.5, 1, -1),
            verl=partial(of, "grpo", norm_adv_by_std_in_grpo=False),
        ),
        credit_case(
            "grpo",
            "grpo",
            "±½ / √(1/3); ±1 / √2",
            (R3 / 2, R3 / 2, -R3 / 2, -R3 / 2, 1 / R2, -1 / R2),
            verl=partial(of, "grpo"),
        ),
        credit_case(
            "rloo", "rloo", "4/3 · ±½; 2 · ±1", (2 / 3, 2 / 3, -2 / 3, -2 / 3, 2, -2), verl=partial(of, "rloo")
        ),
        credit_case(
            "opo",
            "opo",
            "baselines (1 + 4)/15 and 8/4",
            (2 / 3, 2 / 3, -1 / 3, -1 / 3, 1, -1),
            verl=partial(of, "opo"),
        ),
        credit_case("remax", "remax", "R − ½; R − 2", (0.5, 0.5, -0.5, -0.5, 1, -1), verl=partial(of, "remax")),
    ]


def _of_some() -> list[Case]:
    return [
        credit_case(
            "lite_ppo",
            "lite_ppo",
            "all six rewards: mean 1, Σ dev² = 6, deviation √1.2",
            [a / math.sqrt(1.2) for a in (0.5, 0.5, -0.5, -0.5, 1, -1)],
        ),
        credit_case(
            "gfpo",
            "gfpo",
            "the two shortest of group 1 have rewards 1 and 0: ±½ / √½; group 2 is kept whole: ±1 / √2",
            (1 / R2, 0, -1 / R2, 0, 1 / R2, -1 / R2),
            keep=2,
        ),
        credit_case(
            "gfpo/efficiency",
            "gfpo",
            "rewards a token (1, ¼, 0, 0): the first two, both 1, so no contrast",
            (0, 0, 0, 0, 1 / R2, -1 / R2),
            keep=2,
            keep_by="efficiency",
        ),
    ]


def _whitened() -> list[Case]:
    of = partial(verl_credit, GROUPS)
    return [
        credit_case(
            "reinforce++",
            "reinforce++",
            "(R − 13/19) / √(17/19)",
            [(r - MEAN) / WIDTH for r in (1, 1, 0, 0, 3, 1)],
            verl=partial(of, "reinforce_plus_plus"),
        ),
        credit_case(
            "reinforce++_baseline",
            "reinforce++_baseline",
            "centred rewards of 19 tokens: Σ = −2.5, Σ² = 7.75, variance (7.75 − 2.5²/19)/18 = 47/114",
            [(r - CENTRE) / SPREAD for r in (0.5, 0.5, -0.5, -0.5, 1, -1)],
            verl=partial(of, "reinforce_plus_plus_baseline"),
        ),
        credit_case(
            "reinforce++/discount",
            "reinforce++",
            "returns (½, 1) and 0: mean ½, deviation ½",
            (0, 1, -1),
            groups=(Group((Outcome(1.0, 2), Outcome(0.0, 1))),),
            discount=0.5,
        ),
        credit_case(
            "reinforce++/kl_in_reward",
            "reinforce++",
            "penalties (1, 1) on reward 1, returns (−1, 0), beside a return of 1: mean 0, deviation 1",
            (-1, 0, 1),
            groups=(Group((Outcome(1.0, 2, (1.0, 1.0)), Outcome(1.0, 1))),),
        ),
    ]


def _edges() -> list[Case]:
    def alone(name: str, advantage: str, by_hand: str) -> Case:
        verl = partial(verl_credit, ALONE, advantage)
        case = credit_case(name, advantage, by_hand, (0, 0), groups=ALONE, verl=verl)
        return verl_differs(case, "a group of one keeps its raw reward")

    equal = (Group((Outcome(0.1, 2), Outcome(0.1, 2), Outcome(0.1, 2))),)
    return [
        verl_differs(
            credit_case(
                "masked_sample",
                "dr_grpo",
                "rewards (1, –, 0, 0): mean 1/3 of the three that are there",
                (2 / 3, None, -1 / 3, -1 / 3),
                groups=MASKED,
                verl=partial(verl_credit, MASKED, "grpo", norm_adv_by_std_in_grpo=False),
            ),
            "the masked sample's reward moves the baseline",
        ),
        alone("group_of_one", "grpo", "its own mean is its reward: 0"),
        alone("group_of_one/rloo", "rloo", "there are no others: 0"),
        credit_case(
            "equal_rewards",
            "grpo",
            "three times 0.1: exactly 0",
            (0, 0, 0),
            groups=equal,
            verl=partial(verl_credit, equal, "grpo"),
        ),
    ]
