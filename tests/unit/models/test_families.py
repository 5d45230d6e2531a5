"""Tree, flat and branch by branch are one computation in every family, and the self-check knows which may be a tree."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from postgrad.core.annotation import Unit
from postgrad.core.forest import Forest, build_forest
from postgrad.models.forward import flat_hidden_TD, tree_hidden_TD
from postgrad.models.score import token_logprobs
from postgrad.models.selfcheck import choose_layout
from postgrad.models.split import SplitModel
from unit.models.families import FLAT, TREE, VOCABULARY, family

Gradients = dict[str, Tensor]


def example() -> Forest:
    """Three branchings, two roots, branches up to 26 tokens: deeper than every window."""
    numbers = np.random.default_rng(0)

    def some(n: int) -> tuple[int, ...]:
        return tuple(int(token) for token in numbers.integers(3, VOCABULARY, n))

    shared = some(12)
    longer = (*shared, *some(5))
    branches = ((*shared, *some(9)), (*shared, *some(7)), (*longer, *some(8)), (*longer, *some(3)))
    return build_forest([Unit(branches), Unit((some(15),))])


def loss_and_gradients(model: PreTrainedModel, loss: Tensor) -> tuple[float, Gradients]:
    model.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def branch_by_branch(model: PreTrainedModel, forest: Forest, weight_T: Tensor) -> Tensor:
    """The loss as plain transformers gives it: each branch a sequence, a shared token counted once."""
    total, counted = torch.zeros(()), set()
    for unit, paths in zip(forest.units, forest.paths, strict=True):
        for branch, path in zip(unit.branches, paths, strict=True):
            logits_LV = model(input_ids=torch.tensor([branch]), use_cache=False).logits[0].float()
            logprobs_LV = torch.log_softmax(logits_LV, dim=-1)
            for place in range(1, len(branch)):
                node = int(path[place])
                if node not in counted:
                    counted.add(node)
                    total = total + weight_T[node] * logprobs_LV[place - 1, branch[place]]
    return total


def forest_loss(split: SplitModel, hidden_TD: Tensor, forest: Forest, weight_T: Tensor) -> Tensor:
    nodes = np.flatnonzero(forest.parents_T >= 0)
    return (token_logprobs(split.head, hidden_TD, forest, nodes, chunk=7) * weight_T[torch.as_tensor(nodes)]).sum()


def assert_same(ours: tuple[float, Gradients], theirs: tuple[float, Gradients]) -> None:
    """Loss and every parameter's gradient agree to 1e-4, relative to that parameter's gradient.

    A parameter whose whole gradient is rounding noise (a key bias: softmax does not see it) is held to 1e-6 of the
    largest one instead.
    """
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours[1].keys() == theirs[1].keys()
    largest = max(gradient.norm() for gradient in theirs[1].values())
    for name, gradient in theirs[1].items():
        assert (ours[1][name] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-6 * largest, name


@pytest.mark.parametrize("name", TREE)
def test_tree_equals_branch_by_branch(name: str) -> None:
    model = family(name)
    split, forest = SplitModel(model), example()
    layout = choose_layout(split)
    assert layout.kind == "tree", layout.reason
    weight_T = torch.randn(len(forest), generator=torch.Generator().manual_seed(1))
    expected = loss_and_gradients(model, branch_by_branch(model, forest, weight_T))
    tree = forest_loss(split, tree_hidden_TD(split, forest, scheme=layout.scheme), forest, weight_T)
    assert_same(loss_and_gradients(model, tree), expected)
    flat = forest_loss(split, flat_hidden_TD(split, forest), forest, weight_T)
    assert_same(loss_and_gradients(model, flat), expected)


@pytest.mark.parametrize("name", FLAT)
def test_what_a_mask_does_not_rule_runs_flat_and_says_so(name: str) -> None:
    model = family(name)
    split, forest = SplitModel(model), example()
    layout = choose_layout(split)
    assert layout.kind == "flat"
    assert layout.reason.startswith(f"{name}: ")
    weight_T = torch.randn(len(forest), generator=torch.Generator().manual_seed(1))
    expected = loss_and_gradients(model, branch_by_branch(model, forest, weight_T))
    flat = forest_loss(split, flat_hidden_TD(split, forest), forest, weight_T)
    assert_same(loss_and_gradients(model, flat), expected)


@pytest.mark.parametrize("name", ["gemma3_text", "mistral", "llama4_text"])
def test_the_self_check_sees_a_forgotten_window(name: str) -> None:
    """With the plain mask these families see too far; only the scheme with the window may pass."""
    split = SplitModel(family(name))
    assert choose_layout(split).scheme != "plain"
    window = getattr(split.config, "sliding_window", None), getattr(split.config, "attention_chunk_size", None)
    assert 6 in window, "the check puts the windows back"


@pytest.mark.parametrize("name", [*TREE, *FLAT])
def test_the_head_is_the_models_own(name: str) -> None:
    model = family(name)
    split = SplitModel(model)
    ids_1L = torch.randint(3, VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        hidden_LD = split.body(input_ids=ids_1L, use_cache=False).last_hidden_state[0]
        expected_LV = model(input_ids=ids_1L, use_cache=False).logits[0]
        assert torch.equal(split.head(hidden_LD), expected_LV)
