"""The loop: ask the source for units, sum the channels' gradients, step AdamW, log, save. It knows no method.

    loss = Σ_channels weight_c · (Σ over all forests and workers of sum_c) / (Σ over the same of count_c)

so neither `token_budget` nor the number of workers changes a loss. Training starts again from the newest checkpoint
of the run folder, if there is one, and ends with the weights that an uninterrupted run would have had, bit for bit.

Not covered: sharded models, validation during training (a stage of its own), several policies.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from accelerate.utils import set_seed
from torch import nn
from torch.nn.utils import clip_grad_norm_

from postgrad.core.errors import TrainingFault
from postgrad.run.progress import track
from postgrad.train.channels import build_channels, refuse_unclaimed
from postgrad.train.checkpoint import Checkpoints, Snapshot, load_tensors, read_snapshot, refuse_other_run
from postgrad.train.config import TrainConfig
from postgrad.train.contracts import Run, TrainablePolicy, UnitSource
from postgrad.train.health import ChannelHealth
from postgrad.train.optim import build_optimizer, learning_rate, set_learning_rate
from postgrad.train.randomness import random_state, restore_random_state
from postgrad.train.step import Gradients, StepRunner
from postgrad.train.workers import Workers


@dataclass(frozen=True)
class TrainResult:
    """How a run ended; `tokens`, `seconds` and `losses` (last step, unweighted) are of this process's part of it."""

    steps: int
    tokens: int
    seconds: float
    losses: Mapping[str, float]


def train(policy: TrainablePolicy, source: UnitSource, config: TrainConfig, run: Run) -> TrainResult:
    """Train `policy` in place on what `source` yields; resumes from the run folder's newest checkpoint.

    Raises:
        ConfigError: a channel is unknown or badly configured, has items but no weight, or the run folder holds a run
            with another configuration.
        DeadChannel: a channel with a weight above 0 trains nothing.
        TrainingFault: the policy has nothing to train, or a loss or gradient is not finite.
        OutsideFailure: a checkpoint cannot be written; the earlier ones are intact and the same call resumes.
    """
    return _Loop(policy, source, config, run).run()


class _Loop:
    """The parts of one run; `run` is the loop."""

    def __init__(self, policy: TrainablePolicy, source: UnitSource, config: TrainConfig, run: Run) -> None:
        self._policy, self._source, self._config, self._run = policy, source, config, run
        self._channels, self._claimed = build_channels(config.channels)
        self._parameters = _trainable(policy)
        self._optimizer = build_optimizer(self._parameters.values(), config.optim)
        advice = {channel.name: channel.objective.advice for channel in self._channels}
        self._health = ChannelHealth(advice, patience=config.loop.patience)
        self._workers = Workers()
        self._checkpoints = Checkpoints(run.checkpoints, keep=config.loop.keep)
        self._runner = StepRunner(
            policy=policy,
            channels=self._channels,
            parameters=list(self._parameters.values()),
            workers=self._workers,
            token_budget=config.loop.token_budget,
            autocast=_autocast(config.loop.dtype, next(iter(self._parameters.values())).device),
        )

    def run(self) -> TrainResult:
        started, tokens, losses = time.monotonic(), 0, dict[str, float]()
        first, steps = self._start(), self._config.loop.steps
        for step in track(range(first, steps), "train", total=steps - first):
            begun = time.monotonic()
            gradients = self._gradients(step)
            numbers = self._update(step) | {"seconds": time.monotonic() - begun}
            tokens += gradients.tokens
            losses = {channel.name: gradients.loss(channel.name) for channel in self._channels}
            if self._workers.is_first:
                self._run.log(step=step, **self._metrics(gradients), **numbers)
            if step + 1 == steps:
                self._health.finish()
            if step + 1 == steps or (step + 1) % self._config.loop.save_every == 0:
                self._save(step + 1)
        self._policy.model.eval()
        return TrainResult(steps, tokens, time.monotonic() - started, losses)

    def _start(self) -> int:
        """Restore the newest checkpoint, or seed a new run; the first step to do."""
        if self._workers.is_first:
            self._checkpoints.sweep()
        self._workers.wait()
        path = self._checkpoints.latest()
        if path is None:
            set_seed(self._config.loop.seed + self._workers.rank)
            self._workers.same_weights(self._parameters.values())
            first = 0
        else:
            snapshot = read_snapshot(path)
            config, workers = self._config.resolved(), self._workers.size
            refuse_other_run(snapshot, policy=self._policy.name, config=config, workers=workers, path=path)
            load_tensors(path, self._parameters, self._optimizer)
            self._source.restore(snapshot.source)
            self._health.restore(snapshot.health)
            restore_random_state(snapshot.random[self._workers.rank])
            first = snapshot.step
        if self._workers.is_first:
            self._run.rewind(first - 1)  # steps after the checkpoint will be logged again
        return first

    def _gradients(self, step: int) -> Gradients:
        """Units of `step` and their gradients, checked."""
        self._policy.model.eval()  # the source may sample from the policy
        units = self._workers.same(list(self._source.units(step)) if self._workers.is_first else None)
        refuse_unclaimed(units, self._claimed)
        self._policy.model.train()
        gradients = self._runner.gradients(units, by_channel=step == 0)
        if gradients.weight_norms is not None:
            self._health.require_reach(gradients.norms, gradients.weight_norms)
        self._health.observe(gradients.counts, gradients.weight_norms or gradients.norms)
        return gradients

    def _update(self, step: int) -> dict[str, float]:
        """Clip and step.

        Raises:
            TrainingFault: a gradient is not finite; no weight has moved.
        """
        optim, steps = self._config.optim, self._config.loop.steps
        limit = math.inf if optim.clip_norm is None else optim.clip_norm
        norm = float(clip_grad_norm_(self._parameters.values(), limit))
        if not math.isfinite(norm):  # finite at the hidden states, not below them: clipped, it would be NaN everywhere
            raise TrainingFault(f"step {step}: the norm of the whole gradient is {norm}; a smaller optim.lr may help")
        rate = learning_rate(step, steps=steps, config=optim)
        set_learning_rate(self._optimizer, rate)
        self._optimizer.step()
        return {"lr": rate, "gradient_norm": norm}

    def _metrics(self, gradients: Gradients) -> dict[str, float]:
        """What metrics.jsonl gets of a step's gradients."""
        norms = gradients.norms
        whole = sum(norms.values()) or 1.0
        values: dict[str, float] = {"loss": 0.0, "tokens": gradients.tokens}
        for channel in self._channels:
            name, tally = channel.name, gradients.tallies[channel.name]
            values["loss"] += channel.weight * gradients.loss(name)
            values[f"loss/{name}"] = gradients.loss(name)
            values[f"count/{name}"] = gradients.counts[name]
            values[f"gradient_share/{name}"] = norms[name] / whole
            values |= {f"{name}/{metric}": mean.total / mean.n for metric, mean in tally.metrics.items() if mean.n}
        for name, norm in (gradients.weight_norms or {}).items():
            values[f"weight_gradient_norm/{name}"] = norm
        return values

    def _save(self, step: int) -> None:
        states = self._workers.gathered(random_state())
        if self._workers.is_first:
            snapshot = Snapshot(
                step=step,
                policy=self._policy.name,
                config=self._config.resolved(),
                source=self._source.state(),
                health=self._health.state(),
                random=states,
            )
            self._checkpoints.save(snapshot, self._parameters, self._optimizer)
        self._workers.wait()


def _trainable(policy: TrainablePolicy) -> dict[str, nn.Parameter]:
    parameters = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
    if not parameters:
        raise TrainingFault(f"policy '{policy.name}' has no weight that requires a gradient; give it an adapter")
    return parameters


def _autocast(dtype: str, device: torch.device) -> bool:
    """Whether to run in bfloat16. `auto` never asks a clock: the answer must be the same when a run resumes.

    On CPUs it is fp32: even with AMX, where single products are four times faster in bfloat16, whole steps were not.
    """
    if dtype == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return dtype == "bfloat16"
