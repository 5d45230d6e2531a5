"""What saves memory changes no bit of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from postgrad.core.errors import ConfigError
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import load_policy
from postgrad.train.config import TrainConfig
from postgrad.train.loop import train
from unit.train import sharded
from unit.train.tiny_training import MemoryRun, StepSource, TinyPolicy


def trained(
    folder: Path, memory: dict[str, Any], adapter: AdapterConfig | None = None
) -> tuple[dict[str, Tensor], int]:
    """Weights after three steps, and how often a layer ran forward."""
    policy = load_policy("tiny-random", adapter=adapter)
    if adapter is None:
        policy.freeze_reference()
    passes = [0]
    layer = policy.network.base_model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))  # recomputing stops before its end
    torch.manual_seed(0)
    channels = {"cross_entropy": {}, "preference": {"weight": 0.5}}
    sections = {"loop": {"steps": 3, "token_budget": 30}, "channels": channels, "memory": memory}
    train(policy, StepSource(sharded.units), TrainConfig.model_validate(sections), MemoryRun(folder))
    return {name: p.detach().clone() for name, p in policy.model.named_parameters()}, passes[0]


@pytest.mark.parametrize("adapter", [None, AdapterConfig(rank=4, dropout=0.2)], ids=["all weights", "adapter, dropout"])
def test_layers_computed_again_give_the_same_bits(adapter: AdapterConfig | None, tmp_path: Path):
    """Also the same dropout; the policy's passes run a layer twice, the reference's once."""
    plain, passes = trained(tmp_path / "plain", {}, adapter)
    again, more = trained(tmp_path / "again", {"checkpoint_every": 1}, adapter)
    assert more > passes
    assert all(torch.equal(plain[name], again[name]) for name in plain)
    second, some = trained(tmp_path / "second", {"checkpoint_every": 2}, adapter)
    assert all(torch.equal(plain[name], second[name]) for name in plain)
    assert passes <= some <= more


def test_what_cannot_be_saved_is_refused(tmp_path: Path):
    sections = {"loop": {"steps": 1}, "channels": {"cross_entropy": {}}, "memory": {"checkpoint_every": 1}}
    with pytest.raises(ConfigError, match="this model cannot compute layers again; got 'TinyModel'"):
        train(TinyPolicy(), StepSource(), TrainConfig.model_validate(sections), MemoryRun(tmp_path))
    with pytest.raises(ConfigError, match="moves to host memory, and the model is there already"):
        trained(tmp_path, {"checkpoint_every": 1, "offload": True})
