from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from postgrad.objectives.tiles import TILE, head_parameters, tiled_loss, with_gradient


def squares(logits_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
    """Σ_v z²/2 of each row: its slope is z."""
    return logits_CV.square().sum(-1) / 2, logits_CV.clone()


@pytest.mark.parametrize("tile", [1, 8, 1000])
@pytest.mark.parametrize("trained", [True, False])
def test_equals_autograd_for_hidden_states_and_head(tile: int, trained: bool):
    """loss = Σ_n w_n |W h_n|²/2, in tiles of any size, with a head that is trained and one that is not."""
    torch.manual_seed(0)
    head = nn.Linear(3, 4, bias=False, dtype=torch.float64).requires_grad_(trained)
    hidden = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(5, dtype=torch.float64)
    inputs = [hidden, head.weight] if trained else [hidden]
    total, losses = tiled_loss(head, hidden, weights, squares, tile=tile)
    found = torch.autograd.grad(3 * total, inputs)
    expected = 3 * (weights * head(hidden).square().sum(-1) / 2).sum()
    torch.testing.assert_close(3 * total, expected)
    torch.testing.assert_close(found, torch.autograd.grad(expected, inputs))
    torch.testing.assert_close(losses, head(hidden).square().sum(-1).detach() / 2)
    assert not losses.requires_grad


def test_no_rows_give_a_zero_with_a_gradient():
    hidden = torch.randn(0, 3, requires_grad=True)
    total, losses = tiled_loss(nn.Linear(3, 4), hidden, torch.ones(0), squares)
    (gradient,) = torch.autograd.grad(total, hidden)
    assert float(total) == 0
    assert gradient.shape == (0, 3)
    assert losses.shape == (0,)


def test_head_parameters_are_those_that_are_trained():
    body = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 4))
    body[0].requires_grad_(False)
    found = {id(p) for p in head_parameters(body, torch.randn(2, 3))}
    assert found == {id(p) for p in body[1].parameters()}


@pytest.mark.parametrize(("trained", "largest"), [(False, TILE // 1000), (True, 3 * 10**6 // 1000)])
def test_a_trained_head_has_larger_tiles(trained: bool, largest: int):
    """A vocabulary of 1,000: 2²¹ elements are 2,097 rows; a quarter of 12 million weights is 3,000."""
    head = nn.Linear(12_000, 1000, bias=False).requires_grad_(trained)
    seen: list[int] = []

    def watched(logits_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        seen.append(len(logits_CV))
        return squares(logits_CV, rows)

    tiled_loss(head, torch.zeros(1, 12_000).expand(3001, -1), torch.ones(3001), watched)
    assert max(seen) == largest
    assert sum(seen) == 3001


def test_without_gradients_nothing_goes_back():
    with torch.no_grad():
        total, _ = tiled_loss(nn.Linear(3, 4), torch.randn(2, 3), torch.ones(2), squares)
    assert not total.requires_grad


def test_whole_logits_by_finite_differences():
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: with_gradient(squares, z), (logits,))


def test_memory_is_flat_in_rows_and_vocabulary():
    """The largest tensor made on the way has at most the tile's elements, at 40 rows of 50 as at 40 of 500."""
    for vocabulary in (50, 500):
        head = nn.Linear(3, vocabulary, bias=False).requires_grad_(False)
        sizes: list[int] = []

        def watched(logits_CV: Tensor, rows: slice, sizes: list[int] = sizes) -> tuple[Tensor, Tensor]:
            sizes.append(logits_CV.numel())
            return squares(logits_CV, rows)

        hidden = torch.randn(40, 3, requires_grad=True)
        total, _ = tiled_loss(head, hidden, torch.ones(40), watched, tile=1000)
        total.backward()
        assert max(sizes) <= 1000
        assert sum(sizes) == 40 * vocabulary
