"""Checkpoints: everything that a run needs to go on bit for bit, in a folder that is there whole or not at all.

    checkpoints/step-N/
      weights.safetensors     trainable weights by name
      optimizer.safetensors   the optimiser's tensors, "weight/path"
      companions.safetensors  tensors of what moves with the weights, "companion/name"
      checkpoint.json         step, batch, policy, configuration, states of source, estimator, spikes and companions,
                              numbers of the optimiser, random states, torch's version and threads

N counts finished optimiser steps. A folder is written beside its place and renamed, so a reader never sees a torn
one; what a killed process left beside is removed at the next start. No pickle anywhere.

Weights that are split over workers are written as wholes.

Not covered: frozen weights (the policy is loaded from where it came).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.files import write_folder, write_json
from postgrad.train.sharding import put

STATE = "checkpoint.json"
WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
COMPANIONS = "companions.safetensors"
MAY_CHANGE = {"sync.address", "sync.timeout"}
"""Keys of the configuration that say where a run is, not what: it may go on elsewhere."""
_FINISHED = re.compile(r"step-(\d+)")
_TORN = re.compile(r"\.step-\d+\..*")


class Snapshot(msgspec.Struct, frozen=True):
    """What a checkpoint holds beside tensors.

    `batch` is the source's next one, which runs ahead of `step` where batches were left out; `random` has one state a
    worker; `optimizer` the numbers that the optimiser keeps; `machine` what bit-equality also hangs on.
    """

    step: int
    batch: int
    policy: str
    config: dict[str, Any]
    source: dict[str, Any]
    estimator: dict[str, Any]
    spikes: dict[str, Any]
    companions: dict[str, dict[str, Any]]
    optimizer: dict[str, bool | int | float]
    random: list[dict[str, Any]]
    machine: dict[str, Any]


@dataclass(frozen=True)
class Tensors:
    """What a checkpoint holds as tensors, by name."""

    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    companions: Mapping[str, Tensor] = field(default_factory=dict)

    def of_companion(self, name: str) -> dict[str, Tensor]:
        """Those of one companion, by its own names."""
        start = f"{name}/"
        return {key.removeprefix(start): tensor for key, tensor in self.companions.items() if key.startswith(start)}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run, the `keep` last ones."""

    folder: Path
    keep: int

    def latest(self) -> Path | None:
        """The last whole checkpoint, None where there is none."""
        return max(self._finished(), key=_step_of, default=None)

    def steps(self) -> list[int]:
        """Of which steps there is a checkpoint."""
        return sorted(map(_step_of, self._finished()))

    def forget_after(self, step: int | None) -> None:
        """Remove the checkpoints of later steps than `step`; all for None."""
        for path in self._finished():
            if step is None or _step_of(path) > step:
                shutil.rmtree(path, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what a killed process left half-written."""
        for path in self.folder.iterdir() if self.folder.exists() else ():
            if _TORN.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)

    def save(self, snapshot: Snapshot, tensors: Tensors) -> Path:
        """Write `step-N`, then remove the oldest beyond `keep`.

        Raises:
            OutsideFailure: the disk is full or not writable; earlier checkpoints are untouched.
        """
        path = self.folder / f"step-{snapshot.step}"

        def fill(folder: Path) -> None:
            save_file({name: w.detach().contiguous() for name, w in tensors.weights.items()}, folder / WEIGHTS)
            save_file(_apart(tensors.optimizer), folder / OPTIMIZER)
            save_file(_apart(tensors.companions), folder / COMPANIONS)
            write_json(folder / STATE, msgspec.to_builtins(snapshot))

        try:
            write_folder(path, fill)
        except SafetensorError as error:  # its own I/O errors are no OSError
            raise OutsideFailure(f"cannot write {path}: {error}") from error
        for old in sorted(self._finished(), key=_step_of)[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)
        return path

    def _finished(self) -> list[Path]:
        if not self.folder.exists():
            return []
        return [path for path in self.folder.iterdir() if _FINISHED.fullmatch(path.name) and path.is_dir()]


def read_snapshot(path: Path) -> Snapshot:
    """Read what `path` holds beside tensors.

    Raises:
        DataError: it is broken.
    """
    try:
        return msgspec.json.decode((path / STATE).read_bytes(), type=Snapshot)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"broken checkpoint: {error}", got=str(path), do="remove this folder") from None


def read_tensors(path: Path) -> Tensors:
    """Read what `path` holds as tensors.

    Raises:
        DataError: it is broken.
    """
    try:
        return Tensors(*(load_file(path / name) for name in (WEIGHTS, OPTIMIZER, COMPANIONS)))
    except (OSError, SafetensorError) as error:
        raise DataError(f"broken checkpoint: {error}", got=str(path), do="remove this folder") from None


def refuse_other_weights(path: Path, stored: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuse a checkpoint of another policy.

    Raises:
        DataError: a weight is missing, extra, or of another shape.
    """
    ours = {name: tuple(p.shape) for name, p in parameters.items()}
    theirs = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            raise DataError(
                f"checkpoint {path} is of another policy: weight '{name}'",
                got=theirs.get(name, "none"),
                expected=ours.get(name, "none"),
            )


@torch.no_grad()
def put_weights(stored: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]) -> None:
    """Set `parameters` to what is stored."""
    for name, parameter in parameters.items():
        put(parameter, stored[name])


def refuse_other_run(snapshot: Snapshot, *, policy: str, config: Mapping[str, Any], workers: int, path: Path) -> None:
    """Refuse to resume with anything but the run's own configuration.

    Raises:
        ConfigError: a key differs; it is named with both values.
    """
    was = {"policy": snapshot.policy, "workers": len(snapshot.random), **_flat(snapshot.config)}
    now = {"policy": policy, "workers": workers, **_flat(config)}
    for key in sorted((was.keys() | now.keys()) - MAY_CHANGE):
        if was.get(key) != now.get(key):
            raise ConfigError(
                f"the run in {path.parent.parent} was started with another '{key}'",
                got=_shown(now, key),
                expected=_shown(was, key),
                do="give the old value, or start in a new run folder",
            )


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Own memory for each: safetensors refuses tensors that share theirs, as a lookup table of many does."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        here = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.detach().clone() if here in seen else tensor.detach().contiguous()
        seen.add(here)
    return apart


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = list(value) if isinstance(value, tuple) else value
    return flat


def _shown(flat: Mapping[str, Any], key: str) -> Any:
    return "nothing" if key not in flat else "null" if flat[key] is None else flat[key]


def _step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))
