"""Ranks and norms of an update, by hand and against the whole matrix."""

from __future__ import annotations

import math

import pytest
import torch

from postgrad.models.adapter.attach import adapted_layers
from postgrad.models.adapter.geometry import MEASURES, measured
from postgrad.models.policy import load_policy
from unit.models.adapter.trained import fresh, train


def test_equal_singular_values_use_every_direction() -> None:
    """D = 3 I of two axes in a space of five: norm 3 sqrt 2, largest 3, all three ranks 2."""
    found = measured(3 * torch.eye(5)[:, :2], torch.eye(4)[:2])
    assert found == pytest.approx(
        {"rank": 2, "realised_rank": 2, "stable_rank": 2, "norm": 3 * math.sqrt(2), "spectral": 3}
    )


def test_unequal_singular_values_by_hand() -> None:
    """Singular values 4 and 3, and one of 1e-5 that does not count.

    Norm sqrt(16 + 9) = 5, stable rank 25 / 16; the shares are 4/7 and 3/7, so the realised rank is
    exp(-(4/7) ln(4/7) - (3/7) ln(3/7)) = 1.9797.
    """
    found = measured(torch.diag(torch.tensor([4.0, 3.0, 1e-5])), torch.eye(3))
    assert found["rank"] == 2
    assert found["norm"] == pytest.approx(5.0)
    assert found["stable_rank"] == pytest.approx(25 / 16)
    assert found["realised_rank"] == pytest.approx(1.9797, abs=1e-4)


def test_no_update_has_no_rank() -> None:
    assert set(measured(torch.zeros(3, 2), torch.randn(2, 3)).values()) == {0.0}


@pytest.mark.parametrize("name", ["lora", "rslora", "vera", "adalora"])
def test_the_factors_give_what_the_whole_update_would(name: str) -> None:
    policy = fresh(name)
    train(policy)
    told = policy.geometry()
    assert told is not None
    for layer, part in adapted_layers(policy.model).items():
        whole = part.get_delta_weight("default").detach().double()
        values = torch.linalg.svdvals(whole)
        assert told["layers"][layer]["norm"] == pytest.approx(float(whole.norm()), rel=1e-5)
        assert told["layers"][layer]["spectral"] == pytest.approx(float(values[0]), rel=1e-5)
        # Of rank 4; AdaLoRA begins with 6 and may leave them to some layers.
        assert 1 <= told["layers"][layer]["realised_rank"] <= (6 if name == "adalora" else 4) + 1e-6


@pytest.mark.parametrize("name", ["pissa", "loftq", "pissa+lora-fa"])
def test_what_was_there_at_the_start_is_no_update(name: str) -> None:
    """PiSSA and LoftQ begin with large A and B; only what training added counts."""
    policy = fresh(name)
    before = policy.geometry()
    parts = adapted_layers(policy.model)
    first = {layer: part.get_delta_weight("default").detach().clone() for layer, part in parts.items()}
    train(policy)
    after = policy.geometry()
    assert before is not None
    assert after is not None
    for layer, part in parts.items():
        added = part.get_delta_weight("default").detach() - first[layer]
        assert float(first[layer].norm()) > 0.1
        assert before["layers"][layer]["norm"] < 1e-5
        assert after["layers"][layer]["norm"] == pytest.approx(float(added.norm()), rel=1e-4)


def test_magnitudes_are_told_apart() -> None:
    policy = fresh("dora")
    train(policy)
    told = policy.geometry()
    assert told is not None
    assert all(layer["magnitude"] > 0 for layer in told["layers"].values())


def test_the_summary_is_over_all_layers() -> None:
    policy = fresh("lora")
    train(policy)
    told = policy.geometry()
    assert told is not None
    assert told["trained"] == sum(p.numel() for p in policy.model.parameters() if p.requires_grad)
    for measure in MEASURES:
        values = [layer[measure] for layer in told["layers"].values()]
        assert told[measure]["least"] == min(values) <= told[measure]["mean"] <= told[measure]["most"] == max(values)
    assert load_policy("tiny-random").geometry() is None
