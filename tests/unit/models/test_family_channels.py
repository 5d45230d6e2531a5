"""Every family through every channel of the loop: finite gradients, the same from a tree as from single branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from postgrad.core.annotation import Unit
from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.attach import attach
from postgrad.models.adapter.start import Start
from postgrad.models.policy import Policy, make_policy
from postgrad.models.selfcheck import Layout
from postgrad.models.tiny import byte_tokenizer
from postgrad.train.loop import train
from unit.models.families import FLAT, TREE, family
from unit.train.tiny_training import ALL_CHANNELS, KINDS, MemoryRun, StepSource, config, random_unit

RANDOM_ROUTING = {"phimoe"}
"""Routers that draw at random while training: two passes differ, and a router may get no gradient."""


def units(kind: str) -> list[Unit]:
    """Two units; the sampler's log-probabilities are not the policy's, so the ratio is at work too."""
    rng = np.random.default_rng(7)
    return [random_unit(kind, rng) for _ in range(2)]


def policy_of(name: str, *, adapter: AdapterConfig | None) -> Policy:
    model = family(name)
    if adapter is None:
        policy = make_policy(name, model, byte_tokenizer())
        policy.freeze_reference()
        return policy
    adapted = attach(model, adapter, base=name)
    return make_policy(name, adapted, byte_tokenizer(), start=Start.of(adapted, adapter, fresh=True))


def gradients(policy: Policy, kind: str, folder: Path) -> dict[str, Tensor]:
    """Gradients of all trained weights after one step of one channel, the weights as they were before."""
    before = {name: p.detach().clone() for name, p in policy.model.named_parameters()}
    settings = config(steps=1, channels={kind: ALL_CHANNELS[kind] | {"weight": 1.0}}, optim={"clip_norm": None})
    train(policy, StepSource(lambda step: units(kind)), settings, MemoryRun(folder))
    found = {name: p.grad.clone() for name, p in policy.model.named_parameters() if p.grad is not None}
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            parameter.copy_(before[name])
            parameter.grad = None
    return found


def assert_alike(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Each to 1e-3 of its own size, what is rounding alone to 1e-5 of the largest."""
    assert ours.keys() == theirs.keys()
    largest = max(float(gradient.norm()) for gradient in theirs.values())
    for name, gradient in theirs.items():
        assert float((ours[name] - gradient).norm()) <= 1e-3 * float(gradient.norm()) + 1e-5 * largest, name


@pytest.mark.parametrize("name", [*TREE, *FLAT])
def test_all_weights_get_finite_gradients_from_every_channel(name: str, tmp_path: Path) -> None:
    policy = policy_of(name, adapter=None)
    trained = {weight for weight, p in policy.model.named_parameters() if p.requires_grad}
    for kind in KINDS:
        found = gradients(policy, kind, tmp_path / kind)
        assert all(bool(torch.isfinite(gradient).all()) for gradient in found.values())
        idle = trained - {weight for weight, gradient in found.items() if bool(gradient.any())}
        assert not idle or (name in RANDOM_ROUTING and all("router" in weight for weight in idle)), idle
        if policy.layout == "tree" and name not in RANDOM_ROUTING:
            decided, policy._layout = policy._layout, Layout("flat", "plain", "to compare")
            assert_alike(gradients(policy, kind, tmp_path / f"flat {kind}"), found)
            policy._layout = decided


@pytest.mark.parametrize("name", [*TREE, *FLAT])
def test_adapters_get_finite_gradients_from_all_channels_together(name: str, tmp_path: Path) -> None:
    """Moved away from the start first, where only B has a gradient that is not 0."""
    policy = policy_of(name, adapter=AdapterConfig(rank=2))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    run = MemoryRun(tmp_path)
    train(policy, StepSource(), config(steps=1, optim={"clip_norm": None}), run)
    for weight, parameter in policy.model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, weight
            assert torch.isfinite(parameter.grad).all(), weight
            assert parameter.grad.any() or "experts" in weight or name in RANDOM_ROUTING, weight
    assert all(run.lines[0][f"gradient_share/{kind}"] > 0 for kind in KINDS)
