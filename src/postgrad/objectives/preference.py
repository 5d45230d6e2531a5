"""Preference: make the chosen action likelier than the rejected one, measured from a reference policy.

    h = [log π(y_w) − log π0(y_w)] − [log π(y_l) − log π0(y_l)]      (sums over the span's tokens)
    dpo   ℓ = −(1−ε) log σ(β h) − ε log σ(−β h)                      (DPO, arXiv 2305.18290; ε: cDPO)
    sum = Σ w ℓ,   count = pairs with w ≠ 0

At h = 0, where training starts, ℓ = ln 2 whatever β and ε. Log-probabilities are summed, not averaged over length;
tokens that both actions share from the start are one node of the forest and cancel exactly.

Not covered: ipo, kto, orpo, simpo, focused pairs, length-averaged log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor
from torch.nn.functional import logsigmoid

from postgrad.core.annotation import PreferenceItem
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored, joined


@dataclass(frozen=True, config=STRICT)
class Preference:
    """Reference-anchored pair loss, mean per pair."""

    item: ClassVar[type[PreferenceItem]] = PreferenceItem
    advice: ClassVar[str] = "chosen and rejected may be the same tokens: check how the pairs were built"

    objective: Literal["dpo"] = "dpo"
    beta: Annotated[float, Field(gt=0)] = 0.1
    label_smoothing: Annotated[float, Field(ge=0, lt=0.5)] = 0.0

    def count(self, items: Sequence[PreferenceItem]) -> int:
        """Pairs."""
        return sum(item.weight != 0 for item in items)

    def loss(self, scored: Scored, items: Sequence[Placed[PreferenceItem]]) -> tuple[Tensor, Metrics]:
        """Σ w · ℓ; metrics `accuracy` (h > 0), `margin` (β h), `chosen` and `rejected` (β log π/π0)."""
        used = [placed for placed in items if placed.item.weight != 0]
        spans = [(p.unit, span) for p in used for span in (p.item.chosen, p.item.rejected)]
        nodes_N = joined([scored.nodes(unit, span) for unit, span in spans])
        log_ratios_N = scored.logprobs(nodes_N) - scored.reference_logprobs(nodes_N)
        owners_N = np.repeat(np.arange(len(spans)), [len(span.positions) for _, span in spans])
        sums_S = log_ratios_N.new_zeros(len(spans)).index_add(
            0, torch.from_numpy(owners_N).to(log_ratios_N.device), log_ratios_N
        )
        rewards_P2 = self.beta * sums_S.view(-1, 2)
        margins_P = rewards_P2[:, 0] - rewards_P2[:, 1]
        weights_P = scored.constant([p.item.weight for p in used])
        with torch.no_grad():
            columns = {
                "accuracy": (margins_P > 0).float(),
                "margin": margins_P,
                "chosen": rewards_P2[:, 0],
                "rejected": rewards_P2[:, 1],
            }
            metrics = {name: Mean(float(column_P.sum()), len(used)) for name, column_P in columns.items()}
        return (weights_P * self.pair_loss(margins_P)).sum(), metrics

    def pair_loss(self, margins_P: Tensor) -> Tensor:
        """Loss of each pair from its margin β h."""
        kept = (1 - self.label_smoothing) * logsigmoid(margins_P)
        return -kept - self.label_smoothing * logsigmoid(-margins_P)
