from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor
from torch.nn.functional import kl_div

from postgrad.core.annotation import DivergenceItem, LoggedTeacher, Span, Unit
from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.objectives.channel import Teaching
from postgrad.objectives.divergence import Divergence
from postgrad.objectives.jsd import kl
from postgrad.objectives.teaching import Taid, Teacher
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


def test_tiles_change_nothing_and_bound_the_head():
    """A tile of 10 logits at a vocabulary of 5 is two rows; nothing is computed again in the backward pass."""
    units = [unit(action=tuple(int(t) for t in np.random.default_rng(0).integers(0, 5, 9)))]
    rows: list[int] = []

    def head(hidden: Tensor) -> Tensor:
        rows.append(len(hidden))
        return identity(hidden)

    results = []
    for tile, longest in ((10, 2), (1 << 20, 9)):
        rows.clear()
        scored, logits_TV = scored_by_hand(units, normal(5), head=head)
        total, _ = Divergence(tile=tile).loss(scored, placed(units))
        before = len(rows)
        (gradient,) = torch.autograd.grad(total, logits_TV)
        assert max(rows) == longest
        assert len(rows) == before
        results.append((total, gradient))
    torch.testing.assert_close(results[0], results[1])


def test_weight_zero_is_masked():
    units = [unit(), unit(0.0, hint=(3,))]
    scored, _ = scored_by_hand(units, normal(5))
    channel = Divergence()
    one, _ = channel.loss(scored, placed(units)[:1])
    both, _ = channel.loss(scored, placed(units))
    assert float(one) == float(both)
    assert channel.count([u.items[0] for u in units]) == 3


def gradient_of(channel: Divergence, units: list[Unit], **scoring: Any) -> tuple[float, Tensor]:
    scored, logits_TV = scored_by_hand(units, normal(5), **scoring)
    total, _ = channel.loss(scored, placed(units))
    return float(total), torch.autograd.grad(total, logits_TV)[0]


SETTINGS: list[dict[str, Any]] = [
    {},
    {"beta": 0.0, "temperature": 0.7},
    {"beta": 1.0, "temperature": 2.0, "rescale": True},
    {"support": "top_k", "top_k": 2},
    {"support": "top_k", "top_k": 2, "top_of": "student", "beta": 1.0, "temperature": 1.3},
    {"support": "top_k", "top_k": 2, "tail": "renormalise", "beta": 0.0},
    {"support": "top_k", "top_k": 99, "beta": 0.2},
    {"beta": 1.0, "entropy": "soft"},
    {"beta": 1.0, "entropy": 0.9},
    {"support": "top_k", "top_k": 1, "beta": 1.0, "entropy": "soft"},
    {"support": "top_k", "top_k": 1, "beta": 1.0, "entropy": 0.9},  # above ln 2, all that two outcomes can have
]


def by_definition(channel: Divergence, student_NV: Tensor, teacher_NV: Tensor) -> Tensor:
    """The channel's loss, written down with autograd and no closed form."""
    t = channel.temperature
    logp, logq = (student_NV / t).log_softmax(-1), (teacher_NV / t).log_softmax(-1)
    h = -(logq.exp() * logq).sum(-1)
    if channel.support == "top_k":
        k = min(channel.top_k or 100, logp.shape[1])
        ids = (logp.detach() if channel.top_of == "student" else logq).topk(k).indices
        named = torch.zeros_like(logp, dtype=torch.bool).scatter(1, ids, True)
        logp, logq = (
            torch.cat([x.gather(1, ids), x.masked_fill(named, -1e4).logsumexp(-1, keepdim=True)], 1)
            for x in (logp, logq)
        )
        if channel.tail == "renormalise":
            logp, logq = logp[:, :-1].log_softmax(-1), logq[:, :-1].log_softmax(-1)

    def of(a: Tensor, b: Tensor) -> Tensor:
        return (a.exp() * (a - b)).sum(-1)

    if channel.entropy is not None:
        if channel.entropy == "soft":
            w = h / math.log(student_NV.shape[1])
            losses = (1 - w) * of(logp, logq) + w * of(logq, logp)
        else:
            losses = of(logp, logq) + (h > channel.entropy) * of(logq, logp)
    elif channel.beta in (0, 1):
        losses = of(logq, logp) if channel.beta == 0 else of(logp, logq)
    else:
        b = channel.beta
        m = torch.logaddexp(logp + math.log(1 - b), logq + math.log(b))
        losses = b * of(logq, m) + (1 - b) * of(logp, m)
    return losses.sum() * (t * t if channel.rescale else 1.0)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("tile", [5, 1 << 20])
def test_value_and_gradient_are_those_of_the_definition(settings: dict[str, Any], tile: int):
    """The student predicts from rows 0, 1, 2 of its branch, the teacher from those of its own; all in fp64."""
    units = [unit()]
    channel = Divergence(**settings, tile=tile)
    total, gradient = gradient_of(channel, units)
    scored, logits_TV = scored_by_hand(units, normal(5))
    student, teacher = scored.forest.paths[0][0][:3], scored.forest.paths[0][1][1:4]
    expected = by_definition(channel, logits_TV[student], logits_TV[teacher].detach())
    assert total == pytest.approx(float(expected), rel=1e-9)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, logits_TV)[0])


def test_the_sampled_form_has_the_gradient_of_the_kl_on_average():
    """Σ_y p(y) · sg(log p(y) − log q(y)) ∇ log p(y) = ∇ KL(p‖q): all five actions of one token, weighed by p."""
    total = torch.zeros(2, 5, dtype=torch.float64)
    student, teacher = normal(5)(build(1)), normal(5, seed=3)(build(1))
    p = student[0].softmax(-1)
    for y in range(5):
        one = unit(action=(y,))
        scored, _ = scored_by_hand([one], lambda forest: table(forest, student[0], teacher[0]))
        channel = Divergence(beta=1.0, support="sampled")
        logits_TV = scored.hidden_TD
        loss, metrics = channel.loss(scored, placed([one]))
        (gradient,) = torch.autograd.grad(loss, logits_TV)
        total[0] += p[y] * gradient[0]
        gap = float(student[0].log_softmax(-1)[y] - teacher[0].log_softmax(-1)[y])
        assert float(loss) == pytest.approx(gap * float(student[0].log_softmax(-1)[y]))
        assert metrics["per_token"] == (pytest.approx(gap), 1)
    again = student[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(kl(again.log_softmax(-1)[None], teacher[0].log_softmax(-1)[None]).sum(), again)
    torch.testing.assert_close(total[0], expected)


def build(n: int) -> Any:
    return scored_by_hand([unit(action=tuple(range(n)))], normal(5))[0].forest


def table(forest: Any, student: Tensor, teacher: Tensor) -> Tensor:
    """Root's logits are the student's, the hint's node has the teacher's, all others 0."""
    logits = torch.zeros(len(forest), 5, dtype=torch.float64)
    logits[0] = student
    logits[forest.paths[0][1][1]] = teacher
    return logits


def logged(rows: list[dict[int, float]], tails: list[float]) -> LoggedTeacher:
    widest = max(map(len, rows))
    ids = np.array([[*row, *[-1] * (widest - len(row))] for row in rows])
    values = np.array([[*row.values(), *[1.0] * (widest - len(row))] for row in rows])
    return LoggedTeacher(ids, np.log(values).astype(np.float32), np.log(np.array(tails)).astype(np.float32))


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_a_logged_teacher_by_hand(beta: float):
    """A uniform student over 5. Row 1: q = (.5, .2 | .3), p = (.2, .2 | .6); row 2: q = (.7 | .3), p = (.2 | .8)."""
    item = DivergenceItem(Span(0, (1, 2)), logged([{1: 0.5, 3: 0.2}, {0: 0.7}], [0.3, 0.3]))
    units = [Unit(((0, 1, 2),), (item,))]
    scored, _ = scored_by_hand(units, lambda forest: torch.zeros(len(forest), 5, dtype=torch.float64))
    total, _ = Divergence(beta=beta, support="top_k").loss(scored, placed(units))

    def of(p: list[float], q: list[float]) -> float:
        def kl_(a: list[float], b: list[float]) -> float:
            return sum(x * math.log(x / y) for x, y in zip(a, b, strict=True))

        m = [(1 - beta) * x + beta * y for x, y in zip(p, q, strict=True)]
        return {0.0: kl_(q, p), 1.0: kl_(p, q)}.get(beta, beta * kl_(q, m) + (1 - beta) * kl_(p, m))

    assert float(total) == pytest.approx(of([0.2, 0.2, 0.6], [0.5, 0.2, 0.3]) + of([0.2, 0.8], [0.7, 0.3]), rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"tail": "renormalise", "temperature": 1.7}], ids=str)
def test_the_gradient_of_a_logged_teacher_by_finite_differences(settings: dict[str, Any]):
    item = DivergenceItem(Span(0, (1, 2)), logged([{1: 0.5, 3: 0.2}, {0: 0.7}], [0.3, 0.3]))
    units = [Unit(((0, 1, 2),), (item,))]
    channel = Divergence(beta=0.3, support="top_k", **settings)
    _, gradient = gradient_of(channel, units)
    base, step = normal(5)(scored_by_hand(units, normal(5))[0].forest), 1e-6
    for row in (0, 1):
        for v in range(5):
            moved = []
            for sign in (step, -step):
                logits = base.clone()
                logits[row, v] += sign
                scored, _ = scored_by_hand(units, lambda forest, logits=logits: logits)
                moved.append(float(channel.loss(scored, placed(units))[0].detach()))
            assert float(gradient[row, v]) == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-8)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({}, "logged teacher"),
        ({"support": "top_k", "top_of": "student"}, "logged teacher"),
        ({"support": "top_k", "temperature": 2.0}, "cannot be tempered"),
        ({"support": "top_k", "beta": 1.0, "entropy": "soft"}, "entropy"),
        ({"support": "top_k", "gate": (0.0, 1.0)}, "gate"),
    ],
    ids=str,
)
def test_what_a_logged_teacher_cannot_serve_is_refused(settings: dict[str, Any], match: str):
    units = [Unit(((0, 1),), (DivergenceItem(Span(0, (1,)), logged([{1: 0.5}], [0.5])),))]
    scored, _ = scored_by_hand(units, normal(5))
    with pytest.raises(ConfigError, match=match):
        Divergence(**settings).loss(scored, placed(units))


def test_the_gate_passes_items_between_its_bounds():
    """Mean JSD of one item; just below and above it as the bound decides whether the item is in the loss."""
    units = [unit()]
    scored, logits_TV = scored_by_hand(units, normal(5))
    student, teacher = scored.forest.paths[0][0][:3], scored.forest.paths[0][1][1:4]
    mean = float(Divergence(beta=0.5).per_token(logits_TV[student], logits_TV[teacher]).mean())
    whole = float(Divergence(beta=0.0).loss(scored, placed(units))[0])
    for gate, expected in (
        ((0.0, mean * 1.01), whole),
        ((0.0, mean * 0.99), 0.0),
        ((mean * 1.01, 1.0), 0.0),
        ((mean * 0.99, 1.0), whole),
    ):
        total, metrics = Divergence(beta=0.0, gate=gate).loss(scored, placed(units))
        assert float(total) == pytest.approx(expected)
        assert metrics["passed"] == (float(expected > 0), 1)


def test_the_importance_ratio_is_clipped_and_carries_no_gradient():
    """μ = p/4 for token 1 (ratio 4, held at 2), μ = 2p for token 2 (ratio 1/2), μ = p for token 3."""
    plain = unit()
    scored, logits_TV = scored_by_hand([plain], normal(5))
    path = scored.forest.paths[0][0]
    logp = logits_TV.detach().log_softmax(-1)
    own = np.array([float(logp[path[t - 1], t]) for t in (1, 2, 3)])
    behaviour = (own + np.log([1 / 4, 2, 1])).astype(np.float32)
    one = replace(plain, items=(replace(plain.items[0], behaviour_T=behaviour),))
    total, _ = Divergence(ratio_limit=2.0).loss(scored, placed([one]))
    losses = Divergence().per_token(logits_TV[path[:3]], logits_TV[scored.forest.paths[0][1][1:4]].detach())
    expected = (losses * torch.tensor([2.0, 0.5, 1.0], dtype=torch.float64)).sum()
    assert float(total) == pytest.approx(float(expected), rel=1e-5)
    torch.testing.assert_close(
        torch.autograd.grad(total, logits_TV)[0], torch.autograd.grad(expected, logits_TV)[0], rtol=1e-5, atol=1e-7
    )
    with pytest.raises(ConfigError, match="ratio_limit needs"):
        Divergence(ratio_limit=2.0).loss(scored, placed([plain]))


def test_other_tokens_are_refused():
    bad = Unit(((0, 1, 2), (0, 4, 1, 3)), (DivergenceItem(Span(0, (1, 2)), Span(1, (2, 3))),))
    scored, _ = scored_by_hand([bad], normal(5))
    with pytest.raises(TrainingFault, match="not the same tokens"):
        Divergence().loss(scored, placed([bad]))


class Fixed:
    """A view whose hidden states, and so logits, are a table by node."""

    def __init__(self, logits_TV: Tensor, parents_T: Any) -> None:
        self.logits_TV, self.parents_T = logits_TV, parents_T

    def predicting_ND(self, nodes_N: Any) -> Tensor:
        return self.logits_TV[torch.from_numpy(self.parents_T[nodes_N])]

    def head(self, hidden_ND: Tensor) -> Tensor:
        return hidden_ND


def taught(
    teacher: Teacher, *, tau: float | None = None, width: int = 5, seed: int = 3
) -> tuple[float, Tensor, Tensor, Tensor]:
    """Loss with β = 0; student and teacher logits of the three tokens; the view is one table under every name."""
    units = [unit()]
    scored, logits_TV = scored_by_hand(units, normal(5))
    views = Fixed(normal(width, seed=seed)(scored.forest), scored.forest.parents_T)
    scored = replace(scored, teaching=Teaching(lambda name: views, tau))
    total, _ = Divergence(beta=0.0, teacher=teacher).loss(scored, placed(units))
    torch.autograd.grad(total, logits_TV)
    student, hinted = scored.forest.paths[0][0][:3], scored.forest.paths[0][1][1:4]
    return float(total), logits_TV[student].detach(), logits_TV[hinted].detach(), views.logits_TV[hinted]


@pytest.mark.parametrize("kind", ["reference", "frozen", "ema", "model"])
def test_a_teacher_of_another_view(kind: str):
    total, student, _, other = taught(Teacher(kind=kind, model="x" if kind == "model" else None))
    assert total == pytest.approx(float(kl(other.log_softmax(-1), student.log_softmax(-1)).sum()))


def test_the_trust_region_teacher_lies_between_the_frozen_and_the_live_one():
    """Logits 0.8 z_frozen + 0.2 z_live, both in the hinted context."""
    total, student, live, frozen = taught(Teacher(kind="trust_region", rate=0.2))
    q = (0.8 * frozen + 0.2 * live).log_softmax(-1)
    assert total == pytest.approx(float(kl(q, student.log_softmax(-1)).sum()))


def test_taid_moves_the_target_from_the_student_to_the_teacher():
    """q* = softmax(0.7 z_student + 0.3 z_teacher) at τ = 0.3; without a run's τ it is where it starts."""
    teacher = Teacher(kind="model", model="x", taid=Taid(start=0.25))
    for tau, used in ((0.3, 0.3), (None, 0.25)):
        total, student, _, other = taught(teacher, tau=tau)
        q = ((1 - used) * student + used * other).log_softmax(-1)
        assert total == pytest.approx(float(kl(q, student.log_softmax(-1)).sum()))


@pytest.mark.parametrize("width", [4, 7])
def test_tables_padded_to_different_widths_are_compared_where_both_are(width: int):
    total, student, _, other = taught(Teacher(kind="model", model="x"), width=width)
    both = min(width, 5)
    p, q = student[:, :both].log_softmax(-1), other[:, :both].log_softmax(-1)
    assert total == pytest.approx(float(kl(q, p).sum()))


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 5},
        {"tail": "bucket"},
        {"top_of": "student"},
        {"support": "sampled"},
        {"entropy": 0.5},
        {"beta": 1.0, "support": "sampled", "entropy": "soft"},
        {"gate": (0.5, 0.1)},
        {"rescale": True},
        {"teacher": {"rate": 0.1}},
        {"teacher": {"kind": "model"}},
        {"teacher": {"model": "x"}},
        {"teacher": {"kind": "ema", "rate": 1.0}},
        {"teacher": {"taid": {"start": 0.9, "end": 0.5}}},
        {"teacher": {"taid": {"step": 0.0, "momentum": 0.5}}},
        {"temperature": 0},
        {"temperature": math.inf},
        {"teacher": {"taid": {"step": math.inf}}},
        {"beta": 1.1},
    ],
    ids=str,
)
def test_a_setting_that_would_do_nothing_is_refused(settings: dict[str, Any]):
    with pytest.raises(ValidationError):
        Divergence(**settings)


KNOBS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"beta": 0.4}),
    ({}, {"temperature": 0.5}),
    ({"temperature": 2.0}, {"rescale": True}),
    ({}, {"support": "top_k", "top_k": 2}),
    ({"support": "top_k", "top_k": 2}, {"top_k": 1}),
    ({"support": "top_k", "top_k": 1}, {"top_of": "student"}),
    ({"support": "top_k", "top_k": 2}, {"tail": "renormalise"}),
    ({"beta": 1.0}, {"support": "sampled"}),
    ({"beta": 1.0}, {"entropy": "soft"}),
    ({"beta": 1.0}, {"entropy": 0.5}),
    ({"support": "top_k", "top_k": 1, "beta": 1.0}, {"entropy": 0.9}),
]


@pytest.mark.parametrize(("base", "change"), KNOBS, ids=str)
def test_every_knob_changes_the_gradient(base: dict[str, Any], change: dict[str, Any]):
    gradients = [gradient_of(Divergence(**settings), [unit()])[1] for settings in (base, base | change)]
    assert not torch.equal(*gradients)
