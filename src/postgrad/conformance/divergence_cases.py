"""The divergence on one token, value and gradient (by the student's logits) by hand.

The student is p = (1/2, 1/2) and the teacher q = (9/10, 1/10), unless a case says otherwise. The slope at a logit is
p_v (a_v − Σ p a) with a = (1−β) log p/m inside, log p/q at β = 1, and p_v − q_v at β = 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from postgrad.conformance.case import Case
from postgrad.conformance.trl_divergence import trl_jsd
from postgrad.core.annotation import DivergenceItem, Span, Unit
from postgrad.core.forest import build_forest
from postgrad.objectives.channel import Placed, Scored
from postgrad.objectives.divergence import Divergence
from postgrad.objectives.teaching import Taid, Teacher

Logits = tuple[tuple[float, ...], tuple[float, ...]]
"""The student's and the teacher's."""

P, Q = (0.5, 0.5), (0.9, 0.1)
EVEN, TEACHER = (0.0, 0.0), (math.log(9), 0.0)
SHARP = (math.log(81), 0.0)  # at temperature 2, or half of it, this is Q
KL_QP = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
KL_PQ = 0.5 * math.log(5 / 9) + 0.5 * math.log(5)
JSD = 0.5 * (0.9 * math.log(9 / 7) + 0.1 * math.log(1 / 3)) + 0.5 * (0.5 * math.log(5 / 7) + 0.5 * math.log(5 / 3))
GJSD, OPSD, SDPO = "arXiv 2306.13649", "OPSD", "SDPO"


def measured(channel: Divergence, student: tuple[float, ...], teacher: tuple[float, ...]) -> list[float]:
    """Our loss and its gradient by the student's logits, for token 0 after a prompt and after a hinted prompt."""
    item = DivergenceItem(Span(0, (1,)), Span(1, (2,)))
    unit = Unit(((0, 0), (0, 1, 0)), (item,))
    forest = build_forest([unit])
    rows: list[tuple[float, ...]] = [(0.0,) * len(student)] * len(forest)
    rows[0], rows[int(forest.paths[0][1][1])] = student, teacher
    logits_TV = torch.tensor(rows, dtype=torch.float64, requires_grad=True)

    def none(nodes_N: Any) -> Tensor:
        raise AssertionError("no log-probabilities are asked for")

    scored = Scored(forest, logits_TV, lambda hidden_ND: hidden_ND, none, none)
    total, _ = channel.loss(scored, [Placed(0, item)])
    (gradient_TV,) = torch.autograd.grad(total, logits_TV)
    return [float(total.detach()), *gradient_TV[0].tolist()]


def divergence_case(
    name: str,
    source: str,
    by_hand: str,
    numbers: tuple[float, ...],
    channel: Divergence,
    *,
    logits: Logits = (EVEN, TEACHER),
) -> Case:
    """A case: `numbers` are the loss and its derivatives by the student's logits."""
    return Case(f"divergence/{name}", source, by_hand, numbers, partial(measured, channel, *logits))


def beside_trl(
    name: str,
    source: str,
    by_hand: str,
    numbers: tuple[float, ...],
    *,
    logits: Logits = (EVEN, TEACHER),
    **settings: Any,
) -> Case:
    """A case in which TRL is asked the same with the same settings."""
    case = divergence_case(name, source, by_hand, numbers, Divergence(**settings), logits=logits)
    return replace(case, peers={"trl": partial(trl_jsd, *logits, **settings)})


def cases() -> list[Case]:
    """The ends, the middle, the temperature, the supports, the weightings and TAID."""
    return [*_full(), *_supports(), *_targets()]


def _full() -> list[Case]:
    slope = math.log(3 / 7) / 8  # ½ · ½ · (log p/m − its mean) = ¼ · ½ ln 3/7
    kl_slope = math.log(9) / 4
    return [
        beside_trl("beta_0", GJSD, "KL(q‖p) = 0.9 ln 1.8 + 0.1 ln 0.2; p − q", (KL_QP, -0.4, 0.4), beta=0.0),
        beside_trl(
            "beta_1", GJSD, "KL(p‖q) = ½ ln 5/9 + ½ ln 5; ½ · (∓½ ln 9)", (KL_PQ, -kl_slope, kl_slope), beta=1.0
        ),
        beside_trl("beta_half", GJSD, "M = (0.7, 0.3); ¼ · ½ ln 3/7", (JSD, slope, -slope), beta=0.5),
        beside_trl(
            "beta_quarter",
            GJSD,
            "M = ¾ p + ¼ q = (0.6, 0.4): ¼ KL(q‖M) + ¾ KL(p‖M); ¾ · ½ · ½ (ln 5/6 − ln 5/4)",
            (
                0.25 * (0.9 * math.log(1.5) + 0.1 * math.log(0.25)) + 0.375 * (math.log(5 / 6) + math.log(5 / 4)),
                3 / 16 * math.log(2 / 3),
                -3 / 16 * math.log(2 / 3),
            ),
            beta=0.25,
        ),
        beside_trl(
            "temperature",
            OPSD,
            "logits (ln 81, 0) at temperature 2 are q; no factor T²: KL(q‖p); (p − q)/2",
            (KL_QP, -0.2, 0.2),
            logits=(EVEN, SHARP),
            beta=0.0,
            temperature=2.0,
        ),
        divergence_case(
            "distillation",
            "arXiv 1503.02531",
            "the same times T² = 4",
            (4 * KL_QP, -0.8, 0.8),
            Divergence(beta=0.0, temperature=2.0, rescale=True),
            logits=(EVEN, SHARP),
        ),
    ]


def _supports() -> list[Case]:
    three = ((math.log(2), 0.0, 0.0), (math.log(6), math.log(3), 0.0))  # p = (1/2, 1/4, 1/4), q = (.6, .3, .1)
    gap = math.log(5 / 9)
    return [
        divergence_case(
            "top_k_bucket",
            SDPO,
            "k = 1: (½, ½) against (0.6, 0.4): 0.6 ln 1.2 + 0.4 ln 0.8; p − q = ∓0.1, the bucket's shared out by p",
            (0.6 * math.log(1.2) + 0.4 * math.log(0.8), -0.1, 0.05, 0.05),
            Divergence(beta=0.0, support="top_k", top_k=1),
            logits=three,
        ),
        divergence_case(
            "top_k_renormalised",
            OPSD,
            "k = 2: (⅔, ⅓) against (⅔, ⅓): nothing",
            (0.0, 0.0, 0.0, 0.0),
            Divergence(beta=0.0, support="top_k", top_k=2, tail="renormalise"),
            logits=three,
        ),
        divergence_case(
            "sampled",
            "formulas of SDPO and on-policy distillation",
            "y = 0: sg(log p − log q) log p = ln 5/9 · ln ½; ln 5/9 · (1 − p, −p)",
            (gap * math.log(0.5), gap / 2, -gap / 2),
            Divergence(beta=1.0, support="sampled"),
        ),
    ]


def _targets() -> list[Case]:
    share = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2)  # H(q) / ln 2
    return [
        divergence_case(
            "entropy_soft",
            "arXiv 2603.07079",
            "w = H(q)/ln 2: (1−w) KL(p‖q) + w KL(q‖p), and so the gradients",
            (
                (1 - share) * KL_PQ + share * KL_QP,
                -(1 - share) * math.log(9) / 4 - share * 0.4,
                (1 - share) * math.log(9) / 4 + share * 0.4,
            ),
            Divergence(beta=1.0, entropy="soft"),
        ),
        divergence_case(
            "entropy_threshold",
            "arXiv 2603.07079",
            "H(q) = 0.325 > 0.3: KL(p‖q) + KL(q‖p)",
            (KL_PQ + KL_QP, -math.log(9) / 4 - 0.4, math.log(9) / 4 + 0.4),
            Divergence(beta=1.0, entropy=0.3),
        ),
        divergence_case(
            "taid",
            "arXiv 2501.16937",
            "τ = ¼: ¾ (0, 0) + ¼ (4 ln 9, 0) = (ln 9, 0), so q* = q: KL(q*‖p) = the cross-entropy less H(q*)",
            (KL_QP, -0.4, 0.4),
            Divergence(beta=0.0, teacher=Teacher(taid=Taid(start=0.25))),
            logits=(EVEN, (4 * math.log(9), 0.0)),
        ),
    ]
