"""The loop with a real policy: a Llama-type model with a LoRA adapter, whose reference is the adapter switched off."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from postgrad.core.annotation import PreferenceItem, Unit
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.train.loop import train
from unit.train.tiny_training import ALL_CHANNELS, MemoryRun, StepSource, config, mixed_units


class Stop(Exception):
    pass


def adapted() -> Policy:
    return load_policy("tiny-random", adapter=AdapterConfig(rank=4, dropout=0.1))


def trained(folder: Path, *, stop: int = -1) -> tuple[Policy, MemoryRun]:
    def units(step: int) -> list[Unit]:
        if step == stop:
            raise Stop
        return mixed_units(step)

    policy, run = adapted(), MemoryRun(folder)
    train(policy, StepSource(units), config(steps=4, save_every=2), run)
    return policy, run


def trainable(policy: Policy) -> dict[str, torch.Tensor]:
    return {name: p.detach() for name, p in policy.model.named_parameters() if p.requires_grad}


def test_adapter_trains_and_the_base_stays(tmp_path: Path):
    before = {name: p.detach().clone() for name, p in adapted().model.named_parameters()}
    policy, run = trained(tmp_path)
    # B is 0 at the start, so policy = reference and every pair costs its weight times ln 2.
    weights = [unit.items[0].weight for unit in mixed_units(0) if isinstance(unit.items[0], PreferenceItem)]
    assert run.lines[0]["loss/preference"] == pytest.approx(math.log(2) * sum(weights) / len(weights), rel=1e-6)
    assert run.lines[0]["preference/margin"] == 0
    for name, parameter in policy.model.named_parameters():
        assert torch.equal(before[name], parameter) != ("lora_" in name), name
    policy.save(tmp_path / "artifact")
    assert (tmp_path / "artifact/adapter_model.safetensors").exists()


def test_resume_is_bit_exact(tmp_path: Path):
    whole, _ = trained(tmp_path / "whole")
    with pytest.raises(Stop):
        trained(tmp_path / "broken", stop=3)
    resumed, _ = trained(tmp_path / "broken")
    expected = trainable(whole)
    assert trainable(resumed).keys() == expected.keys()
    assert all(torch.equal(weight, expected[name]) for name, weight in trainable(resumed).items())


def test_full_fine_tuning_with_a_frozen_reference(tmp_path: Path):
    """Tied embeddings get gradients from both stages of the backward pass."""
    policy = load_policy("tiny-random")
    policy.freeze_reference()
    before = policy.network.get_input_embeddings().weight.detach().clone()
    run = MemoryRun(tmp_path)
    train(policy, StepSource(), config(steps=2, channels=ALL_CHANNELS), run)
    assert run.lines[0]["policy_gradient/reference_kl"] == pytest.approx(0, abs=1e-9)
    assert run.lines[1]["policy_gradient/reference_kl"] > 0
    assert not torch.equal(before, policy.network.get_input_embeddings().weight)
