"""Credit of fresh rollouts: shaped rewards, refused combinations, dynamic sampling, the price of KL."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from pydantic.fields import FieldInfo

from postgrad.core.annotation import PolicyGradientItem, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.task import Grade
from postgrad.methods import kl_reward
from postgrad.methods.completion import Completion
from postgrad.methods.composer import Composer, ComposerSource
from postgrad.methods.credit import Credit, credited, overlong_penalty
from postgrad.methods.fresh import Rollouts, credited_units, differ
from postgrad.methods.kl_reward import kl_penalties
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sampler import Sample
from postgrad.objectives.advantages import ADVANTAGES
from postgrad.objectives.policy_objectives import OBJECTIVES
from postgrad.verbs.train_config import TrainVerb, build_method, training

LIMIT = 6
COIN = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 4, "max_new_tokens": LIMIT}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random", adapter=AdapterConfig(rank=4))


def completion(score: float, length: int, *, stop: str = "stop") -> Completion:
    sample = Sample(tuple(range(10, 10 + length)), (-1.0,) * length, stop)  # type: ignore[arg-type]
    return Completion(None, (1, 2), sample, None, Grade(score))  # type: ignore[arg-type]


def credit_of(groups: list[list[Completion]], name: str = "dr_grpo", **settings: Any) -> list[list[Any]]:
    credit = Credit(**settings)
    chosen = credit.estimator(name, group_size=2)
    return credited(groups, [0.5] * len(groups), policy=None, credit=credit, chosen=chosen, limit=LIMIT)  # type: ignore[arg-type]


@pytest.mark.parametrize(("length", "penalty"), [(0, 0.0), (4, 0.0), (5, -0.25), (7, -0.75), (8, -1.0), (9, -1.0)])
def test_the_overlong_penalty_by_hand(length: int, penalty: float):
    """L = 8, C = 4: 0 up to 4, (4 − l)/4 inside the cache, −1 from 8 on."""
    assert overlong_penalty(length, limit=8, cache=4) == penalty


def test_long_completions_pay_or_are_left_out():
    """Rewards 1 and 1, lengths 2 and 6 of 6, C = 2: 1 and 0 centre to ±1/2. Masked, the other is alone: 0."""
    group = [completion(1, 2), completion(1, 6, stop="length")]
    assert credit_of([group], overlong_cache=2) == [[0.5, -0.5]]
    assert credit_of([group], overlong="mask") == [[0.0, None]]


def test_a_broken_verifier_is_left_out():
    group = [completion(1, 2), completion(math.nan, 2), completion(0, 2)]
    assert credit_of([group]) == [[0.5, None, -0.5]]
    units = credited_units([group], credit_of([group]), Rollouts())
    assert [unit.items[0].advantage for unit in units] == [0.5, -0.5]


def test_idle_completions_keep_their_length():
    """Equal rewards: nothing to score, and lengths 2 and 3 still count in a mean over tokens."""
    group = [completion(1, 2), completion(1, 3)]
    idle = credited_units([group], credit_of([group]), Rollouts())
    assert [(unit.items[0].tokens, unit.items[0].span.positions) for unit in idle] == [(2, ()), (3, ())]
    scored = credited_units([group], credit_of([group]), Rollouts(credit=Credit(idle="score")))
    assert [len(unit.items[0].span.positions) for unit in scored] == [2, 3]


def test_groups_differ_by_the_grades_that_are_there():
    assert differ([completion(1, 1), completion(0, 1)])
    assert not differ([completion(1, 1), completion(math.nan, 1), completion(1, 2)])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"advantage": "grpo", "credit": {"kl_coefficient": 0.1}}, "divides by a deviation"),
        ({"advantage": "gfpo", "credit": {"kl_coefficient": 0.1, "kl_estimator": "k1"}}, "divides by a deviation"),
        ({"advantage": "lite_ppo", "credit": {"kl_coefficient": 0.1}}, "divides by a deviation"),
        ({"advantage": "reinforce++_baseline", "credit": {"kl_coefficient": 0.1}}, "divides by a deviation"),
        ({"credit": {"kl_estimator": "k2"}}, "without a credit.kl_coefficient"),
        ({"credit": {"discount": 0.9}}, "reads no discount"),
        ({"credit": {"keep": 2}}, "reads no keep"),
        ({"advantage": "gfpo", "credit": {"keep": 5}}, "at most group_size"),
        ({"credit": {"overlong_cache": 97}}, "at most 96"),
        ({"credit": {"resample_rounds": 2}}, "without credit.idle: resample"),
        ({"advantage": "remax", "credit": {"idle": "resample"}}, "are not idle"),
        ({"group_size": 1}, "alone in its group"),
    ],
)
def test_credit_that_makes_no_sense_is_refused_with_a_reason(settings: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        Rollouts.model_validate(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"credit": {"kl_coefficient": 0.1}},
        {"advantage": "reinforce++", "group_size": 1, "credit": {"kl_coefficient": 0.1, "discount": 0.9}},
        {"advantage": "grpo", "credit": {"kl_coefficient": 0.1, "kl_estimator": "k3"}},
        {"advantage": "remax", "group_size": 1},
    ],
)
def test_credit_that_is_defined_is_taken(settings: dict[str, Any]):
    Rollouts.model_validate(settings)


def recipe(channel: dict[str, Any], **rollouts: Any) -> TrainVerb:
    method = {"name": "composer", "rollouts": COIN | rollouts}
    return TrainVerb.model_validate(
        {"model": "tiny-random", "method": method, "channels": {"policy_gradient": channel}}
    )


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_a_recipe_can_name_each_objective_with_its_own_advantage_or_another(name: str):
    config = recipe({"objective": name}, advantage=OBJECTIVES[name].advantage)
    assert training(config, build_method(config.method)).channels["policy_gradient"]["objective"] == name
    for advantage in ADVANTAGES:
        config = recipe({"objective": name}, advantage=advantage)
        training(config, build_method(config.method))


@pytest.mark.parametrize(
    ("channel", "rollouts", "told"),
    [
        ({"objective": "grpo"}, {}, "objective grpo is defined with advantage grpo; .* or another one if you mean it"),
        ({"objective": "nothing"}, {}, "unknown policy objective"),
        ({"kl_coefficient": 0.1}, {}, "kl_coefficient needs the tokens of all completions"),
        ({"entropy_coefficient": 0.1}, {}, "entropy_coefficient needs the tokens"),
        (
            {"objective": "gspo"},
            {"advantage": "reinforce++", "credit": {"discount": 0.5}},
            "gives each token its own credit, objective gspo has one ratio",
        ),
    ],
)
def test_halves_that_do_not_fit_are_refused(channel: dict[str, Any], rollouts: dict[str, Any], told: str):
    config = recipe(channel, **rollouts)
    with pytest.raises(ConfigError, match=told):
        training(config, build_method(config.method))


def source(policy: Policy, **rollouts: Any) -> ComposerSource:
    return Composer.model_validate({"rollouts": COIN | rollouts}).source(policy, seed=3)


def advantages(units: list[Unit]) -> list[Any]:
    return [item.advantage for unit in units for item in unit.items if isinstance(item, PolicyGradientItem)]


def test_kl_in_the_reward_is_exactly_0_at_the_start_and_not_later(policy: Policy):
    """With the adapter as it was initialised policy and reference are one; with moved weights they are not."""
    (groups, _) = source(policy)._sampled(0)
    flat = [c for group in groups for c in group]
    with torch.no_grad():
        prices = kl_penalties(policy, flat, "k1", 0.5)
        assert [len(price) for price in prices] == [len(c.sample.tokens) for c in flat]
        assert all(value == 0.0 for price in prices for value in price)
        moved = [p for name, p in policy.model.named_parameters() if "lora_B" in name]
        for parameter in moved:
            parameter.add_(0.5)
        dear, twice = (kl_penalties(policy, flat, "k3", c) for c in (0.5, 1.0))
        for parameter in moved:
            parameter.zero_()
    assert min(value for price in dear for value in price) >= 0
    assert max(value for price in dear for value in price) > 0
    np.testing.assert_allclose(np.concatenate(twice), 2 * np.concatenate(dear), rtol=1e-6)


def test_kl_in_the_reward_of_completions_longer_than_a_pass(policy: Policy, monkeypatch: pytest.MonkeyPatch):
    """A pass of one token: packing rebuilds every completion, and its price stays what it was in one pass."""
    (groups, _) = source(policy)._sampled(0)
    flat = [c for group in groups for c in group]
    with torch.no_grad():
        moved = [p for name, p in policy.model.named_parameters() if "lora_B" in name]
        for parameter in moved:
            parameter.add_(0.5)
        together = kl_penalties(policy, flat, "k2", 1.0)
        monkeypatch.setattr(kl_reward, "FORWARD_TOKENS", 1)
        alone = kl_penalties(policy, flat, "k2", 1.0)
        for parameter in moved:
            parameter.zero_()
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@dataclass
class Scripted:
    """Groups by the tasks asked for: the first task of a round is always idle, the others are not."""

    asked: list[int]

    def groups(self, tasks: list[Any], *, seed: int) -> list[list[Completion]]:
        self.asked.append(len(tasks))
        made = [[completion(1, 2), completion(0 if place else 1, 3)] for place in range(len(tasks))]
        return [[replace(c, task=task) for c in group] for task, group in zip(tasks, made, strict=True)]

    def greedy_rewards(self, tasks: list[Any]) -> list[float]:
        return [0.25] * len(tasks)


def test_dynamic_sampling_fills_the_step_with_groups_that_differ(policy: Policy):
    """4 prompts, one of a round idle: 4 asked and 3 kept, then 1 asked and idle, and so on for the rounds allowed."""
    scripted = source(policy, group_size=2, credit={"idle": "resample", "resample_rounds": 2})
    scripted._sampler = Scripted([])
    kept, idle = scripted._sampled(0)
    assert (scripted._sampler.asked, len(kept), len(idle)) == ([4, 1, 1], 3, 3)
    assert len(advantages(list(scripted.units(0)))) == 6
    assert all(advantage != 0 for advantage in advantages(list(scripted.units(0))))
    only = source(policy, group_size=2, credit={"idle": "resample"}, prompts=1)
    only._sampler = Scripted([])
    kept, idle = only._sampled(0)
    assert (only._sampler.asked, len(kept), len(idle)) == ([1] * 5, 1, 4)  # nothing differs: one counts as idle


def test_dynamic_sampling_can_be_done_again(policy: Policy):
    one, other = (source(policy, credit={"idle": "resample"}, prompts=2) for _ in range(2))
    assert [unit.branches for unit in one.units(5)] == [unit.branches for unit in other.units(5)]


def test_remax_is_against_the_greedy_completion(policy: Policy):
    scripted = source(policy, group_size=2, advantage="remax")
    scripted._sampler = Scripted([])
    assert advantages(list(scripted.units(0))) == [0.75, 0.75, *[0.75, -0.25] * 3]
    real = source(policy, group_size=1, advantage="remax")
    task = real._tasks[0]
    assert real._sampler.greedy_rewards([task, task])[0] == real._sampler.greedy_rewards([task])[0]


def test_credit_by_token_reaches_the_items(policy: Policy):
    """Discounted returns: one advantage a token, the last of them that of the reward itself."""
    method = source(policy, advantage="reinforce++", credit={"discount": 0.5})
    items = [item for unit in method.units(1) for item in unit.items]
    by_token = [item for item in items if np.ndim(item.advantage)]
    assert by_token
    assert all(len(item.advantage) == len(item.span.positions) for item in by_token)


# Numeric field -> settings that it needs, and another value than theirs.
FIELDS: dict[str, tuple[dict[str, Any], Any]] = {
    "tasks": ({}, 5),
    "prompts": ({}, 3),
    "group_size": ({}, 3),
    "max_new_tokens": ({}, 5),
    "credit.discount": ({"advantage": "reinforce++"}, 0.5),
    "credit.keep": ({"advantage": "gfpo"}, 3),
    "credit.kl_coefficient": ({}, 0.3),
    "credit.overlong_cache": ({}, 3),
    "credit.resample_rounds": ({"credit": {"idle": "resample"}, "group_size": 2}, 1),
}


def test_the_sweep_covers_every_numeric_field():
    found = set()
    for kind, prefix in ((Rollouts, ""), (Credit, "credit.")):
        for name, field in kind.model_fields.items():
            if any(one in (int, float) for one in (field.annotation, *get_args(field.annotation), *_inner(field))):
                found.add(prefix + name)
    assert found - {"max_turns"} == set(FIELDS)  # turns are swept in `test_turns`, with an environment that has them


def _inner(field: FieldInfo) -> list[Any]:
    """Types inside `Annotated[...] | None`."""
    return [inner for one in get_args(field.annotation) for inner in get_args(one)]


def told(units: list[Unit]) -> str:
    """Everything about units that training can see."""
    return str([(u.branches, [(type(i), vars(i)) for i in u.items]) for u in units])


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_every_number_changes_what_is_trained_on(policy: Policy, field: str):
    """No dead option among the rollouts' settings; the policy has moved from its reference, so that KL has a price."""
    settings, value = FIELDS[field]
    section, _, name = field.rpartition(".")
    changed = settings | ({section: settings.get(section, {}) | {name: value}} if section else {name: value})
    moved = [p for key, p in policy.model.named_parameters() if "lora_B" in key]
    with torch.no_grad():
        for parameter in moved:
            parameter.add_(0.5)
        try:
            first, second = (_units(policy, rollouts) for rollouts in (settings, changed))
        finally:
            for parameter in moved:
                parameter.zero_()
    assert first != second


def _units(policy: Policy, rollouts: dict[str, Any], hints: int = 4) -> str:
    method = Composer.model_validate({"alpha": 0.5, "hints": hints, "rollouts": COIN | rollouts})
    made = method.source(policy, seed=3)
    return told([unit for step in range(3) for unit in made.units(step)])


def test_so_many_failures_are_hinted(policy: Policy):
    assert _units(policy, {}, hints=1) != _units(policy, {})


def test_the_same_numbers_change_nothing(policy: Policy):
    assert _units(policy, {}) == _units(policy, {"tasks": 8, "credit": {}})
