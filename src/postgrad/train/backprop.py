"""Backpropagation: units of a batch through the channels to gradients, watched for channels that train nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from torch import nn

from postgrad.core.annotation import Unit
from postgrad.train.channels import build_channels, refuse_unclaimed
from postgrad.train.config import TrainConfig
from postgrad.train.contracts import TrainablePolicy, UnitSource
from postgrad.train.estimator import Estimate
from postgrad.train.health import ChannelHealth
from postgrad.train.memory import uses_reference
from postgrad.train.noise import EmbeddingNoise, NoisyPolicy
from postgrad.train.precision import uses_bf16
from postgrad.train.sharding import Lockstep, Sharding
from postgrad.train.step import Gradients, StepRunner
from postgrad.train.teachers import build_teachers
from postgrad.train.workers import Workers


class Backprop:
    """An `Estimator` over a source of units."""

    def __init__(
        self,
        policy: TrainablePolicy,
        source: UnitSource,
        config: TrainConfig,
        parameters: Sequence[nn.Parameter],
        workers: Workers,
        sharding: Sharding | None = None,
    ) -> None:
        self._policy, self._source, self._workers, self._sharding = policy, source, workers, sharding
        self._channels, self._claimed = build_channels(config.channels)
        self.teachers = build_teachers(policy, self._channels, steps=config.loop.steps)
        advice = {channel.name: channel.objective.advice for channel in self._channels}
        self._health = ChannelHealth(advice, patience=config.loop.patience)
        self._noise = None
        if config.loop.embedding_noise:
            self._noise = EmbeddingNoise(policy.model, alpha=config.loop.embedding_noise, seed=config.loop.seed)
        self._runner = StepRunner(
            policy=policy if self._noise is None else NoisyPolicy(policy, self._noise),
            channels=self._channels,
            parameters=parameters,
            workers=workers,
            token_budget=config.loop.token_budget,
            autocast=uses_bf16(config.loop.dtype, parameters[0].device),
            teachers=self.teachers,
            lockstep=None if sharding is None else Lockstep(workers, uses_reference(config)),
        )

    def estimate(self, batch: int) -> Estimate:
        """Ask the first worker's source for `batch` and run it forward and backward."""
        self._policy.model.eval()  # the source may sample from the policy
        units = self._workers.same(self._asked(batch))
        refuse_unclaimed(units, self._claimed)
        if self._noise is not None:
            self._noise.begin(batch, units)
        self._policy.model.train()
        if self.teachers is not None:
            self.teachers.begin()
        counts = {channel.name: channel.count(units) for channel in self._channels}
        gradients = self._runner.gradients(units, by_channel=self._health.awaits(counts))
        if gradients.weight_norms is not None:
            self._health.require_reach(gradients.norms, gradients.weight_norms)
        self._health.observe(gradients.counts, gradients.weight_norms or gradients.norms)
        return self._estimate(gradients)

    def _asked(self, batch: int) -> list[Unit] | None:
        """What the source gives the first worker; for one that samples, weights are whole meanwhile."""
        split = self._sharding is not None and getattr(self._source, "samples", True)
        with self._sharding.whole() if self._sharding is not None and split else nullcontext():
            units = list(self._source.units(batch)) if self._workers.is_first else None
            if split:
                self._workers.wait()
        return units

    def finish(self) -> None:
        """Every channel must have had a gradient."""
        if self._noise is not None:
            self._noise.remove()
        self._health.finish()

    def state(self) -> dict[str, Any]:
        """The channels' health."""
        return self._health.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        self._health.restore(state)

    def _estimate(self, gradients: Gradients) -> Estimate:
        norms = gradients.norms
        whole = sum(norms.values()) or 1.0
        losses = {channel.name: gradients.loss(channel.name) for channel in self._channels}
        values: dict[str, float] = {}
        for name, loss in losses.items():
            values[f"loss/{name}"] = loss
            values[f"count/{name}"] = gradients.counts[name]
            values[f"gradient_share/{name}"] = norms[name] / whole
            metrics = gradients.tallies[name].metrics
            values |= {f"{name}/{metric}": mean.total / mean.n for metric, mean in metrics.items() if mean.n}
        for name, norm in (gradients.weight_norms or {}).items():
            values[f"weight_gradient_norm/{name}"] = norm
        if self.teachers is not None:
            self.teachers.observe(losses)
        loss = sum(channel.weight * losses[channel.name] for channel in self._channels)
        return Estimate(loss, losses, gradients.tokens, values)
