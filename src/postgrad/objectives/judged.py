"""Single completions judged good or bad (KTO, arXiv 2402.01306).

    good   ℓ = λ_D (1 − σ(β (r − z0)))          bad   ℓ = λ_U (1 − σ(β (z0 − r)))
    z0 = max(0, mean of r over mismatched completions), no gradient

r = log π(y|x) − log π0(y|x). The mismatched completions answer another prompt; their mean log-ratio estimates
KL(π‖π0). z0 is a batch statistic: the method scores the mismatched completions of the whole step before it and gives
every item of the step their log-ratios, so packing, accumulation and workers cannot change z0. An item may also bring
mismatched completions to be scored with it. Without any z0 is 0.

Where the policy is its reference the loss is 1/2 each, whatever β.

Shapes: S completions of an item, good ones first, then bad, then mismatched.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from postgrad.core.annotation import JudgedItem
from postgrad.objectives.channel import Mean, Metrics


def judged_loss(
    items: Sequence[JudgedItem],
    ratios: Sequence[Tensor],
    *,
    beta: float,
    weights: tuple[float, float],
    averaged: bool = False,
) -> tuple[Tensor, Metrics]:
    """Sum over completions from each item's log-ratios (S,), which are means if `averaged`; `weights` are λ_D and λ_U.

    Metrics: `good` and `bad` (β r), `z0`, `accuracy` (good above z0, bad below).
    """
    losses, sums = [], {"good": Mean(0.0, 0), "bad": Mean(0.0, 0), "z0": Mean(0.0, 0), "accuracy": Mean(0.0, 0)}
    for item, ratios_S in zip(items, ratios, strict=True):
        good, bad = len(item.good), len(item.bad)
        before = [total / max(1, tokens) if averaged else total for total, tokens in item.measured]
        zero = reference_point(torch.cat([ratios_S[good + bad :], ratios_S.new_tensor(before)]))
        signs_S = ratios_S.new_tensor([1.0] * good + [-1.0] * bad)
        scales_S = ratios_S.new_tensor([weights[0]] * good + [weights[1]] * bad)
        if item.weights is not None:
            scales_S = scales_S * ratios_S.new_tensor(item.weights)
        margins_S = signs_S * (ratios_S[: good + bad] - zero)
        losses.append((scales_S * torch.sigmoid(-beta * margins_S)).sum())
        with torch.no_grad():
            found = {
                "good": Mean(float(beta * ratios_S[:good].sum()), good),
                "bad": Mean(float(beta * ratios_S[good : good + bad].sum()), bad),
                "z0": Mean(float(zero), 1),
                "accuracy": Mean(float((margins_S > 0).sum()), good + bad),
            }
        sums = {name: Mean(sums[name].total + mean.total, sums[name].n + mean.n) for name, mean in found.items()}
    return torch.stack(losses).sum(), sums


def reference_point(mismatched_M: Tensor) -> Tensor:
    """z0 from the log-ratios of mismatched completions."""
    if not len(mismatched_M):
        return mismatched_M.new_zeros(())
    return mismatched_M.detach().mean().clamp(min=0)
