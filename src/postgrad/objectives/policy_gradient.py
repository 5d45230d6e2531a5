"""Policy gradient: raise the probability of completions that did better than their siblings.

With ρ_t = π(y_t)/μ(y_t), μ the sampler, advantage A and Δ_t = log π0(y_t) − log π(y_t), π0 the reference:

    ℓ_t = −min(ρ_t A, clip(ρ_t, 1−ε_low, 1+ε_high) A) + c · (e^Δ_t − Δ_t − 1)
    dr_grpo   sum = Σ_i Σ_t ℓ_t / L_i          L_i the completion limit     (arXiv 2503.20783)
    grpo      sum = Σ_i mean_t ℓ_t                                          (arXiv 2402.03300)
    count = completions

The last term is the estimator k3 of KL(π‖π0). An empty completion is a valid sample: it adds 0 and counts.
Advantages come with the items (`advantages`): dr_grpo wants them centred, grpo standardised.

Not covered: token-mean aggregation (DAPO, BNPO), sequence-level ratios (GSPO), dual clip, sampler-mismatch correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from postgrad.core.annotation import PolicyGradientItem
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored, joined

# Objective -> weight of each token of a completion in the sum.
TOKEN_WEIGHTS: Mapping[str, Callable[[PolicyGradientItem], float]] = {
    "dr_grpo": lambda item: 1.0 / item.max_length,
    "grpo": lambda item: 1.0 / max(1, len(item.span.positions)),
}


@dataclass(frozen=True, config=STRICT)
class PolicyGradient:
    """Clipped policy gradient; `objective` chooses the normalisation."""

    item: ClassVar[type[PolicyGradientItem]] = PolicyGradientItem
    advice: ClassVar[str] = (
        "rewards were equal within every group (sample more completions per prompt, raise the temperature, or choose "
        "tasks that succeed only now and then), or every token was beyond the clip (see policy_gradient/clipped)"
    )

    objective: Literal["dr_grpo", "grpo"] = "dr_grpo"
    eps_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    eps_high: Annotated[float, Field(gt=0)] = 0.2
    kl_coefficient: Annotated[float, Field(ge=0)] = 0.0

    def count(self, items: Sequence[PolicyGradientItem]) -> int:
        """Completions, empty ones included."""
        return len(items)

    def loss(self, scored: Scored, items: Sequence[Placed[PolicyGradientItem]]) -> tuple[Tensor, Metrics]:
        """Sum over completions; metrics `ratio`, `clipped`, `behaviour_kl`, `credited`, `reference_kl`."""
        for placed in items:
            _check(placed.item)
        lengths = [len(p.item.span.positions) for p in items]
        nodes_N = joined([scored.nodes(p.unit, p.item.span) for p in items])
        advantages_N = scored.constant(np.repeat([p.item.advantage for p in items], lengths))
        weights_N = scored.constant(np.repeat([TOKEN_WEIGHTS[self.objective](p.item) for p in items], lengths))
        behaviour_N = scored.constant(np.concatenate([p.item.behaviour_T for p in items]))

        logprobs_N = scored.logprobs(nodes_N)
        logratios_N = logprobs_N - behaviour_N
        losses_N, metrics = self._clipped(logratios_N, advantages_N)
        if self.kl_coefficient > 0:
            kl_N = k3(scored.reference_logprobs(nodes_N) - logprobs_N)
            losses_N = losses_N + self.kl_coefficient * kl_N
            metrics["reference_kl"] = Mean(float(kl_N.detach().sum()), len(nodes_N))
        metrics["credited"] = Mean(sum(p.item.advantage != 0 for p in items), len(items))
        return (weights_N * losses_N).sum(), metrics

    def _clipped(self, logratios_N: Tensor, advantages_N: Tensor) -> tuple[Tensor, dict[str, Mean]]:
        ratios_N = logratios_N.exp()
        plain_N = ratios_N * advantages_N
        clipped_N = ratios_N.clamp(1 - self.eps_low, 1 + self.eps_high) * advantages_N
        with torch.no_grad():
            n = len(logratios_N)
            metrics = {
                "ratio": Mean(float(ratios_N.sum()), n),
                "clipped": Mean(float((clipped_N < plain_N).sum()), n),
                "behaviour_kl": Mean(float(k3(logratios_N).sum()), n),
            }
        return -torch.minimum(plain_N, clipped_N), metrics


def k3(delta_N: Tensor) -> Tensor:
    """e^Δ − Δ − 1 ≥ 0: with Δ = log b − log a on samples of a, an unbiased estimate of KL(a‖b) per token."""
    return torch.expm1(delta_N) - delta_N


def _check(item: PolicyGradientItem) -> None:
    assert math.isfinite(item.advantage), "a completion without a reward must be left out, not given as NaN"
    assert len(item.behaviour_T) == len(item.span.positions), "one behaviour log-probability per scored token"
    assert len(item.span.positions) <= item.max_length, "a completion longer than its limit"
