"""What the loop asks of its three partners: the policy, the source of units, and the run folder.

Shapes: T tokens of a forest, N rows, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from postgrad.core.annotation import Unit
from postgrad.core.forest import Forest


class TrainablePolicy(Protocol):
    """The part of `models.policy.Policy` that training uses."""

    @property
    def name(self) -> str:
        """What the policy was loaded from; a checkpoint of another one is refused."""
        ...

    @property
    def model(self) -> nn.Module:
        """The network; its parameters that require gradients are trained."""
        ...

    def hidden_TD(self, forest: Forest) -> Tensor:
        """Final hidden states of all tokens, in forest order."""
        ...

    def head(self, hidden_ND: Tensor) -> Tensor:
        """Hidden states to fp32 logits (N, V)."""
        ...

    def reference(self) -> AbstractContextManager[Any]:
        """Inside it, `hidden_TD` and `head` are the reference policy's."""
        ...


class UnitSource(Protocol):
    """Units of one optimiser step; deterministic given the policy's weights, the seed and the step."""

    def units(self, step: int) -> Sequence[Unit]:
        """Units of optimiser step `step`, the first being 0. With several workers only the first one is asked."""
        ...

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the step, as plain JSON."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        ...


class Run(Protocol):
    """The part of `run.rundir.RunDir` that training uses."""

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        ...

    def log(self, *, step: int, **values: Any) -> None:
        """Append one line of metrics."""
        ...

    def rewind(self, step: int) -> None:
        """Drop the metrics of steps after `step`."""
        ...
