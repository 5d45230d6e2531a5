"""What the loop asks of its partners: the policy, the source of units, the run folder, what moves with the weights.

Shapes: T tokens of a forest, N rows, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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


class Source(Protocol):
    """What every source has: state beside the step, for a checkpoint."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the step, as plain JSON."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        ...


class UnitSource(Source, Protocol):
    """Units of one optimiser step; deterministic given the policy's weights, the seed and the step.

    A source that never asks the policy may say so by an attribute `samples = False`: where weights are split over
    workers they are gathered for all others.
    """

    def units(self, step: int) -> Sequence[Unit]:
        """Units of batch `step`, the first being 0. With several workers only the first one is asked.

        It is the optimiser step too, unless a rollback after a spike left batches out.
        """
        ...


class Evolving(Protocol):
    """The settings of an evolution strategy."""

    @property
    def pairs(self) -> int:
        """Antithetic pairs a step."""
        ...

    @property
    def sigma(self) -> float:
        """Standard deviation of a perturbation."""
        ...

    def shaped(self, fitness: Sequence[float]) -> list[float]:
        """What the weights follow instead of raw fitness, in the same order."""
        ...


@runtime_checkable
class FitnessSource(Source, Protocol):
    """A number to raise, in place of units: no gradient is asked for, so anything that can be measured will do."""

    @property
    def evolution(self) -> Evolving:
        """How to climb."""
        ...

    def fitness(self, step: int) -> float:
        """Fitness of the policy as it is now on batch `step`; the same question for all perturbations of a step.

        NaN where it could not be measured.
        """
        ...


class Companion(Protocol):
    """Something that moves with the weights: an averaged teacher, an outer optimiser, a rank allocator.

    The loop calls it after every optimiser step, on every worker, and keeps its state in checkpoints.
    """

    @property
    def name(self) -> str:
        """Unique among a run's companions."""
        ...

    def after_step(self, step: int) -> None:
        """Optimiser step `step` (from 0) was taken; gradients are still there."""
        ...

    def tensors(self) -> Mapping[str, Tensor]:
        """Tensors that a checkpoint must hold."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain JSON that a checkpoint must hold."""
        ...

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Take back what `tensors` and `state` gave; also after a rollback, in the middle of a run."""
        ...


@runtime_checkable
class GradientCompanion(Companion, Protocol):
    """A companion that adds to the gradients as well (a regulariser of the weights)."""

    def before_step(self, step: int) -> None:
        """Gradients of optimiser step `step` are there, summed over workers and not yet clipped."""
        ...


class Sync(Companion, Protocol):
    """A companion that keeps this run together with its replicas, other runs of the same weights."""

    def agree(self, steps: Sequence[int]) -> int | None:
        """Which of the checkpoints at `steps` to go on from, None for a new start; the first call of all.

        Raises:
            ConfigError: the replicas do not fit each other.
            OutsideFailure: they did not all come, here and in every method.
        """
        ...

    @property
    def together(self) -> bool:
        """Whether there is another replica."""
        ...

    def before_save(self, step: int) -> None:
        """A checkpoint after `step` optimiser steps is due; replicas are never more than one apart."""
        ...

    def begin(self) -> None:
        """The weights of a new run are there; they are made equal over replicas."""
        ...

    def finish(self) -> None:
        """The last checkpoint is written."""
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
