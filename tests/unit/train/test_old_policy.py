"""π_old is kept when a buffer is filled, so that bounds and corrections mean the policy that sampled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from postgrad.core.annotation import PolicyGradientItem, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import build_forest
from postgrad.objectives.policy_objectives import OBJECTIVES
from postgrad.train.loop import train
from postgrad.train.old_policy import preparation, with_old
from unit.train.tiny_training import MemoryRun, StepSource, TinyPolicy, config, mixed_units


def sampled(step: int = 0) -> list[Unit]:
    return mixed_units(step, each=4, kinds=("policy_gradient",))


def own(unit: Unit) -> PolicyGradientItem:
    (item,) = unit.items
    assert isinstance(item, PolicyGradientItem)
    return item


def alone(policy: TinyPolicy, unit: Unit) -> np.ndarray:
    """Log-probabilities of the unit's span from the whole softmax of its branch alone."""
    with torch.no_grad():
        logprobs_LV = policy.head(policy.hidden_TD(build_forest([Unit(unit.branches)]))).log_softmax(-1)
    places = np.array(own(unit).span.positions)
    return logprobs_LV[places - 1, np.array(unit.branches[0])[places]].numpy()


def test_every_item_gets_the_policys_own_numbers() -> None:
    """Packed over several forests; as each completion has them alone."""
    policy = TinyPolicy()
    found = with_old(policy, sampled(), token_budget=16)
    assert [unit.branches for unit in found] == [unit.branches for unit in sampled()]
    for unit in found:
        old_T = own(unit).old_T
        assert old_T is not None
        np.testing.assert_allclose(old_T, alone(policy, unit), rtol=1e-5)


def test_what_is_known_masked_or_of_another_channel_stays() -> None:
    first, second, *_ = sampled()
    zeros = np.zeros(len(own(first).behaviour_T), dtype=np.float32)
    known = replace(first, items=(replace(own(first), old_T=zeros),))
    masked = replace(second, items=(replace(own(second), weight=0.0),))
    (other,) = mixed_units(1, each=1, kinds=("preference",))
    found = {unit.branches: unit for unit in with_old(TinyPolicy(), [known, masked, other], token_budget=1000)}
    assert own(found[known.branches]).old_T is zeros
    assert own(found[masked.branches]).old_T is None
    assert found[other.branches] == other


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_what_has_no_ratio_is_not_trained_on_an_older_policys_samples(tmp_path: Path, name: str) -> None:
    """REINFORCE's −A log π is the gradient of the reward for samples of π alone: rloo, remax and opo."""
    settings = config(steps=1, channels={"policy_gradient": {"objective": name}}, reuse={"parts": 2})
    if name not in ("rloo", "remax", "opo"):
        assert preparation(TinyPolicy(), settings)([]) == []
        return
    with pytest.raises(ConfigError, match=rf"loop.reuse.*has no ratio.*'{name}'"):
        train(TinyPolicy(), StepSource(sampled), settings, MemoryRun(tmp_path))


def family(step: int) -> list[Unit]:
    """Two units of three completions each, as a method may lay out groups."""
    return [
        Unit(
            tuple(unit.branches[0] for unit in group),
            tuple(replace(own(unit), span=replace(own(unit).span, branch=k)) for k, unit in enumerate(group)),
        )
        for group in (mixed_units(seed, each=3, kinds=("policy_gradient",)) for seed in (2 * step, 2 * step + 1))
    ]


def test_the_token_budget_does_not_decide_which_step_gets_what(tmp_path: Path) -> None:
    """A buffer dealt out to two steps: with passes of 10 tokens a group is cut for computing, and not for dealing."""
    weights = []
    for budget in (1000, 10):
        policy = TinyPolicy(dtype=torch.float64)
        loop: dict[str, Any] = {"reuse": {"parts": 2}, "token_budget": budget}
        channels = {"policy_gradient": {"correction": "tis"}}
        train(policy, StepSource(family), config(steps=2, channels=channels, **loop), MemoryRun(tmp_path / str(budget)))
        weights.append(policy.weights())
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-6, atol=1e-9, msg=name)


def lines(tmp_path: Path, **channel: Any) -> list[dict[str, Any]]:
    """Two passes over one part: the second step has the units of the first, at other weights."""
    run = MemoryRun(tmp_path)
    settings = config(steps=2, channels={"policy_gradient": channel}, reuse={"passes": 2}, optim={"warmup_steps": 0})
    train(TinyPolicy(), StepSource(sampled), settings, run)
    return run.lines


@pytest.mark.parametrize("correction", ["tis", "mis", "sequence_tis", "sequence_mask"])
def test_the_second_pass_has_a_ratio_and_the_first_ones_correction(tmp_path: Path, correction: str) -> None:
    """The ratio is π/π_old: 1 before the first update, not after it. π_old/μ is the same in both passes."""
    first, second = lines(tmp_path, correction=correction, correction_cap=3.0)
    assert first["policy_gradient/ratio"] == pytest.approx(1, abs=1e-6)
    assert abs(second["policy_gradient/ratio"] - 1) > 1e-3
    for name in ("mismatch", "corrected"):
        assert first[f"policy_gradient/{name}"] == second[f"policy_gradient/{name}"]
    assert first["policy_gradient/mismatch"] != pytest.approx(1, abs=0.01)  # the engine's numbers are others


def test_the_clip_holds_in_the_second_pass(tmp_path: Path) -> None:
    """With bounds of a millionth every ratio of the second pass is outside of them."""
    first, second = lines(tmp_path, correction="tis", objective="grpo", eps_low=1e-6, eps_high=1e-6)
    assert first["policy_gradient/clipped"] < 0.5
    assert second["policy_gradient/clipped"] > 0.5
