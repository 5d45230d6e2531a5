"""Chunked scoring equals the plain formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from postgrad.core.annotation import Unit
from postgrad.core.forest import build_forest
from postgrad.models import score
from postgrad.models.policy import Policy
from postgrad.models.score import token_logprobs


def test_by_hand() -> None:
    """One branch of three tokens over the vocabulary {0, 1}; the head hands the hidden state on as logits.

    Logits after token 0 are (0, ln 3), so p(1) = 3/4; after token 1 they are (ln 4, 0), so p(1) = 1/5. At temperature
    1/2 the odds are squared: 9/10 and 1/17.
    """
    forest = build_forest([Unit(((0, 1, 1),))])
    hidden_TD = torch.tensor([[0.0, math.log(3)], [math.log(4), 0.0], [9.0, 9.0]])
    scores = token_logprobs(lambda x: x, hidden_TD, forest, [1, 2])
    assert scores.exp().tolist() == pytest.approx([3 / 4, 1 / 5])
    colder = token_logprobs(lambda x: x, hidden_TD, forest, [1, 2], temperature=0.5)
    assert colder.exp().tolist() == pytest.approx([9 / 10, 1 / 17])


@pytest.mark.parametrize(("chunk", "kept"), [(1, 1), (1, 600), (3, 1), (1000, 1)])
def test_chunks_change_nothing(tiny: Policy, chunk: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it matter how many of them keep their logits: none but the last, two (of 259 numbers each), or all."""
    monkeypatch.setattr(score, "KEPT_LOGITS", kept)
    forest = build_forest([Unit(((5, 6, 7, 8, 9), (5, 6, 10, 11)))])
    nodes = np.flatnonzero(forest.parents_T >= 0)
    hidden_TD = tiny.hidden_TD(forest)
    ours = token_logprobs(tiny.head, hidden_TD, forest, nodes, chunk=chunk)
    logprobs_NV = torch.log_softmax(tiny.head(hidden_TD)[forest.parents_T[nodes]], dim=-1)
    plain = logprobs_NV[torch.arange(len(nodes)), forest.tokens_T[nodes]]
    torch.testing.assert_close(ours, plain)
    weight = tiny.network.get_input_embeddings().weight
    (ours_gradient,) = torch.autograd.grad(ours.sum(), weight, retain_graph=True)
    (plain_gradient,) = torch.autograd.grad(plain.sum(), weight)
    torch.testing.assert_close(ours_gradient, plain_gradient)


@pytest.mark.parametrize(("trained", "rows"), [(False, [1, 2, 2, 2, 1, 2, 2]), (True, [1, 4, 3, 4])])
def test_beside_a_trained_head_chunks_are_as_large_as_may_be_kept(
    trained: bool, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """7 positions, 5 outcomes, 20 logits to keep: 4 rows of a trained head, where a frozen one has chunks of 2.

    One row finds out about the head. Of 4 chunks the last 2 are kept, of 2 the last; those before are computed again.
    """
    monkeypatch.setattr(score, "CHUNK", 2)
    monkeypatch.setattr(score, "KEPT_LOGITS", 20)
    head, asked = torch.nn.Linear(3, 5).requires_grad_(trained), []

    def counted(hidden_CD: torch.Tensor) -> torch.Tensor:
        asked.append(len(hidden_CD))
        found: torch.Tensor = head(hidden_CD)
        return found

    forest = build_forest([Unit((tuple(0 for _ in range(8)),))])
    hidden_TD = torch.randn(8, 3, requires_grad=True)
    token_logprobs(counted, hidden_TD, forest, range(1, 8)).sum().backward()
    assert asked == rows


def test_no_nodes_give_no_scores(tiny: Policy) -> None:
    forest = build_forest([Unit(((5, 6),))])
    assert token_logprobs(tiny.head, tiny.hidden_TD(forest), forest, []).shape == (0,)


def test_the_gradient_is_softmax_minus_one_hot() -> None:
    """Logits (0, ln 3): p = (1/4, 3/4), so d log p(1) / d logits = (-1/4, 1 - 3/4); twice that for an upstream of 2.

    And against finite differences in fp64, at a temperature.
    """
    forest = build_forest([Unit(((0, 1, 0),))])
    hidden_TD = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [0.0, 0.0]], requires_grad=True)
    (token_logprobs(lambda x: x, hidden_TD, forest, [1]) * 2).sum().backward()
    assert hidden_TD.grad is not None
    assert hidden_TD.grad[0].tolist() == pytest.approx([-1 / 2, 1 / 2])
    drawn = torch.randn(3, 5, dtype=torch.float64, requires_grad=True, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(
        lambda hidden: token_logprobs(lambda x: x, hidden, forest, [1, 2], chunk=1, temperature=0.7), (drawn,)
    )
