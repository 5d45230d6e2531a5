from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from postgrad.core.annotation import CrossEntropyItem, Span, Unit
from postgrad.objectives.cross_entropy import CrossEntropy
from unit.objectives.by_hand import normal, placed, scored_by_hand, uniform


def unit(tokens: tuple[int, ...], positions: tuple[int, ...], weight: float = 1.0) -> Unit:
    return Unit((tokens,), (CrossEntropyItem(Span(0, positions), weight),))


def test_uniform_model_by_hand():
    """Every token of a uniform model over 4 has nll ln 4: 2 · 3 · ln 4 + 1 · 1 · ln 4 = 7 ln 4; 4 tokens count."""
    units = [unit((0, 1, 2, 3), (1, 2, 3), weight=2.0), unit((3, 1), (1,))]
    scored, _ = scored_by_hand(units, uniform(4))
    channel = CrossEntropy()
    total, metrics = channel.loss(scored, placed(units))
    assert float(total) == pytest.approx(7 * math.log(4))
    assert channel.count([item for u in units for item in u.items]) == 4
    assert metrics["token_probability"] == (pytest.approx(4 * 0.25), 4)


def test_equals_torch_cross_entropy_in_value_and_gradient():
    """Position t is predicted by the logits of t − 1; positions 2 and 4 of one branch are scored."""
    units = [unit((5, 3, 1, 4, 2), (2, 4))]
    scored, logits_TV = scored_by_hand(units, normal(6))
    total, _ = CrossEntropy().loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    again = logits_TV.detach().clone().requires_grad_()
    expected = cross_entropy(again[[1, 3]], torch.tensor([1, 2]), reduction="sum")
    (expected_gradient,) = torch.autograd.grad(expected, again)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(gradient, expected_gradient)


def test_weight_scales_even_a_single_item():
    one, two = ([unit((0, 1, 2), (1, 2), weight=w)] for w in (1.0, 2.0))
    losses = [float(CrossEntropy().loss(scored_by_hand(u, normal(3))[0], placed(u))[0]) for u in (one, two)]
    assert losses[1] == pytest.approx(2 * losses[0])


def test_weight_zero_is_masked_in_sum_and_count():
    units = [unit((0, 1, 2), (1, 2)), unit((2, 2, 2), (1, 2), weight=0.0)]
    scored, _ = scored_by_hand(units, uniform(3))
    total, _ = CrossEntropy().loss(scored, placed(units))
    assert float(total) == pytest.approx(2 * math.log(3))
    assert CrossEntropy().count([item for u in units for item in u.items]) == 2


def test_equal_branches_share_nodes_and_both_count():
    units = [unit((0, 1, 2), (1, 2)), unit((0, 1, 2), (1, 2))]
    scored, _ = scored_by_hand(units, uniform(3))
    assert len(scored.forest) == 3
    assert float(CrossEntropy().loss(scored, placed(units))[0]) == pytest.approx(4 * math.log(3))


def test_dft_by_hand():
    """A uniform model over 4: each token's loss is ¼ · ln 4, so 4 tokens of weight 1 and 2 give (3·2 + 1) · ¼ ln 4;
    its gradient at the logits is ¼ of likelihood's, for the factor p is held still.
    """
    units = [unit((0, 1, 2, 3), (1, 2, 3), weight=2.0), unit((3, 1), (1,))]
    gradients = []
    for objective in ("nll", "dft"):
        scored, logits_TV = scored_by_hand(units, uniform(4))
        total, metrics = CrossEntropy(objective=objective).loss(scored, placed(units))
        gradients.append(torch.autograd.grad(total, logits_TV)[0])
    assert float(total) == pytest.approx(7 * math.log(4) / 4)
    torch.testing.assert_close(gradients[1], gradients[0] / 4)
    assert metrics["nll"] == (pytest.approx(4 * math.log(4)), 4)
