"""The loop with a real policy: a Llama-type model with a LoRA adapter, whose reference is the adapter switched off."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from postgrad.core.annotation import PreferenceItem, Unit
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.train import OPTIMIZERS
from postgrad.train.channels import build_channels
from postgrad.train.loop import train
from postgrad.train.noise import EmbeddingNoise, NoisyPolicy
from postgrad.train.step import StepRunner
from postgrad.train.workers import Workers
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


def noisy_gradients(layout: str) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Gradients of one step of cross-entropy under noise; `layout` overrides what the self-check found."""
    policy = load_policy("tiny-random")
    policy._layout = replace(policy._layout, kind=layout)
    units = mixed_units(3, each=6, kinds=("cross_entropy",))
    noise = EmbeddingNoise(policy.model, alpha=20.0, seed=0)
    noise.begin(0, units)
    policy.model.train()
    runner = StepRunner(
        policy=NoisyPolicy(policy, noise),
        channels=build_channels({"cross_entropy": {}})[0],
        parameters=list(policy.model.parameters()),
        workers=Workers(),
        token_budget=10_000,
        autocast=False,
    )
    step = runner.gradients(units, by_channel=False)
    return [p.grad for p in policy.model.parameters() if p.grad is not None], torch.tensor(step.loss("cross_entropy"))


def test_noise_on_embeddings_is_the_same_in_a_tree_and_flat():
    """One Llama as trees and as padded rows: the noise of a token is the same, so gradients agree up to rounding."""
    tree, flat = noisy_gradients("tree"), noisy_gradients("flat")
    torch.testing.assert_close(tree[1], flat[1], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(tree[0], flat[0], rtol=1e-3, atol=1e-5)


def test_noise_and_lora_plus_reach_a_real_adapter(tmp_path: Path):
    def run(**sections: Any) -> tuple[Policy, MemoryRun]:
        policy, memory = adapted(), MemoryRun(tmp_path / str(len(list(tmp_path.iterdir()))))
        optim = {"schedule": "constant", "warmup_steps": 0, "weight_decay": 0.0} | sections.pop("optim", {})
        units = StepSource(lambda step: mixed_units(step, kinds=("cross_entropy",)))
        train(policy, units, config(steps=1, channels={"cross_entropy": {}}, optim=optim, **sections), memory)
        return policy, memory

    plain, quiet = run()
    faster, _ = run(optim={"lora_plus_ratio": 16})
    _, loud = run(embedding_noise=20.0)
    assert loud.lines[0]["loss"] != quiet.lines[0]["loss"]
    for name, weight in trainable(plain).items():
        other = trainable(faster)[name]
        if "lora_B" in name:  # from 0, one step of AdamW: the rate's own ratio
            torch.testing.assert_close(other, 16 * weight, rtol=1e-5, atol=1e-7)
        else:
            assert torch.equal(other, weight)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_trains_and_resumes_a_real_adapter(name: str, tmp_path: Path):
    """Four steps in one go against: stopped at step 3, resumed from step 2."""

    def run(folder: str, stop: int = -1) -> dict[str, torch.Tensor]:
        def units(step: int) -> list[Unit]:
            if step == stop:
                raise Stop
            return mixed_units(step, kinds=("cross_entropy",))

        policy = adapted()
        optim = {"name": name, "settings": {"rank": 2} if name == "galore" else {}}
        settings = config(steps=4, save_every=2, channels={"cross_entropy": {}}, optim=optim)
        train(policy, StepSource(units), settings, MemoryRun(tmp_path / folder))
        return trainable(policy)

    whole = run("whole")
    assert any(
        not torch.equal(weight, start)
        for weight, start in zip(whole.values(), trainable(adapted()).values(), strict=True)
    )
    with pytest.raises(Stop):
        run("broken", stop=3)
    resumed = run("broken")
    assert all(torch.equal(resumed[key], weight) for key, weight in whole.items())
