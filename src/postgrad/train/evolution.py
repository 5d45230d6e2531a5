"""Evolution strategy: a gradient from fitness alone, by antithetic perturbations (arXiv:1703.03864).

    g = − 1/(K σ) Σ_k (s_k⁺ − s_k⁻) / 2 · ε_k,   s± the shaped fitness of the weights at w ± σ ε_k

so plain SGD at rate lr does w += lr/(K σ) Σ (s⁺ − s⁻)/2 · ε; any other optimiser may take g as well. ε_k is drawn anew
from its seed, a function of the run's seed, the batch and k, whenever it is needed: no noise is stored, and workers
exchange two numbers a pair. All perturbations of a step are asked the same question. The weights are put back from a
copy, not by subtracting the noise again, so that they end exactly as they were.

A pair of which one half could not be measured (NaN) is left out, and K counts those that are left.

Not covered: noise of low rank, adaptation of σ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from postgrad.train.config import LoopConfig
from postgrad.train.contracts import FitnessSource, TrainablePolicy
from postgrad.train.estimator import Estimate
from postgrad.train.health import ChannelHealth, NotFinite
from postgrad.train.workers import Workers

NAME = "fitness"
ADVICE = (
    "all perturbations had the same fitness: a larger sigma, more pairs, or tasks that are neither all won nor lost"
)


class Evolution:
    """An `Estimator` over a source of fitness."""

    def __init__(
        self,
        policy: TrainablePolicy,
        source: FitnessSource,
        loop: LoopConfig,
        parameters: Sequence[nn.Parameter],
        workers: Workers,
    ) -> None:
        self._policy, self._source, self._parameters, self._workers = policy, source, parameters, workers
        self._seed = loop.seed
        self._health = ChannelHealth({NAME: ADVICE}, patience=loop.patience)

    @torch.no_grad()
    def estimate(self, batch: int) -> Estimate:
        """Measure every perturbation and add the noise up by what it was worth.

        Raises:
            NotFinite: no pair could be measured.
        """
        self._policy.model.eval()
        measured = self._measured(batch)
        if not measured:
            raise NotFinite(f"batch {batch}: the fitness of no perturbation could be measured")
        fitness = [value for _, pair in measured for value in pair]
        shaped = self._source.evolution.shaped(fitness)
        worth = {k: (shaped[2 * i] - shaped[2 * i + 1]) / 2 for i, (k, _) in enumerate(measured)}
        self._fill(batch, worth)
        norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in self._parameters if p.grad is not None))
        self._health.observe({NAME: len(worth)}, {NAME: norm})
        mean = sum(fitness) / len(fitness)
        metrics = {"fitness": mean, "fitness/best": max(fitness), "fitness/worst": min(fitness), "pairs": len(worth)}
        return Estimate(-mean, {NAME: -mean}, 0, metrics)

    def finish(self) -> None:
        """Some step must have told perturbations apart."""
        self._health.finish()

    def state(self) -> dict[str, Any]:
        """Its health."""
        return self._health.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        self._health.restore(state)

    def _measured(self, batch: int) -> list[tuple[int, tuple[float, float]]]:
        """Number and fitness of every pair that could be measured, by number; each worker measures its share."""
        mine = range(self._workers.rank, self._source.evolution.pairs, self._workers.size)
        base = [parameter.detach().clone() for parameter in self._parameters]
        own = [(k, (self._fitness(batch, k, 1, base), self._fitness(batch, k, -1, base))) for k in mine]
        for parameter, weight in zip(self._parameters, base, strict=True):
            parameter.copy_(weight)
        pairs = sorted(pair for theirs in self._workers.gathered(own) for pair in theirs)
        return [(k, pair) for k, pair in pairs if all(math.isfinite(value) for value in pair)]

    def _fitness(self, batch: int, k: int, sign: int, base: Sequence[Tensor]) -> float:
        step = sign * self._source.evolution.sigma
        for parameter, weight, noise in zip(self._parameters, base, self._noise(batch, k), strict=True):
            parameter.copy_(weight + step * noise)
        return float(self._source.fitness(batch))

    def _fill(self, batch: int, worth: Mapping[int, float]) -> None:
        for parameter in self._parameters:
            parameter.grad = torch.zeros_like(parameter)
        for k, value in worth.items():
            factor = -value / (len(worth) * self._source.evolution.sigma)
            if factor:
                for parameter, noise in zip(self._parameters, self._noise(batch, k), strict=True):
                    assert parameter.grad is not None
                    parameter.grad += factor * noise

    def _noise(self, batch: int, k: int) -> Iterator[Tensor]:
        """ε_k, weight by weight; drawn on the CPU, so that every machine draws the same."""
        word = np.random.SeedSequence([self._seed, batch, k]).generate_state(1, np.uint64)[0]
        generator = torch.Generator().manual_seed(int(word) >> 1)
        for parameter in self._parameters:
            drawn = torch.randn(parameter.shape, generator=generator)
            yield drawn.to(parameter.device, parameter.dtype)
