"""One optimiser step up to its gradients: units of all workers in, `parameter.grad` of the whole step out.

A step that may be a channel's first contact is done channel by channel, so that the exact norm of every channel's
gradient at the weights is known; all other steps do the channels together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from postgrad.core.annotation import Unit
from postgrad.core.forest import pack
from postgrad.train.channels import WeightedChannel
from postgrad.train.contracts import TrainablePolicy
from postgrad.train.gradients import Backward, Tally
from postgrad.train.health import NotFinite
from postgrad.train.sharding import Lockstep, gradient_norm
from postgrad.train.teachers import Teachers
from postgrad.train.workers import Workers, shares


@dataclass(frozen=True)
class Gradients:
    """What a step's gradients are made of, pooled over workers.

    Attributes:
        counts: denominators.
        tallies: losses, hidden-state norms and metrics.
        weight_norms: norms at the weights, where the step was done channel by channel.
        tokens: tokens computed, prefixes once per forest.
    """

    counts: Mapping[str, int]
    tallies: Mapping[str, Tally]
    weight_norms: Mapping[str, float] | None
    tokens: int

    @property
    def norms(self) -> dict[str, float]:
        """Norms at the hidden states."""
        return {name: tally.norm for name, tally in self.tallies.items()}

    def loss(self, name: str) -> float:
        """A channel's loss, unweighted; 0 where it had no items."""
        return self.tallies[name].loss / max(1, self.counts[name])


@dataclass(frozen=True)
class StepRunner:
    """Computes gradients of steps for one policy."""

    policy: TrainablePolicy
    channels: Sequence[WeightedChannel]
    parameters: Sequence[nn.Parameter]
    workers: Workers
    token_budget: int
    autocast: bool
    teachers: Teachers | None = None
    lockstep: Lockstep | None = None

    def gradients(self, units: Sequence[Unit], *, by_channel: bool) -> Gradients:
        """Fill `parameter.grad`; `units` are those of all workers. Those that feed no channel here are passed over.

        Raises:
            NotFinite: a loss is not finite.
        """
        counts = {channel.name: channel.count(units) for channel in self.channels}
        fed = [unit for unit in units if any(channel.has_items(unit) for channel in self.channels)]
        mine = shares(fed, self.workers.size)[self.workers.rank]
        self._clear()
        if not by_channel:
            tallies, tokens = self._backward(mine, self.channels, counts)
            return Gradients(counts, tallies, None, tokens)
        tallies, weight_norms, tokens = dict[str, Tally](), dict[str, float](), 0
        sums: list[Tensor | None] = [None] * len(self.parameters)
        for channel in self.channels:
            own, computed = self._backward([u for u in mine if channel.has_items(u)], [channel], counts)
            tallies |= own
            tokens += computed
            weight_norms[channel.name] = self._norm()
            sums = [_plus(total, p.grad) for total, p in zip(sums, self.parameters, strict=True)]
            self._clear()
        for parameter, total in zip(self.parameters, sums, strict=True):
            parameter.grad = total
        return Gradients(counts, tallies, weight_norms, tokens)

    def _backward(
        self, units: Sequence[Unit], channels: Sequence[WeightedChannel], counts: Mapping[str, int]
    ) -> tuple[dict[str, Tally], int]:
        forests = pack(units, budget=self.token_budget)
        tallies = Backward(self.policy, channels, counts, self.autocast, self.teachers, self.lockstep).run(forests)
        self.workers.sum_gradients(self.parameters)
        pooled = {channel.name: Tally() for channel in channels}
        tokens = 0
        for theirs, computed in self.workers.gathered((tallies, sum(map(len, forests)))):
            tokens += computed
            for name, tally in theirs.items():
                pooled[name].add(tally)
        for name, tally in pooled.items():
            if not math.isfinite(tally.loss):
                raise NotFinite(f"the loss of channel '{name}' is {tally.loss}; a smaller optim.lr may help")
        return pooled, tokens

    def _clear(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def _norm(self) -> float:
        return gradient_norm(self.parameters)


def _plus(total: Tensor | None, gradient: Tensor | None) -> Tensor | None:
    if total is None or gradient is None:
        return gradient if total is None else total
    return total + gradient
