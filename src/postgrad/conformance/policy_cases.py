"""Every named policy objective on the batch of `policy_batch`, value and gradient by hand.

The clip with ε = 0.2 gives token losses ℓ = (−1.2, 0.8, 1.5, −1): token 1 is held at 1.2 (A > 0, ρ = 3/2), token 2 at
0.8 (A < 0, ρ = 1/2), tokens 3 and 4 are free; dℓ/d log π = −ρA = (0, 0, 1.5, −1). The aggregations of these give

    sequence_mean   (−1.2 + (0.8 + 1.5)/2 − 1)/3        length_limit   (−1.2 + 0.8 + 1.5 − 1)/(3 · 4)
    token_mean      (−1.2 + 0.8 + 1.5 − 1)/4
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from postgrad.conformance.case import Case, Measure
from postgrad.conformance.policy_batch import BATCH, LN1_5, LN2, Batch, measured
from postgrad.conformance.trl_policy import trl_loss
from postgrad.conformance.verl_policy import verl_loss
from postgrad.objectives.policy_gradient import PolicyGradient
from postgrad.objectives.policy_objectives import OBJECTIVES

S_B = math.sqrt(3) / 2  # the sequence ratio of completion b: sqrt(1/2 · 3/2)
GATE = 1 / (1 + math.exp(-0.5))  # σ(1/2)
SLOPE = 1 / (1 + math.exp(-0.525))  # σ(1.05 · 1/2)
G_B = math.exp((LN1_5 - 0.4) / 2)  # GMPO's mean of completion b: log-ratios −0.4 (held) and ln 3/2
GMPO = "trl.experimental.gmpo.gmpo_trainer:GMPOTrainer"
UPPER = "min(ρ, ε_high): its epsilon_high is the bound itself, the paper's is 1 + ε_high"
WEIGHTED = "same gradient; its value is weight · log π in place of weight"


def policy_case(
    name: str,
    by_hand: str,
    numbers: tuple[float, ...],
    *,
    batch: Batch = BATCH,
    peers: Mapping[str, Measure] | None = None,
    notes: Mapping[str, str] | None = None,
    **settings: Any,
) -> Case:
    """A case of value and gradient: `numbers` are the loss and its derivatives by the four log π."""
    channel = PolicyGradient(**settings)

    def ours() -> list[float]:
        loss, gradient = measured(channel, batch)
        return [loss, *gradient]

    source = OBJECTIVES[channel.objective].source
    return Case(f"policy/{name}", source, by_hand, numbers, ours, peers or {}, notes or {})


def cases() -> list[Case]:
    """All objectives."""
    return [*_clipped(), *_by_sequence(), *_reinforce(), *_others()]


def _clipped() -> list[Case]:
    trl, verl = partial(trl_loss, BATCH), partial(verl_loss, BATCH, "vanilla")
    by_sequence = (-0.35, 0.0, 0.0, 0.25, -1 / 3)
    by_token = (0.025, 0.0, 0.0, 0.375, -0.25)
    sequence, token = "(−1.2 + 2.3/2 − 1)/3; (0, 0, 1.5/2, −1)/3", "(−1.2 + 0.8 + 1.5 − 1)/4; (0, 0, 1.5, −1)/4"
    peers: dict[str, Mapping[str, Measure]] = {
        "grpo": {"trl": partial(trl, "grpo"), "verl": partial(verl, "seq-mean-token-mean")},
        "bnpo": {"trl": partial(trl, "bnpo"), "verl": partial(verl, "token-mean")},
        "reinforce++": {"verl": partial(verl, "seq-mean-token-mean")},
        "lite_ppo": {"verl": partial(verl, "token-mean")},
    }
    same = [
        policy_case(
            name,
            sequence if OBJECTIVES[name].aggregation == "sequence_mean" else token,
            by_sequence if OBJECTIVES[name].aggregation == "sequence_mean" else by_token,
            objective=name,
            peers=peers.get(name),
        )
        for name in ("grpo", "bnpo", "reinforce++", "reinforce++_baseline", "gfpo", "lite_ppo")
    ]
    return [
        policy_case(
            "dr_grpo",
            "(−1.2 + 0.8 + 1.5 − 1)/(3·4); (0, 0, 1.5, −1)/12",
            (0.1 / 12, 0.0, 0.0, 1.5 / 12, -1 / 12),
            objective="dr_grpo",
            peers={"trl": partial(trl, "dr_grpo"), "verl": partial(verl, "seq-mean-token-sum-norm")},
        ),
        policy_case(
            "dapo",
            "clip-higher holds token 1 at 1.28: (−1.28 + 0.8 + 1.5 − 1)/4; (0, 0, 1.5, −1)/4",
            (0.005, 0.0, 0.0, 0.375, -0.25),
            objective="dapo",
            peers={
                "trl": partial(trl, "dapo", eps_high=0.28),
                "verl": partial(verl, "token-mean", clip_ratio_low=0.2, clip_ratio_high=0.28),
            },
        ),
        policy_case(
            "dapo/sides",
            "A = 2 for token 1, so that its bound is not the other one's mirror: (−2.56 + 0.8 + 1.5 − 1)/4",
            (-0.315, 0.0, 0.0, 0.375, -0.25),
            batch=replace(BATCH, advantages=(2.0, -1.0, 2.0)),
            objective="dapo",
        ),
        *same,
    ]


def _by_sequence() -> list[Case]:
    free = ((-1.2 + S_B - 1) / 3, 0.0, S_B / 6, S_B / 6, -1 / 3)
    told = "s = (3/2, √3/2, 1/2), ε 0.2: (−1.2 + √3/2 − 1)/3; completion b: s/T for each token"
    wide: dict[str, Any] = {"eps_low": 0.2, "eps_high": 0.2}
    tight = (-(1.0004 - 0.9997 + 1) / 3, 0.0, 0.0, 0.0, -1 / 3)
    trl, verl = partial(trl_loss, BATCH), partial(verl_loss, BATCH)
    narrow = {"eps_low": 3e-4, "eps_high": 4e-4}
    return [
        policy_case(
            "gspo",
            "s = (3/2, √3/2, 1/2), ε 3e-4 and 4e-4: (−1.0004 + 0.9997 − 1)/3; only completion c is free",
            tight,
            objective="gspo",
            peers={
                "trl": partial(trl, "grpo", level="sequence", **narrow),
                "verl": partial(verl, "gspo", "seq-mean-token-mean", clip_ratio_low=3e-4, clip_ratio_high=4e-4),
            },
        ),
        policy_case(
            "gspo/wide",
            told,
            free,
            objective="gspo",
            **wide,
            peers={
                "trl": partial(trl, "grpo", level="sequence"),
                "verl": partial(verl, "gspo", "seq-mean-token-mean"),
            },
        ),
        policy_case("gspo_token", "as gspo", tight, objective="gspo_token"),
        policy_case("gspo_token/wide", told, free, objective="gspo_token", **wide),
        policy_case(
            "gmpo",
            "log ρ held at 0.4 (a), −0.4 and free ln 3/2 (b), free (c): (−e^0.4 + e^((ln 1.5 − 0.4)/2) − 1)/3",
            ((-math.exp(0.4) + G_B - 1) / 3, 0.0, 0.0, G_B / 6, -1 / 3),
            objective="gmpo",
            peers={
                "trl": partial(trl, "grpo", trainer=GMPO, eps_low=0.4, eps_high=0.4),
                "verl": partial(verl, "geo_mean", "token-mean", clip_ratio_low=0.4, clip_ratio_high=0.4),
            },
        ),
    ]


def _reinforce() -> list[Case]:
    numbers = (2 * LN2 / 3, -1 / 3, 1 / 3, 1 / 3, -2 / 3)
    told = "−A log π summed: (1 − 2 − 1 + 4) ln 2 / 3; −A/3 for each token"
    trl = {"trl": partial(trl_loss, BATCH, "rloo", trainer="trl.trainer.rloo_trainer:RLOOTrainer")}
    note = {"trl": "PPO's clip on the ratio of the whole completion, which the paper leaves out"}
    return [
        policy_case(name, told, numbers, objective=name, peers=trl if name == "rloo" else None, notes=note)
        for name in ("rloo", "remax", "opo")
    ]


def _others() -> list[Case]:
    trl, verl = partial(trl_loss, BATCH), partial(verl_loss, BATCH)
    penalty = 2e-3 * (LN1_5**2 + LN2**2)
    slope_b = SLOPE * (1 - SLOPE)
    slope_a = 4 * GATE * (1 - GATE)
    return [
        policy_case(
            "cispo",
            "weights (1.2, 0.5, 1.2, 0.5), ε_high 0.2: (1.2 − 1 − 1.2 + 2) ln 2 / 4; −wA/4",
            (LN2 / 4, -0.3, 0.125, 0.3, -0.25),
            objective="cispo",
            eps_high=0.2,
            peers={
                "trl": partial(trl, "cispo"),
                "verl": partial(verl, "cispo", "token-mean", clip_ratio_low=10.0, clip_ratio_high=0.2),
            },
            notes={"trl": UPPER},
        ),
        policy_case(
            "sapo",
            "(−4σ(½) + (4/1.05)/2 − 8σ(−½))/3: the two gates of b add up to 4/1.05; slope −A·4σ(1−σ)ρ",
            (
                (4 * GATE - 8 + 2 / 1.05) / 3,
                -1.5 * slope_a / 3,
                0.5 * 4 * slope_b / 6,
                1.5 * 4 * slope_b / 6,
                -2 * 0.5 * slope_a / 3,
            ),
            objective="sapo",
            peers={
                "trl": partial(trl, "sapo"),
                "verl": partial(verl, "sapo", "seq-mean-token-mean", tau_pos=1.0, tau_neg=1.05),
            },
        ),
        policy_case(
            "dppo_tv",
            "token 2 moved by −1/4 < −0.2: masked; (−1.5 + 0 + 1.5 − 1)/4 + 1e-3 (2 ln²1.5 + 2 ln²2)/4",
            (
                (-1 + penalty) / 4,
                (-1.5 + 2e-3 * LN1_5) / 4,
                -2e-3 * LN2 / 4,
                (1.5 + 2e-3 * LN1_5) / 4,
                (-1 - 2e-3 * LN2) / 4,
            ),
            objective="dppo_tv",
        ),
        policy_case(
            "dppo_tv/no_penalty",
            "the same with τ = 0: (−1.5 + 0 + 1.5 − 1)/4; −ρA/4 where not masked",
            (-0.25, -0.375, 0.0, 0.375, -0.25),
            objective="dppo_tv",
            ratio_penalty=0.0,
            peers={"verl": partial(verl, "dppo_tv", "token-mean", clip_ratio_low=0.2, clip_ratio_high=0.2)},
            notes={"verl": WEIGHTED},
        ),
    ]
