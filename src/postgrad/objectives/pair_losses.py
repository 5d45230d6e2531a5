"""What a pair of actions costs, by the name of its objective.

w is the chosen action and l the rejected one; r = log π − log π0 is summed over an action's tokens, or averaged where
the length is taken out. For the objectives without a reference π0 is 1, so r is the mean log-probability itself.

    dpo       −(1−ε) log σ(β h) − ε log σ(−β h),  h = r_w − r_l          DPO, arXiv 2305.18290; ε > 0: cDPO
    robust    (−(1−ε) log σ(β h) + ε log σ(−β h)) / (1 − 2ε)             robust DPO, arXiv 2403.00409
    ipo       (h − 1/(2β))²                                              IPO, arXiv 2310.12036; r averaged
    hinge     max(0, 1 − β h)                                            SLiC, arXiv 2305.10425; RSO, 2309.06657
    apo_zero  1 − σ(β r_w) + σ(β r_l)                                    APO, arXiv 2408.06266, eq. 7
    apo_down  σ(β r_w) + 1 − σ(β h)                                      eq. 8
    simpo     −log σ(β h − γ)                                            SimPO, arXiv 2405.14734; no reference, averaged
    orpo      −r_w − β log σ(log odds_w − log odds_l),  odds = p/(1−p), p = e^r      ORPO, arXiv 2403.07691; likewise

Where the policy is its reference, r = 0 and the loss does not depend on the data: ln 2 for dpo and robust, 1/(4β²) for
ipo, 1 for hinge and both apo.

Shapes: P pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, relu

CERTAIN = -1e-7  # log-probability above which odds would overflow


@dataclass(frozen=True)
class PairSettings:
    """Numbers of an objective: the strength β, the share ε of wrong labels, the margin γ."""

    beta: float
    label_smoothing: float = 0.0
    margin: float = 0.0


@dataclass(frozen=True)
class PairObjective:
    """Loss of each pair from r_w and r_l, and how r is made: against a reference or not, averaged or summed."""

    loss: Callable[[Tensor, Tensor, PairSettings], Tensor]
    reference: bool = True
    averaged: bool = False


def _dpo(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    margins_P = settings.beta * (chosen_P - rejected_P)
    kept = (1 - settings.label_smoothing) * logsigmoid(margins_P)
    return -kept - settings.label_smoothing * logsigmoid(-margins_P)


def _robust(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    margins_P = settings.beta * (chosen_P - rejected_P)
    flipped = settings.label_smoothing
    unbiased_P = -(1 - flipped) * logsigmoid(margins_P) + flipped * logsigmoid(-margins_P)
    return unbiased_P / (1 - 2 * flipped)


def _ipo(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return (chosen_P - rejected_P - 1 / (2 * settings.beta)).square()


def _hinge(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return relu(1 - settings.beta * (chosen_P - rejected_P))


def _apo_zero(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return torch.sigmoid(-settings.beta * chosen_P) + torch.sigmoid(settings.beta * rejected_P)


def _apo_down(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return torch.sigmoid(settings.beta * chosen_P) + torch.sigmoid(-settings.beta * (chosen_P - rejected_P))


def _simpo(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return -logsigmoid(settings.beta * (chosen_P - rejected_P) - settings.margin)


def _orpo(chosen_P: Tensor, rejected_P: Tensor, settings: PairSettings) -> Tensor:
    return -chosen_P - settings.beta * logsigmoid(log_odds(chosen_P) - log_odds(rejected_P))


def log_odds(logprobs_P: Tensor) -> Tensor:
    """log(p / (1 − p)) from log p; p is held a little below 1."""
    logprobs_P = logprobs_P.clamp(max=CERTAIN)
    return logprobs_P - torch.log(-torch.expm1(logprobs_P))


PAIR_OBJECTIVES: Mapping[str, PairObjective] = {
    "dpo": PairObjective(_dpo),
    "robust": PairObjective(_robust),
    "ipo": PairObjective(_ipo, averaged=True),
    "hinge": PairObjective(_hinge),
    "apo_zero": PairObjective(_apo_zero),
    "apo_down": PairObjective(_apo_down),
    "simpo": PairObjective(_simpo, reference=False, averaged=True),
    "orpo": PairObjective(_orpo, reference=False, averaged=True),
}
