"""The input of all policy cases: four sampled tokens of three completions, with round ratios; and our channel on it.

    token  completion  A    π     μ     ρ = π/μ
    1      a (1 token)  1   1/2   1/3   3/2
    2      b (2 tokens) −1  1/4   1/2   1/2
    3      b            −1  1/2   1/3   3/2
    4      c (1 token)  2   1/4   1/2   1/2

The completion limit is 4. Losses are means over the step; gradients are those by the four log π.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from postgrad.conformance.leaves import loss_and_gradient
from postgrad.core.annotation import PolicyGradientItem, Span, Unit
from postgrad.core.forest import build_forest
from postgrad.objectives.channel import Placed
from postgrad.objectives.policy_gradient import PolicyGradient

LIMIT = 4
LN2, LN1_5 = math.log(2), math.log(1.5)


@dataclass(frozen=True)
class Batch:
    """Completions as rows of numbers, one row a completion; advantages are one a completion or one a token."""

    probabilities: tuple[tuple[float, ...], ...] = ((1 / 2,), (1 / 4, 1 / 2), (1 / 4,))
    behaviours: tuple[tuple[float, ...], ...] = ((1 / 3,), (1 / 2, 1 / 3), (1 / 2,))
    advantages: tuple[float | tuple[float, ...], ...] = (1.0, -1.0, 2.0)
    olds: tuple[tuple[float, ...], ...] | None = None
    references: tuple[tuple[float, ...], ...] | None = None
    weights: tuple[float, ...] = (1.0, 1.0, 1.0)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each completion."""
        return [len(row) for row in self.probabilities]

    def padded(self, rows: Sequence[Sequence[float]], fill: float = 0.0) -> Tensor:
        """Rows as (G, T) in fp64, short ones filled."""
        width = max(self.lengths)
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.float64)

    @property
    def mask(self) -> Tensor:
        """1 at tokens of completions that are not masked: (G, T)."""
        rows = [[float(weight != 0)] * length for weight, length in zip(self.weights, self.lengths, strict=True)]
        return self.padded(rows)

    def credits(self) -> list[list[float]]:
        """The advantage of each token."""
        return [
            [*given] if isinstance(given, tuple) else [given] * length
            for given, length in zip(self.advantages, self.lengths, strict=True)
        ]


BATCH = Batch()
NO_ADVANTAGE = replace(BATCH, advantages=(0.0, 0.0, 0.0))


def measured(channel: PolicyGradient, batch: Batch = BATCH) -> tuple[float, list[float]]:
    """Our loss over its count, and its gradient by the log-probabilities of the tokens, in order."""
    items = [_item(batch, place) for place in range(len(batch.lengths))]
    # Each after a prompt of its own, so that no tokens are shared.
    units = [Unit(((place, *range(10, 10 + n)),), (items[place],)) for place, n in enumerate(batch.lengths)]
    forest = build_forest(units)
    nodes = np.concatenate([path[0][1:] for path in forest.paths]).tolist()
    return loss_and_gradient(
        channel,
        forest,
        [Placed(k, item) for k, item in enumerate(items)],
        places={node: place for place, node in enumerate(nodes)},
        probabilities=[p for row in batch.probabilities for p in row],
        references=[p for row in batch.references or batch.probabilities for p in row],
    )


def _item(batch: Batch, place: int) -> PolicyGradientItem:
    given = batch.advantages[place]
    return PolicyGradientItem(
        Span(0, tuple(range(1, 1 + batch.lengths[place]))),
        np.array(given, dtype=np.float32) if isinstance(given, tuple) else given,
        np.log(np.array(batch.behaviours[place], dtype=np.float32)),
        max_length=LIMIT,
        weight=batch.weights[place],
        old_T=None if batch.olds is None else np.log(np.array(batch.olds[place], dtype=np.float32)),
    )
