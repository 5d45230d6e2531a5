"""Weights split over two gloo workers (FSDP2): the losses, norms and weights that one process has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from postgrad.core.errors import ConfigError
from postgrad.run.rundir import RunDir
from postgrad.train.config import TrainConfig
from postgrad.train.sharding import _layers, clip
from unit.train import sharded

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def launched(folder: Path, spec: dict[str, Any], *start: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    command = [sys.executable, *start, sharded.__file__, str(folder), json.dumps(spec)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)


def weights(folder: Path, step: int) -> dict[str, Tensor]:
    return load_file(folder / f"checkpoints/step-{step}" / "weights.safetensors")


def lines(folder: Path) -> list[dict[str, float]]:
    kept = ("loss", "gradient_norm", "count", "weight_gradient_norm")
    return [{k: v for k, v in line.items() if k.startswith(kept)} for line in RunDir(folder).metrics()]


def assert_equal_runs(one: Path, two: Path, *, steps: int) -> None:
    assert len(lines(one)) == len(lines(two)) == steps
    for alone, split in zip(lines(one), lines(two), strict=True):
        assert split == pytest.approx(alone, rel=2e-4, abs=1e-6)
    ours, theirs = weights(one, steps), weights(two, steps)
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        # AdamW turns a gradient that is 0 but for rounding into a step of full size, so the bound is some steps' size.
        assert float((weight - theirs[name]).norm()) <= 2e-3 * float(weight.norm()), name


@pytest.mark.slow
@pytest.mark.parametrize("spec", [{"adapter": 4}, {"samples": True, "memory": {"checkpoint_every": 1}}])
def test_split_weights_train_what_whole_ones_do(spec: dict[str, Any], tmp_path: Path):
    """An adapter; all weights with tied embeddings, layers computed again and a source that samples on one worker.

    Both channels, the reference pass, unequally many forests, an idle worker at step 1, clipping at every step.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    alone = launched(one, spec)
    assert alone.returncode == 0, alone.stderr[-2000:]
    split = launched(two, spec | {"memory": spec.get("memory", {}) | {"shard": True}}, *TORCHRUN)
    assert split.returncode == 0, split.stderr[-3000:]
    assert_equal_runs(one, two, steps=4)


@pytest.mark.slow
def test_split_weights_resume_bit_for_bit(tmp_path: Path):
    """Cut off at step 3, gone on from the checkpoint after step 2: the optimiser's shares come back to their places."""
    spec = {"adapter": 4, "memory": {"shard": True}}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert launched(whole, spec, *TORCHRUN).returncode == 0
    assert launched(broken, spec | {"stop": 3}, *TORCHRUN).returncode != 0
    assert not (broken / "checkpoints/step-4").exists()
    resumed = launched(broken, spec, *TORCHRUN)
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    ours, theirs = weights(whole, 4), weights(broken, 4)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert lines(whole) == lines(broken)


def test_the_layers_are_the_largest_list():
    model = nn.Module()
    model.experts = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    model.body = nn.Module()
    model.body.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    parent, layers = _layers(model)
    assert parent is model.body
    assert layers == list(model.body.layers)
    model.body.layers[1].weight = model.body.layers[0].weight
    with pytest.raises(ConfigError, match="a weight is shared by several layers; got 'weight'"):
        _layers(model)
    with pytest.raises(ConfigError, match="a model with a list of layers; got 'Linear'"):
        _layers(nn.Linear(1, 1))


def test_clipping_by_hand():
    """Gradients (3, 0) and (4): norm 5, clipped to 1 they are (0.6, 0) and (0.8)."""
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    assert clip([a, b], 1.0) == pytest.approx(5.0)
    torch.testing.assert_close(a.grad, torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(b.grad, torch.tensor([0.8]))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"optim": {"name": "adafactor"}}, "memory.shard is for optim.name adamw or sgd or lion, got adafactor"),
        ({"sync": {"name": "diloco", "replicas": 1}}, "memory.shard and sync do not go together"),
        ({"memory": {"offload": True}}, "memory.offload keeps the inputs of recomputed layers"),
    ],
)
def test_what_cannot_be_split_is_refused(sections: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        TrainConfig.model_validate({"memory": {"shard": True}, "channels": {"cross_entropy": {}}} | sections)
