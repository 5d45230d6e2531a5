from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import kl_div

from postgrad.core.annotation import DivergenceItem, Span, Unit
from postgrad.objectives.divergence import Divergence, kl
from unit.objectives.by_hand import identity, normal, placed, scored_by_hand

P, Q = torch.tensor([[0.5, 0.5]], dtype=torch.float64).log(), torch.tensor([[0.9, 0.1]], dtype=torch.float64).log()


def unit(weight: float = 1.0, *, hint: tuple[int, ...] = (4,), action: tuple[int, ...] = (1, 2, 3)) -> Unit:
    """Student branch (0, action), teacher branch (0, hint, action)."""
    n = len(action)
    student, teacher = Span(0, tuple(range(1, 1 + n))), Span(1, tuple(range(1 + len(hint), 1 + len(hint) + n)))
    return Unit(((0, *action), (0, *hint, *action)), (DivergenceItem(student, teacher, weight),))


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.0, 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)),  # KL(q‖p) = 0.3681
        (1.0, 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)),  # KL(p‖q) = 0.5108
        (
            0.5,  # M = [0.7, 0.3]; 0.1163 / 2 + 0.0872 / 2 = 0.1017
            0.5 * (0.9 * math.log(0.9 / 0.7) + 0.1 * math.log(0.1 / 0.3))
            + 0.5 * (0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3)),
        ),
        (
            0.25,  # M = 3/4 p + 1/4 q = [0.6, 0.4]
            0.25 * (0.9 * math.log(0.9 / 0.6) + 0.1 * math.log(0.1 / 0.4))
            + 0.75 * (0.5 * math.log(0.5 / 0.6) + 0.5 * math.log(0.5 / 0.4)),
        ),
    ],
)
def test_two_outcomes_by_hand(beta: float, expected: float):
    """Student p = [.5, .5], teacher q = [.9, .1]."""
    assert float(Divergence(beta=beta).per_token(P, Q)) == pytest.approx(expected, rel=1e-12)


def test_the_interior_tends_to_the_ends_after_division():
    """D_β/β → KL(q‖p) as β → 0 and D_β/(1−β) → KL(p‖q) as β → 1; the value itself goes to 0."""
    small = 1e-5
    assert float(Divergence(beta=small).per_token(P, Q)) / small == pytest.approx(float(kl(Q, P)), rel=1e-4)
    assert float(Divergence(beta=1 - small).per_token(P, Q)) / small == pytest.approx(float(kl(P, Q)), rel=1e-4)


def test_disjoint_distributions_reach_the_bound():
    """At β = 1/2 the divergence of distributions without overlap is ln 2."""
    far = 60.0
    a, b = torch.tensor([[far, 0.0]], dtype=torch.float64), torch.tensor([[0.0, far]], dtype=torch.float64)
    assert float(Divergence().per_token(a, b)) == pytest.approx(math.log(2))


def reference_formula(student: Tensor, teacher: Tensor, beta: float, temperature: float) -> Tensor:
    """The published form with torch's kl_div, whose arguments are in the opposite order of the mathematics."""
    p, q = (student / temperature).log_softmax(-1), (teacher / temperature).log_softmax(-1)

    def of(a: Tensor, b: Tensor) -> Tensor:
        return kl_div(b, a, reduction="none", log_target=True).sum(-1)

    if beta in (0, 1):
        return of(q, p) if beta == 0 else of(p, q)
    m = torch.logsumexp(torch.stack([p + math.log(1 - beta), q + math.log(beta)]), 0)
    return beta * of(q, m) + (1 - beta) * of(p, m)


@given(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.floats(0.3, 3.0), st.integers(0, 1000))
def test_against_torch_kl_div(beta: float, temperature: float, seed: int):
    student, teacher = torch.randn(2, 3, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    ours = Divergence(beta=beta, temperature=temperature).per_token(student, teacher)
    torch.testing.assert_close(ours, reference_formula(student, teacher, beta, temperature))
    assert (ours >= 0).all()


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_gradient_by_finite_differences(beta: float):
    student, teacher = torch.randn(2, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    channel = Divergence(beta=beta, temperature=1.3)
    assert torch.autograd.gradcheck(lambda s: channel.per_token(s, teacher), (student.requires_grad_(),))


def test_channel_sums_weighted_tokens_and_detaches_the_teacher():
    """Nodes: 0 root; the student predicts from rows 0, 1, 2 and the teacher from the hint's node on."""
    units = [unit(2.0)]
    scored, logits_TV = scored_by_hand(units, normal(5))
    channel = Divergence(beta=0.3)
    total, metrics = channel.loss(scored, placed(units))
    student, teacher = scored.forest.paths[0][0][:3], scored.forest.paths[0][1][1:4]
    expected = channel.per_token(logits_TV[student], logits_TV[teacher].detach())
    torch.testing.assert_close(total, 2 * expected.sum())
    assert metrics["per_token"] == (pytest.approx(float(expected.sum())), 3)
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert (gradient[teacher] == 0).all()
    assert (gradient[student].abs().sum(1) > 0).all()
    assert channel.count([u.items[0] for u in units]) == 3


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_a_teacher_equal_to_the_student_gives_exactly_nothing(beta: float):
    """Without a hint both contexts are the same nodes: divergence 0 and zero gradient, not a rounding error."""
    units = [unit(hint=())]
    scored, logits_TV = scored_by_hand(units, normal(5))
    total, _ = Divergence(beta=beta).loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV, allow_unused=True)
    assert float(total) == 0
    assert gradient is None or (gradient == 0).all()


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_a_teacher_with_equal_logits_gives_zero(beta: float):
    logits = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    loss = Divergence(beta=beta).per_token(logits, logits.detach()).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert float(loss) == pytest.approx(0, abs=1e-14)
    assert gradient.abs().max() < 1e-14


def test_chunks_change_nothing_and_bound_the_head():
    """No head product sees more than `chunk` rows, in the forward or the recomputed pass."""
    units = [unit(action=tuple(int(t) for t in np.random.default_rng(0).integers(0, 5, 9)))]
    rows: list[int] = []

    def head(hidden: Tensor) -> Tensor:
        rows.append(len(hidden))
        return identity(hidden)

    results = []
    for chunk in (2, 100):
        rows.clear()
        scored, logits_TV = scored_by_hand(units, normal(5), head=head)
        total, _ = Divergence(chunk=chunk).loss(scored, placed(units))
        (gradient,) = torch.autograd.grad(total, logits_TV)
        assert max(rows) == min(chunk, 9)
        results.append((total, gradient))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("change", [{"beta": 0.4}, {"temperature": 0.5}])
def test_every_knob_changes_the_loss(change: dict[str, float]):
    units = [unit()]
    scored, _ = scored_by_hand(units, normal(5))
    base = Divergence()
    losses = [float(channel.loss(scored, placed(units))[0]) for channel in (base, replace(base, **change))]
    assert losses[0] != losses[1]


def test_weight_zero_is_masked():
    units = [unit(), unit(0.0, hint=(3,))]
    scored, _ = scored_by_hand(units, normal(5))
    channel = Divergence()
    one, _ = channel.loss(scored, placed(units)[:1])
    both, _ = channel.loss(scored, placed(units))
    assert float(one) == float(both)
    assert channel.count([u.items[0] for u in units]) == 3
