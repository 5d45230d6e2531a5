"""The tiny policy, loaded once, and a cache folder that is not the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy


@pytest.fixture(autouse=True)
def _quiet_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POSTGRAD_THREADS", "1")


@pytest.fixture
def tiny() -> Policy:
    return load_policy("tiny-random")


@pytest.fixture
def adapted() -> Policy:
    """The tiny policy with an adapter that has moved away from its initial values."""
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=4, alpha=8.0))
    with torch.no_grad():
        for name, weight in policy.model.named_parameters():
            if "lora_B" in name:
                weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)) * 0.05)
    return policy
