"""Cross-entropy: imitate tokens. SFT, continued pretraining, hard distillation.

    sum = − Σ_i w_i Σ_t c_t log p(y_t | y_<t),   count = number of tokens of items with w_i ≠ 0

    nll     c_t = 1
    dft     c_t = p(y_t | y_<t) without gradient: dynamic fine-tuning (arXiv:2508.05629), which takes away the weight
            1/p that likelihood gives to tokens the model finds improbable

The count takes no notice of the weights, so an item of weight 2 pulls twice as hard whatever else is in the step.

Not covered: label smoothing, z-loss, top-k soft targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic.dataclasses import dataclass
from torch import Tensor

from postgrad.core.annotation import CrossEntropyItem
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored, joined


@dataclass(frozen=True, config=STRICT)
class CrossEntropy:
    """Mean negative log-likelihood per token, in nats."""

    objective: Literal["nll", "dft"] = "nll"
    """Plain likelihood, or dynamic fine-tuning."""

    item: ClassVar[type[CrossEntropyItem]] = CrossEntropyItem
    advice: ClassVar[str] = "check that the targets are not empty and that the weights are not 0"

    def count(self, items: Sequence[CrossEntropyItem]) -> int:
        """Tokens to imitate."""
        return sum(len(item.span.positions) for item in items if item.weight != 0)

    def loss(self, scored: Scored, items: Sequence[Placed[CrossEntropyItem]]) -> tuple[Tensor, Metrics]:
        """Σ w · nll; metric `token_probability`, the mean of p(y_t)."""
        used = [placed for placed in items if placed.item.weight != 0]
        logprobs_N = scored.logprobs(joined([scored.nodes(p.unit, p.item.span) for p in used]))
        lengths = [len(p.item.span.positions) for p in used]
        weights_N = scored.constant(np.repeat([p.item.weight for p in used], lengths))
        probabilities_N = logprobs_N.detach().exp()
        metrics = {"token_probability": Mean(float(probabilities_N.sum()), len(logprobs_N))}
        if self.objective == "dft":
            metrics["nll"] = Mean(-float(logprobs_N.detach().sum()), len(logprobs_N))
            weights_N = weights_N * probabilities_N
        return -(weights_N * logprobs_N).sum(), metrics
