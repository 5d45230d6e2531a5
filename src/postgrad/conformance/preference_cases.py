"""Every preference objective on the actions of `pair_batch`, value and gradient by hand.

h = r_w − r_l = 2 ln 2, so with β = 1: σ(βh) = 4/5, −log σ(βh) = ln 5/4, −log σ(−βh) = ln 5, dℓ/dh = −1/5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from postgrad.conformance.case import Case, Measure
from postgrad.conformance.pair_batch import measured
from postgrad.conformance.trl_preference import trl_dpo, trl_kto, trl_orpo, trl_simpo
from postgrad.objectives.preference import Preference

LN2 = math.log(2)
MEAN_W, MEAN_L = 2**-1.5, 2**-3  # e to the mean log-probabilities: 1.5 ln 1/2 and 3 ln 1/2
ODDS = MEAN_W / (1 - MEAN_W) / (MEAN_L / (1 - MEAN_L))
ORPO_W = -1 - 0.5 / (1 + ODDS) / (1 - MEAN_W)  # by the mean log-probability of the chosen action
CDPO, ROBUST, FOCUSED, SFT = "arXiv 2305.18290", "arXiv 2403.00409", "arXiv 2502.11475", "arXiv 2404.19733"


def preference_case(
    name: str,
    source: str,
    by_hand: str,
    numbers: tuple[float, ...],
    *,
    peers: Mapping[str, Measure] | None = None,
    notes: Mapping[str, str] | None = None,
    **settings: Any,
) -> Case:
    """A case: `numbers` are the loss and its derivatives by the log π of the two chosen and the rejected token."""
    ours = partial(measured, Preference(**settings))
    return Case(f"preference/{name}", source, by_hand, numbers, ours, peers or {}, notes or {})


def cases() -> list[Case]:
    """All objectives."""
    return [*_logistic(), *_averaged(), *_other_shapes()]


def _logistic() -> list[Case]:
    return [
        preference_case(
            "dpo",
            CDPO,
            "ln 5/4; −1/5",
            (math.log(1.25), -0.2, -0.2, 0.2),
            beta=1.0,
            peers={"trl": partial(trl_dpo, "sigmoid")},
        ),
        preference_case(
            "cdpo",
            CDPO,
            "0.9 ln 5/4 + 0.1 ln 5; −0.9/5 + 0.1 · 4/5 = −0.1",
            (0.9 * math.log(1.25) + 0.1 * math.log(5), -0.1, -0.1, 0.1),
            beta=1.0,
            label_smoothing=0.1,
            peers={"trl": partial(trl_dpo, "sigmoid", label_smoothing=0.1)},
            notes={"trl": "its sigmoid loss takes no label_smoothing: the setting does nothing"},
        ),
        preference_case(
            "robust",
            ROBUST,
            "(0.9 ln 5/4 − 0.1 ln 5)/0.8; (−0.18 − 0.08)/0.8",
            ((0.9 * math.log(1.25) - 0.1 * math.log(5)) / 0.8, -0.325, -0.325, 0.325),
            beta=1.0,
            objective="robust",
            label_smoothing=0.1,
            peers={"trl": partial(trl_dpo, "robust", label_smoothing=0.1)},
        ),
        preference_case(
            "focused",
            FOCUSED,
            "all tokens differ, so h counts twice: σ(4 ln 2) = 16/17; −2/17",
            (math.log(17 / 16), -2 / 17, -2 / 17, 2 / 17),
            beta=1.0,
            focus=2.0,
        ),
        preference_case(
            "dpo_sft",
            SFT,
            "ln 5/4 + 0.5 · 1.5 ln 2; −1/5 − 0.5/2 for the chosen tokens",
            (math.log(1.25) + 0.75 * LN2, -0.45, -0.45, 0.2),
            beta=1.0,
            sft=0.5,
        ),
    ]


def _averaged() -> list[Case]:
    slope = -1 / (1 + 2**1.5)  # −σ(−1.5 ln 2)
    ipo = 2 * (1.5 * LN2 - 1)
    return [
        preference_case(
            "dpo_length_mean",
            "arXiv 2305.18290, log-ratios averaged over tokens",
            "r_w = ½ ln 2: −log σ(1.5 ln 2) = ln(1 + 2^−1.5); −σ(−1.5 ln 2), half of it for each chosen token",
            (math.log1p(2**-1.5), slope / 2, slope / 2, -slope),
            beta=1.0,
            length="mean",
            peers={"trl": partial(trl_dpo, "sigmoid_norm")},
        ),
        preference_case(
            "ipo",
            "arXiv 2310.12036",
            "r_w = ½ ln 2: (1.5 ln 2 − 1)²; 2 (1.5 ln 2 − 1), half of it for each chosen token",
            ((1.5 * LN2 - 1) ** 2, ipo / 2, ipo / 2, -ipo),
            objective="ipo",
            beta=0.5,
            peers={"trl": partial(trl_dpo, "ipo", beta=0.5)},
        ),
        preference_case(
            "simpo",
            "arXiv 2405.14734",
            "mean log π: −1.5 ln 2 and −3 ln 2; 2 · 1.5 ln 2 − ln 2 = 2 ln 2: ln 5/4; −2/5",
            (math.log(1.25), -0.2, -0.2, 0.4),
            objective="simpo",
            beta=2.0,
            margin=LN2,
            peers={"trl": partial(trl_simpo, beta=2.0, margin=LN2)},
        ),
        preference_case(
            "orpo",
            "arXiv 2403.07691",
            "1.5 ln 2 − ½ log σ(log odds ratio), p = 2^−1.5 and 2^−3; d log odds / d log p = 1/(1 − p)",
            (
                1.5 * LN2 + 0.5 * math.log1p(1 / ODDS),
                ORPO_W / 2,
                ORPO_W / 2,
                0.5 / (1 + ODDS) / (1 - MEAN_L),
            ),
            objective="orpo",
            beta=0.5,
            peers={"trl": partial(trl_orpo, beta=0.5)},
        ),
    ]


def _other_shapes() -> list[Case]:
    return [
        preference_case(
            "hinge",
            "arXiv 2309.06657",
            "1 − 0.5 · 2 ln 2; −0.5",
            (1 - LN2, -0.5, -0.5, 0.5),
            objective="hinge",
            beta=0.5,
            peers={"trl": partial(trl_dpo, "hinge", beta=0.5)},
        ),
        preference_case(
            "apo_zero",
            "arXiv 2408.06266, eq. 7",
            "1 − σ(ln 2) + σ(−ln 2) = 2/3; σ' = 2/9",
            (2 / 3, -2 / 9, -2 / 9, 2 / 9),
            objective="apo_zero",
            beta=1.0,
            peers={"trl": partial(trl_dpo, "apo_zero")},
        ),
        preference_case(
            "apo_down",
            "arXiv 2408.06266, eq. 8",
            "σ(ln 2) + 1 − σ(2 ln 2) = 13/15; 2/9 − 4/25 and 4/25",
            (13 / 15, 14 / 225, 14 / 225, 4 / 25),
            objective="apo_down",
            beta=1.0,
            peers={"trl": partial(trl_dpo, "apo_down")},
        ),
        preference_case(
            "kto",
            "arXiv 2402.01306",
            "z0 = ln 2: good 1 − σ(0) = 1/2, bad 1 − σ(2 ln 2) = 1/5, mean 0.35; −1/4 and 4/25 over 2",
            (0.35, -0.125, -0.125, 0.08),
            objective="kto",
            beta=1.0,
            peers={"trl": trl_kto},
        ),
    ]
