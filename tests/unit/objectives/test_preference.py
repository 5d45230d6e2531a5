from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.nn.functional import logsigmoid

from postgrad.core.annotation import JudgedItem, PreferenceItem, Span, Unit
from postgrad.core.errors import ConfigError
from postgrad.objectives.edits import common_ends, focused_weights
from postgrad.objectives.pair_losses import PAIR_OBJECTIVES, PairSettings, log_odds
from postgrad.objectives.preference import Preference
from unit.objectives.by_hand import normal, placed, scored_by_hand, uniform

LN2 = math.log(2)


def unit(chosen: tuple[int, ...], rejected: tuple[int, ...], weight: float = 1.0) -> Unit:
    """Both actions after the prompt (0,)."""
    spans = (Span(0, tuple(range(1, 1 + len(chosen)))), Span(1, tuple(range(1, 1 + len(rejected)))))
    return Unit(((0, *chosen), (0, *rejected)), (PreferenceItem(*spans, weight),))


def loss_of(channel: Preference, units: list[Unit], **scoring: Any) -> float:
    scored, _ = scored_by_hand(units, normal(5), **scoring)
    return float(channel.loss(scored, placed(units))[0])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"beta": 0.1}, LN2),
        ({"beta": 5.0, "label_smoothing": 0.3}, LN2),
        ({"objective": "robust", "beta": 2.0, "label_smoothing": 0.2}, LN2),  # (0.8 − 0.2) ln 2 / (1 − 0.4)
        ({"objective": "ipo", "beta": 0.25}, 4.0),  # (1 / (2 · 0.25))²
        ({"objective": "hinge", "beta": 3.0}, 1.0),
        ({"objective": "apo_zero"}, 1.0),  # ½ + ½
        ({"objective": "apo_down"}, 1.0),
        ({"beta": 0.7, "length": "mean"}, LN2),
        ({"beta": 0.7, "focus": 2.0}, LN2),
    ],
)
def test_the_first_step_does_not_depend_on_the_data(settings: dict[str, Any], expected: float):
    """Policy = reference: every log-ratio is exactly 0."""
    units = [unit((1, 2), (3,))]
    scored, _ = scored_by_hand(units, normal(5))
    total, metrics = Preference(**settings).loss(scored, placed(units))
    assert float(total) == pytest.approx(expected, rel=1e-6)
    assert metrics["margin"].total == metrics["chosen"].total == metrics["rejected"].total == 0


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


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize(
    ("name", "chosen", "rejected", "settings", "expected"),
    [
        ("dpo", 1.5, -0.5, PairSettings(0.1), 0.5981389),  # βh = 0.2: ln(1 + e^−0.2)
        ("dpo", -0.5, 1.5, PairSettings(0.1), 0.7981389),  # the same + 0.2
        ("dpo", 2.0, 0.0, PairSettings(0.5, 0.1), 0.9 * 0.3132617 + 0.1 * 1.3132617),  # −ln σ(1), −ln σ(−1)
        ("robust", 2.0, 0.0, PairSettings(0.5, 0.1), (0.9 * 0.3132617 - 0.1 * 1.3132617) / 0.8),
        ("ipo", 0.5, 0.25, PairSettings(0.5), 0.5625),  # (0.25 − 1)²
        ("hinge", 1.0, 0.0, PairSettings(0.5), 0.5),
        ("hinge", 4.0, 0.0, PairSettings(0.5), 0.0),
        ("apo_zero", 2.0, -2.0, PairSettings(0.5), 2 * sigma(-1)),
        ("apo_down", 2.0, -2.0, PairSettings(0.5), sigma(1) + sigma(-2)),
        ("simpo", -1.0, -2.0, PairSettings(2.0, margin=0.5), -math.log(sigma(1.5))),  # 2 (−1 + 2) − 0.5
        # p_w = 3/4 and p_l = 1/2: odds 3 and 1, σ(ln 3) = 3/4
        ("orpo", math.log(0.75), math.log(0.5), PairSettings(0.2), -math.log(0.75) - 0.2 * math.log(0.75)),
    ],
)
def test_pair_losses_by_hand(name: str, chosen: float, rejected: float, settings: PairSettings, expected: float):
    pair = (torch.tensor([value], dtype=torch.float64) for value in (chosen, rejected))
    assert float(PAIR_OBJECTIVES[name].loss(*pair, settings)) == pytest.approx(expected, rel=1e-6)


def test_log_odds_of_a_certain_action_are_finite():
    """ln(p / (1 − p)) grows without bound as p → 1; e^0 = 1 is held at 1 − 1e-7, so about ln 1e7."""
    assert float(log_odds(torch.tensor([0.0], dtype=torch.float64))) == pytest.approx(math.log(1e7), rel=1e-3)


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


@pytest.mark.parametrize("objective", ["dpo", "ipo", "simpo", "orpo"])
def test_averages_over_tokens_take_the_length_out(objective: str):
    """A uniform model over 5 gives every token ln 1/5: averaged, an action of three is as likely as one of one."""
    units = [unit((1, 2, 3), (4,))]
    scored, _ = scored_by_hand(units, uniform(5), reference=normal(5))
    _, metrics = Preference(objective=objective, beta=1.0, length="mean" if objective == "dpo" else None).loss(
        scored, placed(units)
    )
    if objective in ("simpo", "orpo"):
        assert metrics["chosen"].total == pytest.approx(-math.log(5))
        assert metrics["margin"].total == pytest.approx(0, abs=1e-12)
    else:
        path = scored.forest.paths[0][0]
        reference = normal(5)(scored.forest).log_softmax(-1)
        mean = sum(float(reference[path[t - 1], t]) for t in (1, 2, 3)) / 3
        assert metrics["chosen"].total == pytest.approx(-math.log(5) - mean)


def test_objectives_without_a_reference_ask_for_none():
    units = [unit((1, 2), (3,))]
    scored, _ = scored_by_hand(units, normal(5))
    blind = replace(scored, reference_logprobs=lambda nodes_N: pytest.fail("a reference pass"))
    for objective in ("simpo", "orpo"):
        assert not Preference(objective=objective).uses_reference
        assert math.isfinite(float(Preference(objective=objective).loss(blind, placed(units))[0]))


def test_common_ends_and_focus():
    """a b X c / a b Y Y c: prefix 2, suffix 1. A repeated token is counted once: a a / a has prefix 1, suffix 0."""
    assert common_ends("abXc", "abYYc") == (2, 1)
    assert common_ends("aa", "a") == (1, 0)
    assert common_ends("ab", "ab") == (2, 0)
    chosen, rejected = focused_weights([1, 2, 7, 3], [1, 2, 8, 8, 3], 2.0)
    assert chosen.tolist() == [1, 1, 2, 1]
    assert rejected.tolist() == [1, 1, 2, 2, 1]


def test_focus_weighs_the_edit_and_the_prefix_still_cancels():
    """Actions (1, 2, 4) and (1, 3, 4): h = 2 (r_2 − r_3) + (r_4 after 2 − r_4 after 3); token 1 is one shared node."""
    units = [unit((1, 2, 4), (1, 3, 4))]
    scored, logits_TV = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    total, metrics = Preference(beta=0.3, focus=2.0).loss(scored, placed(units))
    ratio = logits_TV.detach().log_softmax(-1) - normal(5, seed=7)(scored.forest).log_softmax(-1)
    w, r = scored.forest.paths[0]
    h = 2 * (ratio[w[1], 2] - ratio[r[1], 3]) + ratio[w[2], 4] - ratio[r[2], 4]
    assert metrics["margin"].total == pytest.approx(0.3 * float(h))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert (gradient[0] == 0).all()


def test_tokens_shared_from_the_start_cancel_exactly():
    """Chosen and rejected begin with the same token: its node gets +g and −g, and the root's row no gradient at all."""
    units = [unit((1, 2), (1, 3))]
    scored, logits_TV = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    total, _ = Preference().loss(scored, placed(units))
    (gradient,) = torch.autograd.grad(total, logits_TV)
    assert (gradient[0] == 0).all()
    assert gradient[1].abs().sum() > 0


def test_a_precomputed_reference_is_used_in_place_of_a_pass():
    """Given and computed references in one forest: the result is that of computing all of them."""
    units = [unit((1, 2), (3,)), unit((2, 2, 1), (4, 1))]
    channel = Preference(beta=0.3)
    expected = loss_of(channel, units, reference=normal(5, seed=7))
    scored, _ = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
    item = units[0].items[0]
    known = tuple(
        scored.reference_logprobs(scored.nodes(0, span)).numpy().astype(np.float32)
        for span in (item.chosen, item.rejected)
    )
    given = [replace(units[0], items=(replace(item, reference=known),)), units[1]]
    assert loss_of(channel, given, reference=normal(5, seed=7)) == pytest.approx(expected, rel=1e-6)
    asked: list[int] = []
    blind = replace(scored, reference_logprobs=lambda n: asked.append(len(n)) or scored.reference_logprobs(n))
    channel.loss(blind, placed(given))
    assert asked == [5]  # the second pair's tokens alone


def test_the_sft_term_is_the_mean_nll_of_the_chosen_action():
    """Uniform over 5: nll = ln 5 whatever the length; α = 0.4, w = 3: the term adds 3 · 0.4 · ln 5."""
    units = [unit((1, 2, 3), (4,), weight=3.0)]
    losses = []
    for alpha in (0.0, 0.4):
        scored, _ = scored_by_hand(units, uniform(5))
        losses.append(float(Preference(sft=alpha).loss(scored, placed(units))[0]))
    assert losses[1] - losses[0] == pytest.approx(3 * 0.4 * math.log(5), rel=1e-6)


KNOBS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"objective": name}, {"beta": 0.2}) for name in PAIR_OBJECTIVES),
    *(({"objective": name}, {"focus": 2.0}) for name in PAIR_OBJECTIVES),
    *(({"objective": name}, {"sft": 0.5}) for name in PAIR_OBJECTIVES if name != "orpo"),
    *(({"objective": name}, {"label_smoothing": 0.2}) for name in ("dpo", "robust")),
    *(({"objective": name}, {"length": "mean"}) for name in ("dpo", "robust", "hinge", "apo_zero", "apo_down")),
    ({"objective": "ipo"}, {"length": "sum"}),
    ({"objective": "simpo"}, {"margin": 0.5}),
]


@pytest.mark.parametrize(("base", "change"), KNOBS, ids=str)
def test_every_knob_changes_the_gradient(base: dict[str, Any], change: dict[str, Any]):
    units = [unit((1, 2), (3, 1, 2))]
    gradients = []
    for settings in (base, base | change):
        scored, logits_TV = scored_by_hand(units, normal(5), reference=normal(5, seed=7))
        total, _ = Preference(**settings).loss(scored, placed(units))
        gradients.append(torch.autograd.grad(total, logits_TV)[0])
    assert not torch.equal(*gradients)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "ipo", "label_smoothing": 0.1},
        {"margin": 0.5},
        {"desirable": 2.0},
        {"objective": "kto", "focus": 2.0},
        {"objective": "kto", "sft": 0.1},
        {"objective": "orpo", "sft": 0.1},
        {"objective": "simpo", "length": "sum"},
        {"objective": "nonsense"},
        {"beta": 0},
        {"beta": math.inf},
        {"sft": math.inf},
        {"focus": 0},
    ],
    ids=str,
)
def test_a_setting_that_would_do_nothing_is_refused(settings: dict[str, Any]):
    with pytest.raises(ValidationError):
        Preference(**settings)


def test_count_is_pairs_with_weight():
    assert Preference().count([unit((1,), (2,)).items[0], unit((1,), (3,), 0.0).items[0]]) == 1


def test_pairs_masked_by_weight_give_zero():
    units = [unit((1,), (3,), 0.0)]
    scored, _ = scored_by_hand(units, normal(5))
    assert float(Preference().loss(scored, placed(units))[0]) == 0


def judged(weights: tuple[float, ...] | None = None, *, mismatched: bool = True) -> Unit:
    """Good (1, 2) after (0,), bad (3,) after (0, 4); each prompt with the other's completion."""
    branches = ((0, 1, 2), (0, 4, 3), (0, 3), (0, 4, 1, 2))
    others = (Span(2, (1,)), Span(3, (2, 3))) if mismatched else ()
    return Unit(
        branches if mismatched else branches[:2], (JudgedItem((Span(0, (1, 2)),), (Span(1, (2,)),), others, weights),)
    )


def kto(unit_: Unit, **settings: Any) -> tuple[float, Any, torch.Tensor]:
    scored, logits_TV = scored_by_hand([unit_], normal(5), reference=normal(5, seed=7))
    total, metrics = Preference(objective="kto", **settings).loss(scored, placed([unit_]))
    return float(total), metrics, torch.autograd.grad(total, logits_TV)[0]


def test_kto_where_the_policy_is_its_reference():
    """r = z0 = 0 for every completion: 1 − σ(0) = 1/2 each, times its λ."""
    scored, _ = scored_by_hand([judged()], normal(5))
    total, _ = Preference(objective="kto", desirable=1.5, undesirable=0.5).loss(scored, placed([judged()]))
    assert float(total) == pytest.approx(0.5 * 1.5 + 0.5 * 0.5)


@pytest.mark.parametrize("mismatched", [True, False])
def test_kto_by_hand(mismatched: bool):
    """Log-ratios from the tables; z0 = max(0, mean over the mismatched), and 0 where there are none."""
    one = judged(mismatched=mismatched)
    total, metrics, _ = kto(one, beta=0.6, desirable=2.0, undesirable=0.5)
    scored, logits_TV = scored_by_hand([one], normal(5), reference=normal(5, seed=7))
    ratio = logits_TV.detach().log_softmax(-1) - normal(5, seed=7)(scored.forest).log_softmax(-1)

    def r(branch: int, first: int) -> float:
        path, tokens = scored.forest.paths[0][branch], one.branches[branch]
        return sum(float(ratio[path[t - 1], tokens[t]]) for t in range(first, len(tokens)))

    z0 = max(0.0, (r(2, 1) + r(3, 2)) / 2) if mismatched else 0.0
    expected = 2.0 * (1 - sigma(0.6 * (r(0, 1) - z0))) + 0.5 * (1 - sigma(0.6 * (z0 - r(1, 2))))
    assert total == pytest.approx(expected, rel=1e-6)
    assert metrics["z0"].total == pytest.approx(z0)


def test_kto_sends_no_gradient_through_the_reference_point():
    """Rows that only the mismatched completions are scored from: node (0, 4, 1) predicts 2 and nothing else does."""
    one = judged()
    _, _, gradient = kto(one)
    scored, _ = scored_by_hand([one], normal(5))
    assert (gradient[scored.forest.paths[0][3][2]] == 0).all()


@pytest.mark.parametrize("change", [{"beta": 0.3}, {"desirable": 2.0}, {"undesirable": 2.0}, {"length": "mean"}])
def test_every_knob_of_kto_changes_the_gradient(change: dict[str, Any]):
    assert not torch.equal(kto(judged())[2], kto(judged(), **change)[2])


def test_kto_counts_completions_with_weight():
    channel = Preference(objective="kto")
    assert channel.count([judged().items[0]]) == 2
    assert channel.count([judged((1.0, 0.0)).items[0]]) == 1
    whole, masked = kto(judged((1.0, 1.0)))[0], kto(judged((1.0, 0.0)))[0]
    assert 0 < masked < whole


def test_pairs_and_judged_completions_are_not_mixed_up():
    for channel, one in ((Preference(objective="kto"), unit((1,), (2,))), (Preference(), judged())):
        scored, _ = scored_by_hand([one], normal(5))
        with pytest.raises(ConfigError, match="do not go together"):
            channel.loss(scored, placed([one]))
        with pytest.raises(ConfigError, match="do not go together"):
            channel.count(list(one.items))


@pytest.mark.parametrize(("length", "expected"), [("sum", 0.3), ("mean", 0.15)])
def test_kto_s_reference_point_may_be_measured_before(length: Literal["sum", "mean"], expected: float):
    """z0 = max(0, mean of (0.4 over 2 tokens, 0.2 over 2 tokens)): 0.3 in sums, 0.15 in means; negative ones give 0."""
    unit = Unit(((0, 1, 2),), (JudgedItem((Span(0, (1, 2)),), (), (), None, ((0.4, 2), (0.2, 2))),))
    scored, _ = scored_by_hand([unit], uniform(4))
    _, metrics = Preference(objective="kto", length=length).loss(scored, placed([unit]))
    assert metrics["z0"].total == pytest.approx(expected)
    below = Unit(((0, 1, 2),), (JudgedItem((Span(0, (1, 2)),), (), (), None, ((-0.4, 2),)),))
    scored, _ = scored_by_hand([below], uniform(4))
    total, metrics = Preference(objective="kto").loss(scored, placed([below]))
    assert metrics["z0"].total == 0
    assert float(total.detach()) == pytest.approx(0.5)
