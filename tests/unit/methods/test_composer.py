"""The composer's units on the tiny model: what was sampled is what is scored, and a step can be made again."""

from __future__ import annotations

import numpy as np
import pytest

from postgrad.core.annotation import DivergenceItem, PolicyGradientItem, Unit
from postgrad.methods.composer import Composer, ComposerSource
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sampler import generate

LIMIT = 6
ROLLOUTS = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 4, "max_new_tokens": LIMIT}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def source(policy: Policy, *, alpha: float = 0.0, **rollouts: object) -> ComposerSource:
    method = Composer.model_validate({"alpha": alpha, "hints": 3, "rollouts": {**ROLLOUTS, **rollouts}})
    return method.source(policy, seed=3)


def credited(units: list[Unit]) -> list[tuple[Unit, PolicyGradientItem]]:
    return [(unit, item) for unit in units for item in unit.items if isinstance(item, PolicyGradientItem)]


def test_the_ids_that_are_scored_are_the_ids_that_were_sampled(policy: Policy) -> None:
    method = source(policy, credit={"idle": "score"})
    drawn = method._drawn(2)
    prompts = [policy.renderer.prompt(task.messages, task.tools) for task in drawn]
    sampled = generate(policy, prompts, n=4, temperature=1.0, max_new_tokens=LIMIT, seed=3 * 1_000_003 + 2)
    expected = [(sample.tokens, sample.logprobs) for group in sampled for sample in group]
    found = credited(list(method.units(2)))
    assert len(found) == len(expected) == 16
    for (unit, item), (tokens, logprobs) in zip(found, expected, strict=True):
        assert tuple(unit.branches[0][p] for p in item.span.positions) == tokens
        np.testing.assert_allclose(item.behaviour_T, logprobs, atol=1e-6)


def test_advantages_of_a_group_sum_to_zero_and_idle_groups_cost_nothing(policy: Policy) -> None:
    """Rewards are 0 or 1; centred on their group's mean they sum to 0. Equal rewards give empty completions."""
    items = credited(list(source(policy).units(0)))
    groups = [items[i : i + 4] for i in range(0, 16, 4)]
    for group in groups:
        assert sum(item.advantage for _, item in group) == pytest.approx(0.0)
        if all(item.advantage == 0 for _, item in group):
            assert all(item.span.positions == () and len(unit.branches[0]) == 1 for unit, item in group)


def test_a_step_does_not_depend_on_the_steps_before(policy: Policy) -> None:
    fresh, used = source(policy, alpha=0.5), source(policy, alpha=0.5)
    for step in range(3):
        used.units(step)
    assert [unit.branches for unit in fresh.units(3)] == [unit.branches for unit in used.units(3)]


def test_failures_are_hinted_only_when_distillation_has_a_weight(policy: Policy) -> None:
    def rows(alpha: float) -> list[Unit]:
        units = source(policy, alpha=alpha).units(0)
        return [unit for unit in units if isinstance(unit.items[0], DivergenceItem)]

    assert rows(0.0) == []
    hinted = rows(0.5)
    assert 1 <= len(hinted) <= 3
    for unit in hinted:
        student, teacher = (policy.renderer.decode(branch) for branch in unit.branches)
        assert "Copy every argument value exactly" in teacher
        assert "Copy every argument value exactly" not in student
