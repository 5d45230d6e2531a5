"""Checkpoints: everything that a run needs to go on bit for bit, in a folder that is there whole or not at all.

    checkpoints/step-N/
      weights.safetensors     trainable weights by name
      optimizer.safetensors   AdamW's state, "index/moment"
      checkpoint.json         step, policy, configuration, source state, channel health, random states

N counts finished optimiser steps. A folder is written beside its place and renamed, so a reader never sees a torn
one; what a killed process left beside is removed at the next start. No pickle anywhere.

Not covered: frozen weights (the policy is loaded from where it came), sharded weights.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.files import write_folder, write_json

STATE = "checkpoint.json"
WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
_FINISHED = re.compile(r"step-(\d+)")
_TORN = re.compile(r"\.step-\d+\..*")


class Snapshot(msgspec.Struct, frozen=True):
    """What a checkpoint holds beside tensors. `random` has one state per worker."""

    step: int
    policy: str
    config: dict[str, Any]
    source: dict[str, Any]
    health: dict[str, Any]
    random: list[dict[str, Any]]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run, the `keep` last ones."""

    folder: Path
    keep: int

    def latest(self) -> Path | None:
        """The last whole checkpoint, None where there is none."""
        return max(self._finished(), key=_step_of, default=None)

    def sweep(self) -> None:
        """Remove what a killed process left half-written."""
        for path in self.folder.iterdir() if self.folder.exists() else ():
            if _TORN.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)

    def save(
        self, snapshot: Snapshot, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
    ) -> Path:
        """Write `step-N`, then remove the oldest beyond `keep`.

        Raises:
            OutsideFailure: the disk is full or not writable; earlier checkpoints are untouched.
        """
        path = self.folder / f"step-{snapshot.step}"

        def fill(folder: Path) -> None:
            save_file({name: p.detach().contiguous() for name, p in parameters.items()}, folder / WEIGHTS)
            save_file(_moments(optimizer), folder / OPTIMIZER)
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


@torch.no_grad()
def load_tensors(path: Path, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint's weights and optimiser state in place.

    Raises:
        DataError: the files are broken or hold other weights than `parameters`.
    """
    try:
        weights, moments = load_file(path / WEIGHTS), load_file(path / OPTIMIZER)
    except (OSError, SafetensorError) as error:
        raise DataError(f"broken checkpoint: {error}", got=str(path), do="remove this folder") from None
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    stored = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(shapes.keys() | stored.keys()):
        if shapes.get(name) != stored.get(name):
            raise DataError(
                f"checkpoint {path} is of another policy: weight '{name}'",
                got=stored.get(name, "none"),
                expected=shapes.get(name, "none"),
            )
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in moments.items():
        index, moment = key.split("/")
        state.setdefault(int(index), {})[moment] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def refuse_other_run(snapshot: Snapshot, *, policy: str, config: Mapping[str, Any], workers: int, path: Path) -> None:
    """Refuse to resume with anything but the run's own configuration.

    Raises:
        ConfigError: a key differs; it is named with both values.
    """
    was = {"policy": snapshot.policy, "workers": len(snapshot.random), **_flat(snapshot.config)}
    now = {"policy": policy, "workers": workers, **_flat(config)}
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            raise ConfigError(
                f"the run in {path.parent.parent} was started with another '{key}'",
                got=_shown(now, key),
                expected=_shown(was, key),
                do="give the old value, or start in a new run folder",
            )


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state: dict[int, dict[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{k}/{name}": tensor.contiguous() for k, moments in state.items() for name, tensor in moments.items()}


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
