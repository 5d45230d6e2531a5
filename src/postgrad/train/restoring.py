"""Saving and restoring a run: which part's state goes where in a checkpoint, at resume and at a rollback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from postgrad.core.errors import DataError
from postgrad.run.progress import note
from postgrad.train.checkpoint import (
    Checkpoints,
    Snapshot,
    Tensors,
    put_weights,
    read_snapshot,
    read_tensors,
    refuse_other_run,
    refuse_other_weights,
)
from postgrad.train.contracts import Companion, Source, Sync
from postgrad.train.estimator import Estimator
from postgrad.train.optim import Optimizer
from postgrad.train.optimizer_state import OptimizerState, read_state, write_state
from postgrad.train.randomness import machine, random_state, restore_random_state
from postgrad.train.sharding import whole
from postgrad.train.spikes import Spikes
from postgrad.train.workers import Workers


@dataclass(frozen=True)
class Place:
    """How far a run is: optimiser steps taken, and the source's next batch."""

    step: int
    batch: int


@dataclass(frozen=True)
class Restorer:
    """The parts of a run that have state."""

    checkpoints: Checkpoints
    policy_name: str
    config: Mapping[str, Any]
    parameters: Mapping[str, nn.Parameter]
    optimizer: Optimizer
    source: Source
    estimator: Estimator
    spikes: Spikes
    companions: Sequence[Companion]
    sync: Sync
    workers: Workers

    def resume(self) -> Place | None:
        """Restore the newest checkpoint, with replicas the newest that all of them have; None where there is none.

        Raises:
            ConfigError: it is of a run with another configuration.
            DataError: it is broken, or of another policy.
        """
        if self.workers.is_first:
            self.checkpoints.sweep()
        agreed = self.sync.agree(self.workers.same(self.checkpoints.steps()))
        if self.workers.is_first:
            self.checkpoints.forget_after(agreed)
        self.workers.wait()
        path = self.checkpoints.latest()
        if path is None:
            return None
        snapshot = read_snapshot(path)
        refuse_other_run(snapshot, policy=self.policy_name, config=self.config, workers=self.workers.size, path=path)
        if self.workers.is_first:
            _note_other_machine(snapshot.machine)
        self._restore(path, snapshot)
        self.spikes.restore(snapshot.spikes)
        return Place(snapshot.step, snapshot.batch)

    def newest(self) -> Place:
        """Where a rollback goes."""
        _, snapshot = self._newest()
        return Place(snapshot.step, snapshot.batch)

    def roll_back(self) -> None:
        """Restore the newest checkpoint; what was learnt about spikes stays."""
        path, snapshot = self._newest()
        self._restore(path, snapshot)
        self.spikes.restore(snapshot.spikes, rolling_back=True)

    def save(self, place: Place) -> None:
        """Write a checkpoint; the first worker does, with the random states of all."""
        self.sync.before_save(place.step)
        states = self.workers.gathered(random_state())
        weights = {name: whole(parameter) for name, parameter in self.parameters.items()}
        optimizer = read_state(self.optimizer, self.parameters)
        if self.workers.is_first:
            snapshot = Snapshot(
                step=place.step,
                batch=place.batch,
                policy=self.policy_name,
                config=dict(self.config),
                source=self.source.state(),
                estimator=self.estimator.state(),
                spikes=self.spikes.state(),
                companions={companion.name: companion.state() for companion in self.companions},
                optimizer=dict(optimizer.numbers),
                random=states,
                machine=machine(),
            )
            self.checkpoints.save(snapshot, Tensors(weights, optimizer.tensors, self._of_companions()))
        self.workers.wait()

    def _newest(self) -> tuple[Path, Snapshot]:
        path = self.checkpoints.latest()
        assert path is not None, "a run that watches for spikes saves before its first step"
        return path, read_snapshot(path)

    def _restore(self, path: Path, snapshot: Snapshot) -> None:
        """The random states come last: what is restored before them may draw."""
        tensors = read_tensors(path)
        refuse_other_weights(path, tensors.weights, self.parameters)
        write_state(self.optimizer, self.parameters, OptimizerState(tensors.optimizer, snapshot.optimizer))
        put_weights(tensors.weights, self.parameters)
        self.source.restore(snapshot.source)
        self.estimator.restore(snapshot.estimator)
        for companion in self.companions:
            if companion.name not in snapshot.companions:
                raise DataError(
                    f"checkpoint {path} knows nothing of '{companion.name}'", do="start in a new run folder"
                )
            companion.restore(tensors.of_companion(companion.name), snapshot.companions[companion.name])
        restore_random_state(snapshot.random[self.workers.rank])

    def _of_companions(self) -> dict[str, Tensor]:
        return {f"{c.name}/{name}": tensor for c in self.companions for name, tensor in c.tensors().items()}


def _note_other_machine(was: Mapping[str, Any]) -> None:
    """Say what may change the last bits of a resumed run: that is no error, but nobody should have to guess."""
    for name, now in machine().items():
        if was.get(name) != now:
            note(f"this run was saved with {name} {was.get(name)} and goes on with {now}: equal up to rounding only")
