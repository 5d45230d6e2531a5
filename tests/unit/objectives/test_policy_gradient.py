from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from postgrad.core.annotation import PolicyGradientItem, Span, Unit
from postgrad.objectives.kl import k3
from postgrad.objectives.policy_gradient import PolicyGradient
from unit.objectives.by_hand import normal, placed, scored_by_hand, uniform

LIMIT = 10


def unit(tokens: tuple[int, ...], advantage: float, behaviour: list[float], *, prompt: int = 1) -> Unit:
    span = Span(0, tuple(range(prompt, len(tokens))))
    return Unit((tokens,), (PolicyGradientItem(span, advantage, np.array(behaviour, np.float32), LIMIT),))


def one_token(ratio: float, advantage: float) -> Unit:
    """A token of probability 1/2 under the model that the sampler gave 1/2 / ratio."""
    return unit((0, 1), advantage, [math.log(0.5 / ratio)])


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "trains"),
    [
        (1.0, 1.0, -1.0, True),
        (1.5, 1.0, -1.2, False),  # already up: clipped at 1 + 0.2
        (0.5, 1.0, -0.5, True),  # good and unlikely: never clipped
        (0.5, -1.0, 0.8, False),  # already down: clipped at 1 − 0.2
        (1.5, -1.0, 1.5, True),  # bad and likely: never clipped
    ],
)
def test_clipping_by_hand(ratio: float, advantage: float, loss: float, trains: bool):
    """ℓ = −min(ρA, clip(ρ, 0.8, 1.2)A); dr_grpo divides by the limit 10, and dℓ/d log π = −ρA where not clipped."""
    units = [one_token(ratio, advantage)]
    scored, logits_TV = scored_by_hand(units, uniform(2))
    total, metrics = PolicyGradient().loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert float(total) == pytest.approx(loss / LIMIT, rel=1e-6)
    slope = -ratio * advantage / LIMIT if trains else 0.0
    assert gradient[0].tolist() == pytest.approx([-0.5 * slope, 0.5 * slope], rel=1e-6)
    assert metrics["clipped"].total == (not trains)


def sampled(logits_TV: Tensor, tokens: tuple[int, ...]) -> list[float]:
    """Log-probabilities of tokens 1, 2, ... of the only branch."""
    logprobs_TV = logits_TV.log_softmax(-1)
    return [float(logprobs_TV[t - 1, token]) for t, token in enumerate(tokens) if t]


def test_on_policy_gradient_of_dr_grpo():
    """With π = μ the ratio is 1 and the gradient is −A ∇ Σ log π / L, summed over completions; they count 1 each."""
    tokens, advantage = (0, 3, 1, 2), 0.7
    behaviour = sampled(normal(4)(scored_by_hand([unit(tokens, 0, [0] * 3)], normal(4))[0].forest), tokens)
    units = [unit(tokens, advantage, behaviour)]
    scored, logits_TV = scored_by_hand(units, normal(4))
    total, metrics = PolicyGradient().loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    again = logits_TV.detach().clone().requires_grad_()
    logp = again.log_softmax(-1)[[0, 1, 2], [3, 1, 2]].sum()
    (expected,) = torch.autograd.grad(-advantage * logp / LIMIT, again)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-8)
    assert float(total) == pytest.approx(-advantage * 3 / LIMIT, rel=1e-6)
    assert metrics["ratio"].total == pytest.approx(3, rel=1e-6)
    assert metrics["behaviour_kl"].total == pytest.approx(0, abs=1e-9)


def test_grpo_is_the_mean_per_sequence_and_dr_grpo_the_sum_over_the_limit():
    """On-policy ℓ = −A for every token. Lengths 1 and 3, A = 1: grpo −1 − 1 = −2; dr_grpo −(1 + 3)/10."""
    units = [unit((0, 1), 1.0, [math.log(0.5)]), unit((1, 0, 1, 0), 1.0, [math.log(0.5)] * 3)]
    scored, _ = scored_by_hand(units, uniform(2))
    totals = {
        name: float(PolicyGradient(objective=name).loss(scored, placed(units))[0]) for name in ("grpo", "dr_grpo")
    }
    assert totals == {"grpo": pytest.approx(-2, rel=1e-6), "dr_grpo": pytest.approx(-0.4, rel=1e-6)}


def test_reference_kl_by_hand():
    """π = 1/2, π0 = 1/4: Δ = −ln 2, k3 = 1/2 + ln 2 − 1 = 0.1931; A = 0 leaves only c · k3 / L."""
    units = [unit((0, 1), 0.0, [math.log(0.5)])]
    quarter = math.log(1 / 3)  # softmax of [0, ln 1/3] = [3/4, 1/4]
    scored, logits_TV = scored_by_hand(
        units, uniform(2), reference=lambda forest: torch.tensor([[0.0, quarter]] * len(forest), dtype=torch.float64)
    )
    total, metrics = PolicyGradient(kl_coefficient=0.5).loss(scored, placed(units))
    expected = 0.5 + math.log(2) - 1
    assert float(total) == pytest.approx(0.5 * expected / LIMIT, rel=1e-6)
    assert metrics["reference_kl"].total == pytest.approx(expected)
    (gradient,) = torch.autograd.grad(total, logits_TV)
    slope = (1 - 0.5) * 0.5 / LIMIT  # dk3/d log π = 1 − e^Δ
    assert gradient[0].tolist() == pytest.approx([-0.5 * slope, 0.5 * slope], rel=1e-6)


def test_k3_estimates_kl():
    """E_a[k3] = Σ a (b/a − 1 − log b/a) = KL(a‖b), here summed exactly over three outcomes."""
    a, b = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])
    assert float((a * k3((b / a).log())).sum()) == pytest.approx(float((a * (a / b).log()).sum()), rel=1e-6)


def test_an_empty_completion_counts_and_adds_nothing():
    empty = unit((0,), 0.0, [])
    full = unit((0, 1), 1.0, [math.log(0.5)])
    channel = PolicyGradient()
    items = [*empty.items, *full.items]
    assert channel.count(items) == 2
    scored, _ = scored_by_hand([empty, full], uniform(2))
    assert float(channel.loss(scored, placed([empty, full]))[0]) == pytest.approx(-1 / LIMIT, rel=1e-6)
    alone, _ = scored_by_hand([empty], uniform(2))
    assert float(channel.loss(alone, placed([empty]))[0]) == 0.0


def test_against_the_padded_formula():
    """The batch form of the literature: (G, T) tensors with a mask, written down independently."""
    rng = np.random.default_rng(3)
    lengths, vocabulary, kl = [2, 5, 1, 4], 7, 0.3
    prompts = [(k, 6) for k in range(4)]
    actions = [tuple(int(t) for t in rng.integers(0, vocabulary, n)) for n in lengths]
    advantages = rng.normal(size=4)
    behaviours = [rng.normal(-2, 0.4, n) for n in lengths]
    units = [
        unit((*p, *a), float(adv), list(b), prompt=2)
        for p, a, adv, b in zip(prompts, actions, advantages, behaviours, strict=True)
    ]
    scored, logits_TV = scored_by_hand(units, normal(vocabulary), reference=normal(vocabulary, seed=1))

    width = max(lengths)
    logp, ref, old, mask = (np.zeros((4, width)) for _ in range(4))
    now = logits_TV.detach().log_softmax(-1).numpy()
    anchor = normal(vocabulary, seed=1)(scored.forest).log_softmax(-1).numpy()
    for k, action in enumerate(actions):
        for t, token in enumerate(action):
            node = scored.forest.paths[k][0][1 + t]
            logp[k, t], ref[k, t], old[k, t], mask[k, t] = now[node, token], anchor[node, token], behaviours[k][t], 1
    ratio, a = np.exp(logp - old), advantages[:, None]
    loss = -np.minimum(ratio * a, np.clip(ratio, 0.8, 1.3) * a) + kl * (np.exp(ref - logp) - (ref - logp) - 1)
    expected = {
        "dr_grpo": (loss * mask).sum() / (4 * LIMIT),
        "grpo": ((loss * mask).sum(1) / mask.sum(1)).mean(),
    }
    for name, value in expected.items():
        channel = PolicyGradient(objective=name, eps_high=0.3, kl_coefficient=kl)
        total, _ = channel.loss(scored, placed(units))
        assert float(total) / channel.count([u.items[0] for u in units]) == pytest.approx(value, rel=1e-5)
