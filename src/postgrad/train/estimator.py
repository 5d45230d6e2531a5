"""`Estimator`: what fills `parameter.grad` for one optimiser step. The loop does the rest whichever it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Estimate:
    """What one step's gradients are made of, pooled over workers.

    Attributes:
        loss: what is lowered, weights included.
        losses: its parts by name, without weights.
        tokens: tokens computed, prefixes once per forest.
        metrics: what else is to be logged.
    """

    loss: float
    losses: Mapping[str, float]
    tokens: int
    metrics: Mapping[str, float] = field(default_factory=dict)


class Estimator(Protocol):
    """Backpropagation through channels, or an evolution strategy."""

    def estimate(self, batch: int) -> Estimate:
        """Fill the gradients of batch `batch`.

        Raises:
            NotFinite: a loss or a gradient is not finite; no weight has moved.
            DeadChannel: nothing is being learnt.
        """
        ...

    def finish(self) -> None:
        """The run ends here.

        Raises:
            DeadChannel: nothing was learnt.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        ...
