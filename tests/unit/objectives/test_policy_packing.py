"""Named objectives through the loop's own step: how units are packed or spread changes no gradient, whatever is set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from postgrad.core.annotation import PolicyGradientItem, Unit
from postgrad.objectives.policy_objectives import OBJECTIVES
from unit.train.test_identities import runner, shift
from unit.train.tiny_training import TinyPolicy, mixed_units


def units(*, credit_by_token: bool) -> list[Unit]:
    """Eight completions, half of them of one prompt, one masked, one idle."""
    made = mixed_units(5, each=8, kinds=["policy_gradient"])
    rng = np.random.default_rng(0)
    changed = []
    for place, unit in enumerate(made):
        item = unit.items[0]
        assert isinstance(item, PolicyGradientItem)
        if credit_by_token:
            item = replace(item, advantage=rng.normal(size=len(item.behaviour_T)).astype(np.float32))
        changed.append(Unit(unit.branches, (replace(item, weight=0.0 if place == 3 else 1.0),)))
    idle = replace(changed[0].items[0], span=replace(changed[0].items[0].span, positions=()), advantage=0.0, length=3)
    return [*changed, Unit((changed[0].branches[0][:1],), (replace(idle, behaviour_T=np.empty(0, np.float32)),))]


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_packing_changes_nothing(name: str):
    surrogate = OBJECTIVES[name].surrogate
    settings: dict[str, Any] = {"objective": name, "kl_coefficient": 0.1, "entropy_coefficient": 0.05}
    if not surrogate.from_sampler:
        settings["correction"] = "sequence_mask"
    made = units(credit_by_token=not surrogate.by_sequence)
    results = []
    for order, budget in ((made, 10_000), (made[::-1], 12), (made, 1)):
        policy = TinyPolicy(dtype=torch.float64)
        shift(policy)
        step = runner(policy, budget=budget, channels={"policy_gradient": settings})
        gradients = step.gradients(order, by_channel=False)
        results.append((gradients.loss("policy_gradient"), [p.grad for p in step.parameters if p.grad is not None]))
    (loss, whole), *others = results
    assert any(gradient.abs().max() > 1e-4 for gradient in whole)
    for other_loss, other in others:
        assert other_loss == pytest.approx(loss, rel=1e-6)
        torch.testing.assert_close(other, whole, rtol=1e-5, atol=1e-9)
