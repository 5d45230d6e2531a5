"""Layers left out while training: which, how often, and never all of them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from postgrad.core.errors import ConfigError
from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.layerdrop import drop_layers
from postgrad.models.policy import load_policy
from postgrad.models.tiny import tiny_model
from unit.models.adapter.trained import FOREST
from unit.models.families import family

IDS = torch.tensor([[5, 6, 7, 8]])


def logits(model: torch.nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(input_ids=IDS, use_cache=False).logits
    return found


def test_in_evaluation_nothing_is_left_out() -> None:
    model = tiny_model().eval()
    before = logits(model)
    drop_layers(model, rate=0.9)
    assert torch.equal(logits(model), before)


def test_a_pass_computes_the_model_without_some_layers() -> None:
    """Two layers and never none of them: every pass is that of both, of the first alone or of the second alone."""
    model = tiny_model()
    expected = {}
    for kept in ((0, 1), (0,), (1,)):
        part = copy.deepcopy(model).eval()
        part.model.layers = torch.nn.ModuleList([model.model.layers[i] for i in kept])
        part.config.num_hidden_layers = len(kept)
        expected[kept] = logits(part)
    drop_layers(model, rate=0.5)
    model.train()
    torch.manual_seed(0)
    seen = []
    for _ in range(40):
        found = logits(model)
        seen.append(next(kept for kept, value in expected.items() if torch.allclose(found, value, atol=1e-5)))
    assert set(seen) == set(expected)
    # Both with probability 1/4, else one of them: the case of none is given to either.
    assert 3 <= seen.count((0, 1)) <= 19


def test_the_draws_come_from_torch_s_generator() -> None:
    model = tiny_model()
    drop_layers(model, rate=0.5)
    model.train()
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append(torch.stack([logits(model) for _ in range(8)]))
    assert torch.equal(*runs)


def test_a_layer_that_is_trained_is_always_computed() -> None:
    """Of two layers only the last has an adapter: without it a step would train nothing."""
    policy = load_policy(
        "tiny-random", adapter=AdapterConfig(variant="layerdrop", last_layers=1, rank=2, options={"rate": 0.9})
    )
    policy.model.train()
    torch.manual_seed(0)
    for _ in range(10):
        policy.model.zero_grad(set_to_none=True)
        policy.hidden_TD(FOREST).square().mean().backward()  # type: ignore[no-untyped-call]
        assert any(p.grad is not None and p.grad.any() for p in policy.model.parameters())


def test_a_copy_draws_for_itself() -> None:
    model = tiny_model()
    drop_layers(model, rate=0.5)
    twin = copy.deepcopy(model).train()
    torch.manual_seed(0)
    assert len({tuple(logits(twin).flatten().tolist()) for _ in range(30)}) == 3


@pytest.mark.parametrize("name", ["llama", "gpt2", "mamba", "gpt_neox", "falcon", "bloom", "qwen3_moe", "gemma3_text"])
def test_layers_of_other_families_hand_their_input_on(name: str) -> None:
    """Some give a tensor, some a tuple; a layer that is left out gets no gradient."""
    model = family(name)
    drop_layers(model, rate=0.6)
    model.train()
    torch.manual_seed(1)
    reached = set()
    for _ in range(8):
        model.zero_grad(set_to_none=True)
        output = model(input_ids=IDS, use_cache=False)
        assert torch.isfinite(output.logits).all()
        output.logits.square().mean().backward()
        with_gradient = sum(
            any(p.grad is not None and bool(p.grad.any()) for p in layer.parameters()) for layer in stack(model)
        )
        reached.add(with_gradient)
    assert min(reached) >= 1
    assert min(reached) < len(stack(model))


def stack(model: torch.nn.Module) -> torch.nn.ModuleList:
    return next(
        part
        for part in model.modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == model.config.num_hidden_layers
    )


def test_a_model_without_a_stack_is_refused() -> None:
    model = tiny_model()
    model.config.num_hidden_layers = 7
    with pytest.raises(ConfigError, match="no stack of layers"):
        drop_layers(model, rate=0.1)
