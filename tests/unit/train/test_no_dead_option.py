"""Every number of the training configuration does something, or is refused where it would do nothing.

`CASES` has a setting in which a field's two values must lead to different outcomes: weights, tokens computed,
checkpoints left, or the error that stops the run. A field without a case fails the first test.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import BaseModel

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.run.plugins import resolve
from postgrad.train import OPTIMIZERS
from postgrad.train.config import LoopConfig, OptimConfig, TrainConfig
from postgrad.train.loop import train
from postgrad.train.settings import field_names
from unit.train.tiny_training import MemoryRun, StepSource, TinyPolicy, mixed_units

WATCHING = {"loop.spikes.threshold": 3, "loop.spikes.window": 4, "loop.spikes.before": 0}
WSD = {"optim.schedule": "wsd", "optim.decay_steps": 2}

CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "optim.lr": ({}, 0.02),
    "optim.weight_decay": ({}, 0.5),
    "optim.warmup_steps": ({}, 3),
    "optim.decay_steps": (WSD, 4),
    "optim.clip_norm": ({"optim.name": "sgd"}, 0.01),
    "optim.layer_decay": ({}, 0.5),
    "optim.lora_plus_ratio": ({}, 4.0),
    "loop.steps": ({}, 5),
    "loop.token_budget": ({}, 8),
    "loop.save_every": ({"loop.keep": 5}, 3),
    "loop.keep": ({"loop.save_every": 2}, 3),
    "loop.seed": ({}, 1),
    "loop.patience": ({"nothing_after": 4, "loop.steps": 14}, 2),
    "loop.embedding_noise": ({}, 5.0),
    "loop.reuse.parts": ({}, 2),
    "loop.reuse.passes": ({}, 2),
    "loop.spikes.threshold": (WATCHING | {"spike_at": 6}, 1e9),
    "loop.spikes.window": (WATCHING | {"spike_at": 6}, 8),
    "loop.spikes.before": (WATCHING | {"spike_at": 6}, 1),
    "loop.spikes.limit": (WATCHING | {"spike_at": 6, "loop.spikes.limit": 2, "spikes_last": 3}, 4),
    "adamw.betas": ({}, [0.5, 0.9]),
    "adamw.eps": ({}, 0.1),
    "adamw8bit.betas": ({}, [0.5, 0.9]),
    "adamw8bit.eps": ({}, 0.1),
    "adafactor.beta2_decay": ({}, -0.3),
    "adafactor.eps1": ({}, 0.1),
    "adafactor.eps2": ({"optim.lr": 1.0}, 10.0),
    "adafactor.d": ({}, 100.0),
    "galore.rank": ({"optim.settings.rank": 2}, 4),
    "galore.update_every": ({"optim.settings.rank": 2}, 1),
    "galore.scale": ({"optim.settings.rank": 2}, 1.0),
    "galore.betas": ({"optim.settings.rank": 2}, [0.5, 0.9]),
    "galore.eps": ({"optim.settings.rank": 2}, 0.1),
    "lion.betas": ({}, [0.1, 0.2]),
    "muon.momentum": ({}, 0.5),
    "muon.nesterov": ({}, False),
    "muon.ns_steps": ({}, 2),
    "muon.betas": ({}, [0.5, 0.9]),
    "muon.eps": ({}, 0.1),
    "sgd.momentum": ({}, 0.5),
    "sgd.nesterov": ({"optim.settings.momentum": 0.5}, True),
}


def numeric(Model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Fields that hold a number, sections inside included."""
    for name, field in Model.model_fields.items():
        kinds = [field.annotation, *typing.get_args(field.annotation)]
        inner = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        if inner is not None:
            yield from numeric(inner, f"{prefix}.{name}")
        elif float in kinds or int in kinds or any(a in (float, int) for k in kinds for a in typing.get_args(k)):
            yield f"{prefix}.{name}"


def every_number() -> set[str]:
    own = {f"{name}.{f}" for name in OPTIMIZERS for f in field_names(resolve("optimizer", name, OPTIMIZERS))}
    return {*numeric(OptimConfig, "optim"), *numeric(LoopConfig, "loop"), *own}


def test_every_number_has_a_case():
    assert set(CASES) == every_number()


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for path, value in flat.items():
        *sections, name = path.split(".")
        place = data
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return data


def outcome(given: dict[str, Any], folder: Path) -> tuple[Any, ...]:
    """Eight steps of cross-entropy; `spike_at`, `spikes_last`, `nothing_after` are the source's."""
    flat = {"optim.lr": 0.01, "loop.steps": 8, "loop.save_every": 4, "loop.keep": 1} | given
    spike, last, nothing = (flat.pop(key, None) for key in ("spike_at", "spikes_last", "nothing_after"))

    def units(step: int) -> list[Unit]:
        if nothing is not None and step >= nothing:
            return []
        scale = 1e4 if spike is not None and spike <= step < spike + (last or 1) else 1.0
        drawn = mixed_units(step, kinds=("cross_entropy",))
        return [replace(u, items=tuple(replace(i, weight=i.weight * scale) for i in u.items)) for u in drawn]

    policy, run = TinyPolicy(dropout=0.1), MemoryRun(folder)
    try:
        settings = TrainConfig.model_validate(nested(flat) | {"channels": {"cross_entropy": {}}})
        train(policy, StepSource(units), settings, run)
        error = None
    except (ConfigError, TrainingFault) as fault:
        error = str(fault)
    weights = torch.cat([p.flatten() for p in policy.weights().values()]).numpy().tobytes()
    left = sorted(path.name for path in run.checkpoints.iterdir()) if run.checkpoints.exists() else []
    return weights, left, [line["tokens"] for line in run.lines], error


@pytest.mark.parametrize("path", sorted(CASES))
def test_a_number_changes_what_happens(path: str, tmp_path: Path):
    given, value = CASES[path]
    section, _, name = path.partition(".")
    if section in OPTIMIZERS:
        given, path = given | {"optim.name": section}, f"optim.settings.{name}"
    before = outcome(given, tmp_path / "before")
    assert before != outcome(given | {path: value}, tmp_path / "after")
    assert before == outcome(given, tmp_path / "again")
