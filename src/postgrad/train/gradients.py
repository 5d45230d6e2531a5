"""Gradients of one optimiser step: forests in, `parameter.grad` filled, what each channel did out.

The backward pass has two stages. Each channel's loss goes back to the final hidden states only (through the head);
there the channels' gradients are added, and one pass takes the sum through the network. So every channel's gradient
with respect to the hidden states is known at every step, exactly and for free, and the head's graphs of different
channels are never held at once.

Shapes: T tokens of a forest, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from postgrad.core.forest import Forest
from postgrad.models.lookup import looked_up_rows
from postgrad.objectives.channel import Mean, Metrics
from postgrad.train.channels import WeightedChannel
from postgrad.train.contracts import TrainablePolicy
from postgrad.train.hidden import hidden_states
from postgrad.train.scoring import scored_forest
from postgrad.train.sharding import Lockstep
from postgrad.train.teachers import Teachers


@dataclass
class Tally:
    """What one channel did in a step: its summed loss, squared gradient norm at the hidden states, metrics."""

    loss: float = 0.0
    squares: float = 0.0
    metrics: dict[str, Mean] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Pool with another forest's or worker's."""
        self.loss += other.loss
        self.squares += other.squares
        self.pool(other.metrics)

    def pool(self, metrics: Metrics) -> None:
        """Add means by their totals."""
        for name, mean in metrics.items():
            old = self.metrics.get(name, Mean(0.0, 0.0))
            self.metrics[name] = Mean(old.total + mean.total, old.n + mean.n)

    @property
    def norm(self) -> float:
        """Gradient norm at the hidden states, the channel's weight and denominator included."""
        return math.sqrt(self.squares)


@dataclass(frozen=True)
class Backward:
    """Runs forests forward and backward; `counts` are the channels' denominators over all forests and workers."""

    policy: TrainablePolicy
    channels: Sequence[WeightedChannel]
    counts: Mapping[str, int]
    autocast: bool
    teachers: Teachers | None = None
    lockstep: Lockstep | None = None

    def run(self, forests: Sequence[Forest]) -> dict[str, Tally]:
        """Add the gradients of `forests` to `parameter.grad`; a tally for every channel."""
        if self.lockstep is not None:
            return self._run(self.lockstep.padded(forests))
        with looked_up_rows(self.policy.model):
            return self._run(forests)

    def _run(self, forests: Iterable[Forest]) -> dict[str, Tally]:
        tallies = {channel.name: Tally() for channel in self.channels}
        for forest in forests:
            with self._precision():
                # Workers that go in step with others make as many passes as these.
                whole = self.lockstep is not None
                hidden_TD = self.policy.hidden_TD(forest) if whole else hidden_states(self.policy, forest)
            gradient_TD = self._to_hidden(forest, hidden_TD, tallies)
            if gradient_TD is None and self.lockstep is not None:  # other workers' gradients pass by here
                gradient_TD = torch.zeros_like(hidden_TD)
            if hidden_TD.requires_grad and gradient_TD is not None:
                torch.autograd.backward([hidden_TD], [gradient_TD])
        return tallies

    def _to_hidden(self, forest: Forest, hidden_TD: Tensor, tallies: Mapping[str, Tally]) -> Tensor | None:
        """First stage: the summed gradient at the hidden states; the head's own parameters get theirs here."""
        leaf_TD = hidden_TD.detach().requires_grad_()
        scored = scored_forest(self.policy, forest, leaf_TD, teachers=self.teachers)
        if self.lockstep is not None:
            self.lockstep.pass_reference(scored)
        total_TD: Tensor | None = None
        for channel in self.channels:
            placed = channel.placed(forest.units)
            if not placed or not self.counts[channel.name]:
                continue
            with self._precision():
                loss, metrics = channel.objective.loss(scored, placed)
            tally = tallies[channel.name]
            tally.loss += float(loss.detach())
            tally.pool(metrics)
            if not loss.requires_grad:  # only empty completions here
                continue
            torch.autograd.backward([loss * (channel.weight / self.counts[channel.name])])
            gradient_TD, leaf_TD.grad = leaf_TD.grad, None
            if gradient_TD is not None:
                tally.squares += float(gradient_TD.detach().double().square().sum())
                total_TD = gradient_TD if total_TD is None else total_TD + gradient_TD
        return total_TD

    def _precision(self) -> torch.autocast:
        device = next(self.policy.model.parameters()).device
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.autocast)
