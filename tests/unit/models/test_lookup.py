"""Gradients of a tied token table: the same with sparse rows as without, and dense at the end."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from postgrad.core.annotation import Unit
from postgrad.core.forest import build_forest
from postgrad.models.lookup import looked_up_rows
from postgrad.models.policy import Policy, load_policy

FOREST = build_forest([Unit(((5, 6, 7, 5), (5, 6, 9)))])


@pytest.fixture
def policy() -> Policy:
    found = load_policy("tiny-random")
    assert found.network.get_input_embeddings().weight is found.network.get_output_embeddings().weight
    return found


def gradient(policy: Policy, *, sparse: bool, head: bool, passes: int = 1) -> Tensor:
    """Of the table, after passes as the trainer makes them: the head backward first, then the body."""
    table = policy.network.get_input_embeddings()
    table.weight.grad = None
    seen = []
    with looked_up_rows(policy.model) if sparse else nullcontext():
        for _ in range(passes):
            hidden_TD = policy.hidden_TD(FOREST)
            leaf_TD = hidden_TD.detach().requires_grad_()
            loss = policy.head(leaf_TD).logsumexp(dim=1).sum() if head else leaf_TD.square().sum()
            torch.autograd.backward([loss])
            torch.autograd.backward([hidden_TD], [leaf_TD.grad])
            seen.append(table.weight.grad.is_sparse)
    assert not any(seen) if head or not sparse else all(seen), "the way that was meant to be taken"
    assert not table.sparse
    found: Tensor = table.weight.grad
    assert not found.is_sparse
    return found


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("head", [True, False])
def test_the_gradient_is_that_of_dense_lookups(policy: Policy, head: bool, passes: int) -> None:
    """Also over several forests, and for a loss without the head, which leaves the sparse rows alone."""
    dense = gradient(policy, sparse=False, head=head, passes=passes)
    torch.testing.assert_close(gradient(policy, sparse=True, head=head, passes=passes), dense, rtol=1e-5, atol=1e-6)
    rows = dense.abs().sum(dim=1).nonzero().flatten().tolist()
    assert head or rows == [5, 6, 7, 9]


def test_a_frozen_table_is_left_alone(policy: Policy) -> None:
    table = policy.network.get_input_embeddings()
    table.weight.requires_grad_(False)
    with looked_up_rows(policy.model):
        assert not table.sparse


def test_a_table_of_its_own_is_left_alone() -> None:
    """Its gradient would stay sparse, as nothing dense comes before it."""
    table, network = nn.Embedding(9, 4), nn.Module()
    setattr(network, "get_input_embeddings", lambda: table)  # noqa: B010  (a module's attributes are no functions)
    setattr(network, "get_output_embeddings", lambda: nn.Linear(4, 9))  # noqa: B010
    with looked_up_rows(network):
        assert not table.sparse
