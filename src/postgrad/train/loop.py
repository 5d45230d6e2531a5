"""The loop: estimate a gradient, step the optimiser, log, save. It knows no method.

    loss = Σ_channels weight_c · (Σ over all forests and workers of sum_c) / (Σ over the same of count_c)

so neither `token_budget` nor the number of workers changes a loss. Training starts again from the newest checkpoint
of the run folder, if there is one, and ends with the weights that an uninterrupted run would have had, bit for bit.
Ctrl-C and SIGTERM stop it after a step, with a checkpoint (`stopping`).

Not covered: validation during training (a stage of its own), several policies.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accelerate.utils import set_seed
from torch import nn

from postgrad.core.errors import ConfigError, OutsideFailure, TrainingFault
from postgrad.run.progress import note, track
from postgrad.train.backprop import Backprop
from postgrad.train.buffer import Buffered
from postgrad.train.checkpoint import Checkpoints
from postgrad.train.config import ReuseConfig, TrainConfig
from postgrad.train.contracts import Companion, FitnessSource, GradientCompanion, Run, TrainablePolicy, UnitSource
from postgrad.train.estimator import Estimate, Estimator
from postgrad.train.evolution import Evolution
from postgrad.train.health import NotFinite
from postgrad.train.memory import checkpoint_layers, refuse_with_shards, shard
from postgrad.train.old_policy import preparation
from postgrad.train.optim import build_optimizer, learning_rate
from postgrad.train.restoring import Place, Restorer
from postgrad.train.sharding import Sharding, clip
from postgrad.train.spikes import Spikes
from postgrad.train.stopping import Stop, saying_what_is_saved, stopping
from postgrad.train.sync.choice import sync_settings
from postgrad.train.workers import Workers


@dataclass(frozen=True)
class TrainResult:
    """How a run ended; `tokens`, `seconds` and `losses` (last step, unweighted) are of this process's part of it."""

    steps: int
    tokens: int
    seconds: float
    losses: Mapping[str, float]


def train(
    policy: TrainablePolicy,
    source: UnitSource | FitnessSource,
    config: TrainConfig,
    run: Run,
    *,
    companions: Sequence[Companion] = (),
) -> TrainResult:
    """Train `policy` in place on what `source` yields; resumes from the run folder's newest checkpoint.

    Args:
        policy: its weights that require a gradient are trained.
        source: of units, or of fitness for an evolution strategy.
        config: optimiser, loop, channels.
        run: where checkpoints and metrics go.
        companions: what moves with the weights.

    Raises:
        ConfigError: a channel is unknown or badly configured, has items but no weight, or the run folder holds a run
            with another configuration.
        DeadChannel: a channel with a weight above 0 trains nothing.
        TrainingFault: the policy has nothing to train, or a loss or gradient is not finite.
        OutsideFailure: a checkpoint cannot be written, or the run was asked to stop; the same call resumes.
    """
    loop = _Loop(policy, source, config, run, companions)
    with saying_what_is_saved(loop.saved), stopping(possible=loop.may_stop) as stop:
        return loop.run(stop)


class _Loop:
    """The parts of one run; `run` is the loop."""

    def __init__(
        self,
        policy: TrainablePolicy,
        source: UnitSource | FitnessSource,
        config: TrainConfig,
        run: Run,
        companions: Sequence[Companion],
    ) -> None:
        self._policy, self._config, self._run = policy, config, run
        self._workers = Workers()
        checkpoint_layers(policy.model, config.memory)
        sharding = shard(policy, config, self._workers)
        self._parameters = _trainable(policy)
        self._optimizer = build_optimizer(self._parameters, config.optim)
        self._spikes = Spikes(config.loop.spikes)
        source, self._estimator = _estimator(policy, source, config, self._parameters, self._workers, sharding)
        if isinstance(self._estimator, Backprop) and self._estimator.teachers is not None:
            companions = (*companions, self._estimator.teachers)
        refuse_with_shards(sharding, companions)
        steps, rank = config.loop.steps, self._workers.rank
        self._sync = sync_settings(config.sync).build(self._parameters, steps=steps, rank=rank)
        self._companions = companions = (self._sync, *companions)  # what follows the weights follows the synced ones
        self._restorer = Restorer(
            checkpoints=Checkpoints(run.checkpoints, keep=config.loop.keep),
            policy_name=policy.name,
            config=config.resolved(),
            parameters=self._parameters,
            optimizer=self._optimizer,
            source=source,
            estimator=self._estimator,
            spikes=self._spikes,
            companions=companions,
            sync=self._sync,
            workers=self._workers,
        )
        self._place = Place(0, 0)

    def saved(self) -> Path | None:
        """The newest checkpoint."""
        return self._restorer.checkpoints.latest()

    @property
    def may_stop(self) -> bool:
        """Whether a checkpoint may be written after any step: where none of its readers counts on the regular ones."""
        return self._workers.size == 1 and not (self._sync.together or self._spikes.watching)

    def run(self, stop: Stop) -> TrainResult:
        started, tokens, losses = time.monotonic(), 0, dict[str, float]()
        self._start()
        steps, save_every = self._config.loop.steps, self._config.loop.save_every
        for step in track(self._steps(), "train", total=steps, done=self._place.step):
            begun = time.monotonic()
            estimated = self._estimate()
            if estimated is None:  # a spike: the run went back
                continue
            estimate, norm = estimated
            tokens, losses = tokens + estimate.tokens, dict(estimate.losses)
            numbers = self._update(step) | {"gradient_norm": norm} | self._counted()
            if self._workers.is_first:
                first = {"loss": estimate.loss, "tokens": estimate.tokens}
                self._run.log(step=step, **first, **estimate.metrics, **numbers, seconds=time.monotonic() - begun)
            self._place = Place(step + 1, self._spikes.next_batch(self._place.batch + 1))
            if step + 1 == steps:
                self._estimator.finish()
            stopped = stop.asked  # once: a signal between the two questions must not stop what was not saved
            if step + 1 == steps or (step + 1) % save_every == 0 or stopped:
                self._restorer.save(self._place)
            if stopped and step + 1 < steps:
                raise OutsideFailure(f"stopped after step {step + 1} of {steps}, which is saved")
        self._sync.finish()
        self._policy.model.eval()
        return TrainResult(steps, tokens, time.monotonic() - started, losses)

    def _steps(self) -> Iterator[int]:
        """Steps to do; after a rollback some of them again."""
        while self._place.step < self._config.loop.steps:
            yield self._place.step

    def _start(self) -> None:
        """Restore the newest checkpoint, or seed a new run."""
        restored = self._restorer.resume()
        if restored is None:
            set_seed(self._config.loop.seed + self._workers.rank)
            self._workers.same_weights(self._parameters.values())
            self._sync.begin()
            if self._spikes.watching or self._sync.together:  # there must be something to go back to
                self._restorer.save(self._place)
        else:
            self._place = restored
            if self._workers.is_first:
                note(f"train: going on after step {restored.step} of {self._config.loop.steps}")
        if self._workers.is_first:
            self._run.rewind(self._place.step - 1)  # steps after the checkpoint will be logged again

    def _estimate(self) -> tuple[Estimate, float] | None:
        """Gradients of this step, clipped, and their norm before; None where they were a spike and the run went back.

        Raises:
            TrainingFault: a number is not finite and nobody watches for spikes; no weight has moved.
        """
        limit = self._config.optim.clip_norm
        try:
            estimate = self._estimator.estimate(self._place.batch)
            for companion in self._companions:
                if isinstance(companion, GradientCompanion):
                    companion.before_step(self._place.step)
            norm = clip(list(self._parameters.values()), math.inf if limit is None else limit)
            if not math.isfinite(norm):  # finite at the hidden states, not below: clipped, it would be NaN everywhere
                raise NotFinite(
                    f"step {self._place.step}: the norm of the whole gradient is {norm}; a smaller optim.lr may help"
                )
        except NotFinite as fault:
            if not self._spikes.watching:
                raise
            self._roll_back(str(fault))
            return None
        reason = self._spikes.reason({"loss": estimate.loss, "gradient_norm": norm})
        if reason is not None:
            self._roll_back(reason)
            return None
        return estimate, norm

    def _roll_back(self, why: str) -> None:
        back = self._restorer.newest()
        self._spikes.leave_out(self._place.batch, first=back.batch, why=why)
        note(f"step {self._place.step}, batch {self._place.batch}: {why}; going back to step {back.step}")
        self._restorer.roll_back()
        self._place = Place(back.step, self._spikes.next_batch(back.batch))
        if self._workers.is_first:
            self._run.rewind(back.step - 1)

    def _update(self, step: int) -> dict[str, float]:
        rate = learning_rate(step, steps=self._config.loop.steps, config=self._config.optim)
        self._optimizer.step(rate)
        for companion in self._companions:
            companion.after_step(step)
        return {"lr": rate}

    def _counted(self) -> dict[str, int]:
        return {"rollbacks": self._spikes.rollbacks} if self._spikes.watching else {}


def _estimator(
    policy: TrainablePolicy,
    source: UnitSource | FitnessSource,
    config: TrainConfig,
    parameters: Mapping[str, nn.Parameter],
    workers: Workers,
    sharding: Sharding | None,
) -> tuple[UnitSource | FitnessSource, Estimator]:
    """What estimates gradients, and the source whose state belongs into checkpoints.

    Raises:
        ConfigError: a setting that an evolution strategy cannot serve.
    """
    if isinstance(source, FitnessSource):
        if config.loop.reuse != ReuseConfig() or config.loop.dtype == "bfloat16":
            raise ConfigError("loop.reuse and loop.dtype are for methods with a backward pass", do="leave them out")
        if sharding is not None or config.memory.checkpoint_every:
            raise ConfigError("memory.* saves what a backward pass needs, and this method has none")
        return source, Evolution(policy, source, config.loop, list(parameters.values()), workers)
    if config.loop.reuse != ReuseConfig():
        prepare = preparation(policy, config)
        source = Buffered(source, config.loop.reuse, seed=config.loop.seed, prepare=prepare)
    return source, Backprop(policy, source, config, list(parameters.values()), workers, sharding)


def _trainable(policy: TrainablePolicy) -> dict[str, nn.Parameter]:
    parameters = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
    if not parameters:
        raise TrainingFault(f"policy '{policy.name}' has no weight that requires a gradient; give it an adapter")
    return parameters
