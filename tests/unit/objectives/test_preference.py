from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import logsigmoid

from postgrad.core.annotation import PreferenceItem, Span, Unit
from postgrad.objectives.preference import Preference
from unit.objectives.by_hand import normal, placed, scored_by_hand


def unit(chosen: tuple[int, ...], rejected: tuple[int, ...], weight: float = 1.0) -> Unit:
    """Both actions after the prompt (0,)."""
    spans = (Span(0, tuple(range(1, 1 + len(chosen)))), Span(1, tuple(range(1, 1 + len(rejected)))))
    return Unit(((0, *chosen), (0, *rejected)), (PreferenceItem(*spans, weight),))


@pytest.mark.parametrize("beta", [0.1, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_zero_margin_is_ln_2(beta: float, smoothing: float):
    """Policy = reference: h = 0 and −(1−ε) ln ½ − ε ln ½ = ln 2 for every β and ε."""
    units = [unit((1, 2), (3,))]
    scored, _ = scored_by_hand(units, normal(5))
    total, metrics = Preference(beta=beta, label_smoothing=smoothing).loss(scored, placed(units))
    assert float(total) == pytest.approx(math.log(2), rel=1e-6)
    assert metrics["margin"].total == 0


def test_gradient_at_zero_margin():
    """dℓ/dh = −β σ(−βh) = −β/2 at h = 0: chosen tokens are pushed up and rejected ones down, both by β/2."""
    units = [unit((1, 2), (3,), weight=3.0)]
    scored, logits_TV = scored_by_hand(units, normal(5))
    total, _ = Preference(beta=0.4).loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    again = logits_TV.detach().clone().requires_grad_()
    logp = again.log_softmax(-1)
    chosen_path = scored.forest.paths[0][0]
    h = logp[chosen_path[0], 1] + logp[chosen_path[1], 2] - logp[chosen_path[0], 3]
    (expected,) = torch.autograd.grad(-3.0 * 0.4 / 2 * h, again)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(
    ("beta", "smoothing", "h", "expected"),
    [
        (0.1, 0.0, 2.0, 0.5981389),  # −ln σ(0.2) = ln(1 + e^−0.2)
        (0.1, 0.0, -2.0, 0.7981389),  # the same + 0.2
        (0.5, 0.1, 2.0, 0.9 * 0.3132617 + 0.1 * 1.3132617),  # −ln σ(1) and −ln σ(−1)
    ],
)
def test_pair_loss_by_hand(beta: float, smoothing: float, h: float, expected: float):
    channel = Preference(beta=beta, label_smoothing=smoothing)
    assert float(channel.pair_loss(torch.tensor([beta * h]))) == pytest.approx(expected, rel=1e-6)


def test_against_sums_over_separate_sequences():
    """Two pairs, log-probabilities added up token by token and branch by branch."""
    units = [unit((1, 2, 3), (1, 4)), unit((2,), (4, 4, 1), weight=0.5)]
    scored, logits_TV = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    channel = Preference(beta=0.2, label_smoothing=0.1)
    total, metrics = channel.loss(scored, placed(units))

    policy = logits_TV.detach().log_softmax(-1)
    reference = normal(5, seed=7)(scored.forest).log_softmax(-1)
    expected, margins = 0.0, []
    for k, u in enumerate(units):
        sums = []
        for branch, path in zip(u.branches, scored.forest.paths[k], strict=True):
            steps = [(path[t - 1], branch[t]) for t in range(1, len(branch))]
            sums.append(sum(policy[i, token] - reference[i, token] for i, token in steps))
        margin = 0.2 * (sums[0] - sums[1])
        margins.append(float(margin))
        expected += u.items[0].weight * -(0.9 * logsigmoid(margin) + 0.1 * logsigmoid(-margin))
    assert float(total) == pytest.approx(float(expected), rel=1e-6)
    assert metrics["accuracy"] == (sum(m > 0 for m in margins), 2)
    assert metrics["margin"].total == pytest.approx(sum(margins))


def test_tokens_shared_from_the_start_cancel_exactly():
    """Chosen and rejected begin with the same token: its node gets +g and −g, and the root's row no gradient at all."""
    units = [unit((1, 2), (1, 3))]
    scored, logits_TV = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    total, _ = Preference().loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert (gradient[0] == 0).all()
    assert gradient[1].abs().sum() > 0


@pytest.mark.parametrize("change", [{"beta": 0.2}, {"label_smoothing": 0.2}])
def test_every_knob_changes_the_loss(change: dict[str, float]):
    units = [unit((1, 2), (3,))]
    scored, _ = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    base = Preference()
    losses = [float(channel.loss(scored, placed(units))[0]) for channel in (base, replace(base, **change))]
    assert losses[0] != losses[1]


def test_count_is_pairs_with_weight():
    assert Preference().count([unit((1,), (2,)).items[0], unit((1,), (3,), 0.0).items[0]]) == 1
