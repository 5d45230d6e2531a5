"""The whole step against the textbook: every branch alone, full logits, losses with torch's own functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, logsigmoid

from postgrad.core.annotation import (
    CrossEntropyItem,
    DivergenceItem,
    Item,
    PolicyGradientItem,
    PreferenceItem,
    Span,
    Unit,
)
from postgrad.core.forest import build_forest
from unit.train.test_identities import runner, shift
from unit.train.tiny_training import ALL_CHANNELS, KINDS, TinyPolicy, mixed_units


class Plain:
    """Losses of one unit from forward passes of single sequences."""

    def __init__(self, policy: TinyPolicy, unit: Unit) -> None:
        self.unit = unit
        self.logits = [self._run(policy, branch) for branch in unit.branches]
        with policy.reference(), torch.no_grad():
            self.reference = [self._run(policy, branch) for branch in unit.branches]

    def _run(self, policy: TinyPolicy, branch: Sequence[int]) -> Tensor:
        return policy.head(policy.hidden_TD(build_forest([Unit((tuple(branch),))])))

    def rows(self, logits: list[Tensor], span: Span) -> Tensor:
        return logits[span.branch][[position - 1 for position in span.positions]].log_softmax(-1)

    def logp(self, logits: list[Tensor], span: Span) -> Tensor:
        tokens = [self.unit.branches[span.branch][position] for position in span.positions]
        return self.rows(logits, span)[range(len(tokens)), tokens]

    def loss(self, item: Item) -> Tensor:
        match item:
            case CrossEntropyItem(span, weight):
                targets = torch.tensor([self.unit.branches[span.branch][p] for p in span.positions])
                return weight * cross_entropy(self.rows(self.logits, span), targets, reduction="sum")
            case PolicyGradientItem(span, advantage, behaviour, limit):
                now, old = self.logp(self.logits, span), torch.from_numpy(behaviour)
                ratio = torch.exp(now - old)
                gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
                delta = self.logp(self.reference, span) - now
                return (0.1 * (delta.exp() - delta - 1) - gain).sum() / limit
            case DivergenceItem(student, teacher, weight):
                p, q = self.rows(self.logits, student), self.rows(self.logits, teacher).detach()
                m = torch.log((p.exp() + q.exp()) / 2)
                halves = [kl_div(m, of, reduction="sum", log_target=True) / 2 for of in (p, q)]
                return weight * (halves[0] + halves[1])
            case PreferenceItem(chosen, rejected, weight):
                gains = [(self.logp(self.logits, s) - self.logp(self.reference, s)).sum() for s in (chosen, rejected)]
                return -weight * logsigmoid(0.1 * (gains[0] - gains[1]))


def share(item: Item) -> int:
    """Tokens for cross-entropy and divergence; completions and pairs count 1."""
    match item:
        case CrossEntropyItem(span, _):
            return len(span.positions)
        case DivergenceItem(student, _, _):
            return len(student.positions)
    return 1


def test_losses_and_gradients_equal_the_textbook():
    units = mixed_units(11, each=3)
    policy = TinyPolicy(dtype=torch.float64)
    shift(policy)
    step = runner(policy, budget=60)
    ours = step.gradients(units, by_channel=False)
    gradients = [p.grad.clone() for p in step.parameters if p.grad is not None]

    total = torch.zeros((), dtype=torch.float64)
    for k, kind in enumerate(KINDS):
        own = units[3 * k : 3 * k + 3]
        items = [item for unit in own for item in unit.items]
        losses = sum((Plain(policy, unit).loss(unit.items[0]) for unit in own), start=torch.zeros(()))
        mean = losses / sum(map(share, items))
        assert ours.loss(kind) == pytest.approx(mean.item(), rel=1e-6), kind
        total = total + ALL_CHANNELS[kind]["weight"] * mean
    expected = torch.autograd.grad(total, [p for p in step.parameters if p.grad is not None])
    torch.testing.assert_close(gradients, list(expected), rtol=1e-5, atol=1e-8)
    norm = math.sqrt(sum(float(g.square().sum()) for g in expected))
    assert norm > 0.1
