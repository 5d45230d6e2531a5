"""Named objectives against independent formulas in fp64, edges, and a sweep over every setting.

Values by hand of each objective are in the conformance suite (tests/unit/conformance).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from postgrad.core.annotation import PolicyGradientItem, Span, Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.objectives.advantages import ADVANTAGES
from postgrad.objectives.channel import Placed
from postgrad.objectives.entropy import entropies
from postgrad.objectives.kl import KL_ESTIMATORS
from postgrad.objectives.policy_gradient import CAP, SURROGATE_SETTINGS, Name, PolicyGradient
from postgrad.objectives.policy_objectives import OBJECTIVES, objective_named
from postgrad.train.channels import build_channels, complete_specs
from unit.objectives.by_hand import normal, placed, scored_by_hand, uniform

VOCABULARY, LIMIT = 7, 12
LENGTHS = [3, 1, 5, 0, 2, 4]


def units(*, credit_by_token: bool = False, spread: float = 0.5, seed: int = 3, **item: Any) -> list[Unit]:
    """Six completions, one of them empty, of random tokens with a behaviour policy near the uniform one."""
    rng = np.random.default_rng(seed)
    made = []
    for place, n in enumerate(LENGTHS):
        advantage = rng.normal(size=n).astype(np.float32) if credit_by_token else float(rng.normal())
        tokens = (place % 3, 6, *(int(t) for t in rng.integers(0, VOCABULARY, n)))
        behaviour = (-1.9 + spread * rng.normal(size=n)).astype(np.float32)
        old = (-1.9 + spread * rng.normal(size=n)).astype(np.float32)
        given = {"old_T": old} | item
        span = Span(0, tuple(range(2, 2 + n)))
        made.append(Unit((tokens,), (PolicyGradientItem(span, advantage, behaviour, LIMIT, **given),)))
    return made


def loss(channel: PolicyGradient, made: list[Unit]) -> tuple[Tensor, Tensor]:
    """The loss of a step and its gradient by the logits."""
    scored, logits_TV = scored_by_hand(made, normal(VOCABULARY), reference=normal(VOCABULARY, seed=1))
    total, _ = channel.loss(scored, placed(made))
    mean = total / max(1, channel.count([unit.items[0] for unit in made]))
    (gradient,) = torch.autograd.grad(mean, logits_TV, allow_unused=True)
    return mean.detach(), torch.zeros_like(logits_TV) if gradient is None else gradient


class Padded:
    """The literature's form: (G, T) tensors with a mask, written down independently of the channel."""

    def __init__(self, made: list[Unit]) -> None:
        self.scored, self.logits = scored_by_hand(made, normal(VOCABULARY))
        now = self.logits.log_softmax(-1)
        anchor = normal(VOCABULARY, seed=1)(self.scored.forest).log_softmax(-1)
        width = max(LENGTHS)
        self.mask, rows = torch.zeros(len(made), width, dtype=torch.float64), []
        self.ref, self.old, self.mu = (torch.zeros_like(self.mask) for _ in range(3))
        self.adv = torch.zeros_like(self.mask)
        for k, unit in enumerate(made):
            item = unit.items[0]
            row = [torch.zeros((), dtype=torch.float64)] * width
            for t, position in enumerate(item.span.positions):
                path = self.scored.forest.paths[k][0]
                parent, token = path[position - 1], unit.branches[0][position]
                row[t], self.ref[k, t], self.mask[k, t] = now[parent, token], anchor[parent, token], 1
                old = item.behaviour_T if item.old_T is None else item.old_T
                self.old[k, t], self.mu[k, t] = float(old[t]), float(item.behaviour_T[t])
                self.adv[k, t] = float(np.broadcast_to(item.advantage, len(item.span.positions))[t])
            rows.append(torch.stack(row))
        self.logp = torch.stack(rows)
        self.lengths = self.mask.sum(1)

    def token_mean(self, losses: Tensor) -> Tensor:
        return (losses * self.mask).sum() / self.mask.sum()

    def sequence_mean(self, losses: Tensor) -> Tensor:
        return ((losses * self.mask).sum(1) / self.lengths.clamp(min=1)).mean()

    def sequence_sum(self, losses: Tensor) -> Tensor:
        return (losses * self.mask).sum(1).mean()

    def limit(self, losses: Tensor) -> Tensor:
        return (losses * self.mask).sum() / (len(losses) * LIMIT)

    def clip(self, ratio: Tensor, low: float, high: float) -> Tensor:
        return -torch.min(ratio * self.adv, ratio.clamp(1 - low, 1 + high) * self.adv)

    @property
    def ratio(self) -> Tensor:
        return (self.logp - self.old).exp()

    @property
    def sequence_ratio(self) -> Tensor:
        return (((self.logp - self.old) * self.mask).sum(1) / self.lengths.clamp(min=1)).exp()[:, None]

    def sapo(self) -> Tensor:
        tau = torch.where(self.adv > 0, 1.0, 1.05)
        return -4 / tau * torch.sigmoid(tau * (self.ratio - 1)) * self.adv

    def gmpo(self) -> Tensor:
        sign, log_ratio = self.adv.sign(), self.logp - self.old
        held = sign * torch.min(sign * log_ratio, sign * log_ratio.clamp(-0.4, 0.4))
        mean = ((held * self.mask).sum(1) / self.lengths.clamp(min=1)).exp()
        return -(self.adv * mean[:, None])

    def dppo(self) -> Tensor:
        ratio, moved = (self.logp - self.mu).exp(), self.logp.exp() - self.mu.exp()
        out = ((self.adv > 0) & (moved > 0.2)) | ((self.adv < 0) & (moved < -0.2))
        return -self.adv * ratio * (~out) + 1e-3 * (self.logp - self.mu) ** 2


FORMULAS: dict[str, Callable[[Padded], Tensor]] = {
    "dr_grpo": lambda p: p.limit(p.clip(p.ratio, 0.2, 0.2)),
    "grpo": lambda p: p.sequence_mean(p.clip(p.ratio, 0.2, 0.2)),
    "bnpo": lambda p: p.token_mean(p.clip(p.ratio, 0.2, 0.2)),
    "dapo": lambda p: p.token_mean(p.clip(p.ratio, 0.2, 0.28)),
    "gspo": lambda p: p.sequence_mean(p.clip(p.sequence_ratio, 3e-4, 4e-4)),
    "gspo_token": lambda p: p.sequence_mean(
        p.clip(p.sequence_ratio.detach() * p.logp.exp() / p.logp.detach().exp(), 3e-4, 4e-4)
    ),
    "cispo": lambda p: p.token_mean(-p.ratio.detach().clamp(max=5) * p.adv * p.logp),
    "rloo": lambda p: p.sequence_sum(-p.adv * p.logp),
    "remax": lambda p: p.sequence_sum(-p.adv * p.logp),
    "opo": lambda p: p.sequence_sum(-p.adv * p.logp),
    "reinforce++": lambda p: p.sequence_mean(p.clip(p.ratio, 0.2, 0.2)),
    "reinforce++_baseline": lambda p: p.sequence_mean(p.clip(p.ratio, 0.2, 0.2)),
    "gfpo": lambda p: p.token_mean(p.clip(p.ratio, 0.2, 0.2)),
    "lite_ppo": lambda p: p.token_mean(p.clip(p.ratio, 0.2, 0.2)),
    "sapo": lambda p: p.sequence_mean(p.sapo()),
    "gmpo": lambda p: p.sequence_mean(p.gmpo()),
    "dppo_tv": lambda p: p.token_mean(p.dppo()),
}


@pytest.mark.parametrize("credit_by_token", [False, True])
@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_value_and_gradient_equal_the_padded_formula(name: str, credit_by_token: bool):
    if credit_by_token and OBJECTIVES[name].surrogate.by_sequence:
        return  # one ratio a completion has one advantage: refused where the two are chosen
    made = units(credit_by_token=credit_by_token)
    value, gradient = loss(PolicyGradient(objective=name), made)
    padded = Padded(made)
    expected = FORMULAS[name](padded)
    (expected_gradient,) = torch.autograd.grad(expected, padded.logits)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-7)


def test_every_name_has_a_formula_an_estimator_and_a_place_in_the_type():
    assert set(FORMULAS) == set(OBJECTIVES) == set(get_args(get_args(Name)[0]))
    assert {row.advantage for row in OBJECTIVES.values()} == set(ADVANTAGES)
    assert objective_named("lite-ppo") is OBJECTIVES["lite_ppo"]
    assert PolicyGradient(objective="dppo-tv").objective == "dppo_tv"
    with pytest.raises(ConfigError, match="got 'grppo'; expected one of dr_grpo, grpo"):
        objective_named("grppo")


def test_gspo_and_its_token_form_agree_where_a_completion_has_one_advantage():
    """The paper's equality, in value and gradient; at ε = 1/2 so that both sides of the clip occur."""
    made = units()
    wide = {"eps_low": 0.5, "eps_high": 0.5}
    torch.testing.assert_close(
        *(loss(PolicyGradient(objective=name, **wide), made) for name in ("gspo", "gspo_token")), rtol=1e-6, atol=1e-9
    )


def test_on_policy_all_clipped_objectives_have_the_gradient_of_reinforce():
    """At ρ = 1 the gradient of −min(ρA, ...) is −A ∇ log π: what the aggregations leave is the only difference."""
    made = units()
    scored, _ = scored_by_hand(made, normal(VOCABULARY))
    own = [scored.logprobs(scored.nodes(k, unit.items[0].span)).detach().float().numpy() for k, unit in enumerate(made)]
    made = [
        Unit(unit.branches, (replace(unit.items[0], behaviour_T=logp, old_T=None),))
        for unit, logp in zip(made, own, strict=True)
    ]
    _, plain = loss(PolicyGradient(objective="rloo", aggregation="token_mean"), made)
    for name in ("dapo", "bnpo", "cispo", "lite_ppo", "dppo_tv"):
        torch.testing.assert_close(loss(PolicyGradient(objective=name), made)[1], plain, rtol=1e-5, atol=1e-6)
    for name in ("sapo", "grpo", "gmpo", "gspo", "gspo_token"):  # slope 1 at ρ = 1 by design
        _, by_sequence = loss(PolicyGradient(objective="rloo", aggregation="sequence_mean"), made)
        torch.testing.assert_close(loss(PolicyGradient(objective=name), made)[1], by_sequence, rtol=1e-5, atol=1e-6)


NUMERIC = {
    "eps_low": (0.05, 0.6),
    "eps_high": (0.07, 2.0),
    "dual_clip": (1.01,),
    "tau_positive": (2.0,),
    "tau_negative": (2.0,),
    "ratio_penalty": (0.3,),
    "kl_coefficient": (0.1,),
    "entropy_coefficient": (0.1,),
    "correction_cap": (1.1,),
}


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("setting", sorted(NUMERIC))
def test_every_number_changes_the_gradient_or_is_refused(name: str, setting: str):
    """No dead option: what an objective does not read cannot be set with it. Enough completions to meet every bound."""
    made = [unit for seed in range(5) for unit in units(spread=1.0, seed=seed)]
    surrogate = OBJECTIVES[name].surrogate
    fixed = {"correction": "sequence_mask"} if setting == "correction_cap" and not surrogate.from_sampler else {}
    changes = [{"objective": name, setting: value} | fixed for value in NUMERIC[setting]]
    if setting in SURROGATE_SETTINGS and setting not in OBJECTIVES[name].reads:
        with pytest.raises(ValidationError, match=f"no {setting} with objective"):
            PolicyGradient(**changes[0])
    elif setting == "correction_cap" and surrogate.from_sampler:
        with pytest.raises(ValidationError, match="no correction_cap"):
            PolicyGradient(**changes[0])
    else:
        _, before = loss(PolicyGradient(objective=name, **fixed), made)
        assert any(not torch.equal(before, loss(PolicyGradient(**change), made)[1]) for change in changes)


def test_the_sweep_covers_every_numeric_field():
    hints = get_type_hints(PolicyGradient)
    numeric = {
        field.name
        for field in fields(PolicyGradient)
        if {float, int} & {hints[field.name], *get_args(hints[field.name])}
    }
    assert numeric == set(NUMERIC)
    assert set(SURROGATE_SETTINGS) == {name for row in OBJECTIVES.values() for name in row.reads}


@pytest.mark.parametrize(
    "change",
    [
        *({"aggregation": mode} for mode in ("sequence_mean", "sequence_sum", "token_mean")),
        *({"correction": kind} for kind in ("tis", "mis", "sequence_tis", "sequence_mask")),
        {"objective": "grpo"},
    ],
)
def test_every_choice_changes_the_loss(change: dict[str, Any]):
    made = [unit for seed in range(5) for unit in units(spread=1.0, seed=seed)]
    assert float(loss(PolicyGradient(), made)[0]) != float(loss(replace(PolicyGradient(), **change), made)[0])


def test_kl_estimators_change_the_loss():
    made = units()
    values = {e: float(loss(PolicyGradient(kl_coefficient=0.5, kl_estimator=e), made)[0]) for e in KL_ESTIMATORS}
    assert len(set(values.values())) == 3
    assert values["k3"] == float(loss(PolicyGradient(kl_coefficient=0.5), made)[0])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"objective": "rloo", "eps_low": 0.1}, "no eps_low with objective rloo"),
        ({"objective": "cispo", "dual_clip": 3.0}, "no dual_clip with objective cispo"),
        ({"kl_estimator": "k1"}, "no kl_estimator without a kl_coefficient"),
        ({"correction_cap": 2.0}, "no correction_cap without a correction"),
        ({"objective": "gspo", "aggregation": "token_mean"}, "sequence_mean with gspo"),
        ({"objective": "gmpo", "correction": "tis"}, "sequence_tis or sequence_mask with gmpo"),
        ({"objective": "dppo_tv", "correction": "mis"}, "no correction with dppo_tv"),
        ({"objective": "ppo"}, "objective"),
        ({"eps_low": 1.0}, "less than 1"),
        ({"kl_coefficient": math.nan}, "greater than or equal to 0|finite"),
        ({"dual_clip": 1.0}, "greater than 1"),
        ({"epsilon": 0.1}, "epsilon"),
    ],
)
def test_undefined_combinations_are_refused_with_a_reason(settings: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        build_channels({"policy_gradient": settings})


def test_a_stored_configuration_is_read_back_the_same():
    specs = complete_specs({"policy_gradient": {"objective": "gspo-token", "kl_coefficient": 0.1}})
    assert complete_specs(specs) == specs
    assert specs["policy_gradient"]["objective"] == "gspo_token"


def test_another_objective_takes_none_of_the_old_ones_settings():
    """`replace` keeps what was set by the user; what was not is the new objective's own."""
    assert replace(PolicyGradient(), objective="gspo").surrogate == PolicyGradient(objective="gspo").surrogate
    assert replace(PolicyGradient(), objective="dapo").aggregated_by == "token_mean"


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_all_masked_and_all_empty_steps_give_zero(name: str):
    """No token, or weight 0 throughout: 0, finite, and no gradient."""
    channel = PolicyGradient(objective=name, entropy_coefficient=0.1, kl_coefficient=0.1)
    masked = units(weight=0.0)
    value, gradient = loss(channel, masked)
    assert float(value) == 0
    assert not gradient.any()
    assert channel.count([unit.items[0] for unit in masked]) == 0
    empty = [Unit(((0,),), (PolicyGradientItem(Span(0, ()), 1.0, np.empty(0, np.float32), LIMIT),))]
    assert float(loss(channel, empty)[0]) == 0


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_weight_scales_and_masks_an_item(name: str):
    """Half the weight on all items halves the loss; one of weight 0 is as if it were not there."""
    channel, made = PolicyGradient(objective=name), units()
    halved = [Unit(u.branches, (replace(u.items[0], weight=0.5),)) for u in made]
    assert float(loss(channel, halved)[0]) == pytest.approx(float(loss(channel, made)[0]) / 2, rel=1e-6)
    one_off = [Unit(u.branches, (replace(u.items[0], weight=float(k != 2)),)) for k, u in enumerate(made)]
    without = [unit for k, unit in enumerate(made) if k != 2]
    expected = _step(channel, without)
    assert _step(channel, one_off) == pytest.approx(expected, rel=1e-6)


def _step(channel: PolicyGradient, made: list[Unit]) -> float:
    """The loss under a model that does not depend on the forest's layout."""
    scored, _ = scored_by_hand(made, uniform(VOCABULARY))
    total, _ = channel.loss(scored, placed(made))
    return float(total.detach()) / channel.count([unit.items[0] for unit in made])


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_splitting_a_step_changes_nothing(name: str):
    """Sums of parts over the count of the whole are the whole: micro-batches, accumulation, workers."""
    channel, made = PolicyGradient(objective=name, entropy_coefficient=0.1), units()
    scored, _ = scored_by_hand(made, normal(VOCABULARY))
    whole = [Placed(k, unit.items[0]) for k, unit in enumerate(made)]
    total = float(channel.loss(scored, whole)[0].detach())
    parts = sum(float(channel.loss(scored, part)[0].detach()) for part in (whole[:1], whole[1:4], whole[4:]))
    assert parts == pytest.approx(total, rel=1e-6, abs=1e-9)
    items = [p.item for p in whole]
    assert channel.count(items) == sum(channel.count(part) for part in (items[:1], items[1:4], items[4:]))


def test_an_idle_completion_counts_with_its_length():
    """Token mean over 3 scored tokens and an idle completion of 9: 12."""
    scored = PolicyGradientItem(Span(0, (1, 2, 3)), 1.0, np.zeros(3, np.float32), LIMIT)
    idle = PolicyGradientItem(Span(0, ()), 0.0, np.empty(0, np.float32), LIMIT, length=9)
    assert PolicyGradient(objective="dapo").count([scored, idle]) == 12
    assert PolicyGradient(objective="grpo").count([scored, idle]) == 2


def test_without_old_log_probabilities_a_correction_takes_the_current_policy_for_the_sampling_one():
    """ρ = 1 exactly and w = min(π/μ, C): the gradient is −wA ∇ log π. With π uniform over 2, μ = 1/5: π/μ = 5/2 > 2."""
    item = PolicyGradientItem(Span(0, (1,)), 1.0, np.log(np.array([0.2], np.float32)), LIMIT)
    made = [Unit(((0, 1),), (item,))]
    scored, logits_TV = scored_by_hand(made, uniform(2))
    total, metrics = PolicyGradient(objective="grpo", correction="tis").loss(scored, placed(made))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert float(total.detach()) == pytest.approx(-CAP)
    assert gradient[0].tolist() == pytest.approx([0.5 * CAP, -0.5 * CAP])
    assert (metrics["ratio"].total, metrics["mismatch"].total, metrics["corrected"].total) == (1.0, CAP, 1.0)


def test_kl_and_entropy_are_not_corrected():
    """Advantage 0: a correction has nothing to weigh, whatever the sampler said."""
    made = [Unit(u.branches, (replace(u.items[0], advantage=0.0),)) for u in units()]
    for term in ({"kl_coefficient": 0.3}, {"entropy_coefficient": 0.3}):
        plain, corrected = (loss(PolicyGradient(**term, correction=kind), made) for kind in ("none", "mis"))
        torch.testing.assert_close(plain, corrected)


def test_the_entropy_bonus_by_hand_and_by_finite_differences():
    """Uniform over 4: H = ln 4; one token, advantage 0: −e ln 4. An outcome that cannot be adds nothing."""
    item = PolicyGradientItem(Span(0, (1,)), 0.0, np.zeros(1, np.float32), LIMIT)
    made = [Unit(((0, 1),), (item,))]
    scored, _ = scored_by_hand(made, uniform(4))
    total, metrics = PolicyGradient(objective="grpo", entropy_coefficient=0.5).loss(scored, placed(made))
    assert float(total.detach()) == pytest.approx(-0.5 * math.log(4))
    assert metrics["entropy"].total == pytest.approx(math.log(4))
    assert float(entropies(torch.tensor([[0.0, 0.0, -math.inf]]))) == pytest.approx(math.log(2))
    logits = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(entropies, (logits,))


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_a_token_that_the_sampler_found_impossible_gives_finite_numbers(name: str):
    """log μ = −80 and an advantage of 0 or below 0: no 0 · inf, no inf."""
    items = [PolicyGradientItem(Span(0, (1,)), a, np.array([-80.0], np.float32), LIMIT) for a in (0.0, -1.0, 1.0)]
    made = [Unit(((k, 1),), (item,)) for k, item in enumerate(items)]
    value, gradient = loss(PolicyGradient(objective=name), made)
    assert torch.isfinite(value)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_a_log_probability_that_is_no_number_is_refused(broken: float):
    item = PolicyGradientItem(Span(0, (1,)), 1.0, np.array([broken], np.float32), LIMIT)
    with pytest.raises(DataError, match="without a finite log-probability"):
        loss(PolicyGradient(), [Unit(((0, 1),), (item,))])


@pytest.mark.parametrize("name", ["gspo", "gmpo"])
def test_credit_by_token_for_a_loss_by_completion_is_refused(name: str):
    """One ratio a completion: tokens cannot differ. Equal advantages are one."""
    with pytest.raises(DataError, match="one ratio a completion"):
        loss(PolicyGradient(objective=name), units(credit_by_token=True))
    item = PolicyGradientItem(Span(0, (1,)), np.ones(1, np.float32), np.zeros(1, np.float32), LIMIT)
    loss(PolicyGradient(objective=name), [Unit(((0, 1),), (item,))])


def test_fields_are_read_from_plain_data():
    made = TypeAdapter(PolicyGradient).validate_python({"objective": "dapo", "eps_high": 0.3})
    assert made == PolicyGradient(objective="dapo", eps_high=0.3)


def test_kl_estimators_by_hand():
    """Δ = ln 2: k1 = −ln 2, k2 = ln²2/2, k3 = 2 − ln 2 − 1; on samples of a, the mean of k1 and k3 is KL(a‖b)."""
    delta = torch.tensor([math.log(2)], dtype=torch.float64)
    found = {name: float(estimate(delta)) for name, estimate in KL_ESTIMATORS.items()}
    assert found == pytest.approx({"k1": -math.log(2), "k2": math.log(2) ** 2 / 2, "k3": 1 - math.log(2)})
    a, b = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.2, 0.6]).double()
    for name in ("k1", "k3"):
        assert float((a * KL_ESTIMATORS[name]((b / a).log())).sum()) == pytest.approx(float((a * (a / b).log()).sum()))


def test_k1_in_the_reward_has_the_gradient_of_kl_and_k1_in_the_loss_has_none():
    """Exactly, by summing over all outcomes: E[k1 ∇ log π] = ∇KL(π‖π0); E[∇k1] = 0."""
    logits = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(4)).requires_grad_()
    other = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).log_softmax(-1)
    logp = logits.log_softmax(-1)
    (exact,) = torch.autograd.grad((logp.exp() * (logp - other)).sum(), logits, retain_graph=True)
    price = KL_ESTIMATORS["k1"](other - logp).detach()
    (rewarded,) = torch.autograd.grad((logp.exp().detach() * price * logp).sum(), logits, retain_graph=True)
    torch.testing.assert_close(rewarded, exact)
    (in_loss,) = torch.autograd.grad((logp.exp().detach() * KL_ESTIMATORS["k1"](other - logp)).sum(), logits)
    assert in_loss.abs().max() < 1e-12
