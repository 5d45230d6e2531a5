"""What must not change a loss or a gradient: packing, accumulation, order, channels that are switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch
from torch import Tensor

from postgrad.core.annotation import PreferenceItem, Unit, on_branches
from postgrad.train.channels import build_channels
from postgrad.train.loop import train
from postgrad.train.step import Gradients, StepRunner
from postgrad.train.workers import Workers, shares
from unit.train.tiny_training import (
    ALL_CHANNELS,
    KINDS,
    MemoryRun,
    StepSource,
    TinyPolicy,
    config,
    mixed_units,
)


def runner(policy: TinyPolicy, *, budget: int = 10_000, channels: dict | None = None) -> StepRunner:
    return StepRunner(
        policy=policy,
        channels=build_channels(channels or ALL_CHANNELS)[0],
        parameters=list(policy.model.parameters()),
        workers=Workers(),
        token_budget=budget,
        autocast=False,
    )


def gradients(
    units: Sequence[Unit], *, budget: int = 10_000, by_channel: bool = False, channels: dict | None = None
) -> tuple[list[Tensor | None], Gradients]:
    policy = TinyPolicy(dtype=torch.float64)
    shift(policy)
    step = runner(policy, budget=budget, channels=channels).gradients(units, by_channel=by_channel)
    return [p.grad for p in policy.model.parameters()], step


def shift(policy: TinyPolicy) -> None:
    """Move the policy off its reference, so that log-ratios are not 0."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, dtype=parameter.dtype, generator=generator)


@pytest.mark.parametrize("kinds", [KINDS, *[(kind,) for kind in KINDS]])
def test_one_forest_equals_a_forest_per_unit(kinds: tuple[str, ...]):
    """Budget 1 runs every unit alone (8 = 8 x 1); a large one merges all, shared prompts included."""
    units = mixed_units(1, each=4, kinds=kinds)
    channels = {kind: ALL_CHANNELS[kind] for kind in kinds}
    merged, whole = gradients(units, channels=channels)
    alone, parts = gradients(units, budget=1, channels=channels)
    assert parts.tokens > whole.tokens
    torch.testing.assert_close(merged, alone, rtol=1e-6, atol=1e-7)
    for kind in kinds:
        assert whole.loss(kind) == pytest.approx(parts.loss(kind), rel=1e-6)
        assert whole.counts == parts.counts
        metrics = {name: tuple(mean) for name, mean in whole.tallies[kind].metrics.items()}
        assert metrics == {name: pytest.approx(tuple(m), rel=1e-5) for name, m in parts.tallies[kind].metrics.items()}


def test_a_unit_that_is_cut_at_its_branches_gives_the_same_gradients():
    """One unit of six branches on one prompt (a trace's steps, the completions of a group) against a budget that
    holds two of them: the prompt is computed three times or more, every token scored once.
    """
    parts = [unit for kind in KINDS for unit in mixed_units(11, each=6, kinds=(kind,))[1::2]]
    branches = tuple(branch for part in parts for branch in part.branches)
    items, start = [], 0
    for part in parts:
        items += [on_branches(item, {b: start + b for b in range(len(part.branches))}) for item in part.items]
        start += len(part.branches)
    unit = Unit(branches, tuple(items))
    whole, one = gradients([unit])
    cut, many = gradients([unit], budget=20)
    assert many.tokens > one.tokens
    assert many.counts == one.counts
    torch.testing.assert_close(whole, cut, rtol=1e-6, atol=1e-7)


def test_order_of_units_changes_nothing():
    units = mixed_units(2, each=3)
    torch.testing.assert_close(gradients(units)[0], gradients(units[::-1])[0], rtol=1e-6, atol=1e-7)


def test_the_first_step_done_channel_by_channel_is_the_same_step():
    units = mixed_units(3)
    together, step = gradients(units, budget=30)
    apart, first = gradients(units, budget=30, by_channel=True)
    torch.testing.assert_close(together, apart, rtol=1e-6, atol=1e-7)
    assert step.weight_norms is None
    assert first.weight_norms is not None
    for name in KINDS:
        own = {k: v for k, v in ALL_CHANNELS.items() if k == name}
        only, _ = gradients([u for u in units if type(u.items[0]).__name__.lower().startswith(name[:5])], channels=own)
        norm = float(sum((g.square().sum() for g in only if g is not None), start=torch.zeros(())).sqrt())
        assert first.weight_norms[name] == pytest.approx(norm, rel=1e-6)


def test_gradient_of_the_whole_loss_by_finite_differences():
    """Directional derivative of Σ weight · loss in fp64, central difference with h = 1e-5.

    Divergence stays out: its teacher is held still by the gradient and moved by the difference.
    """
    channels = {name: spec for name, spec in ALL_CHANNELS.items() if name != "divergence"}
    units = mixed_units(4, kinds=tuple(channels))
    policy = TinyPolicy(dtype=torch.float64)
    shift(policy)
    step = runner(policy, budget=40, channels=channels)
    generator = torch.Generator().manual_seed(9)
    direction = [torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in step.parameters]

    def moved(distance: float) -> float:
        with torch.no_grad():
            for p, d in zip(step.parameters, direction, strict=True):
                p += distance * d
        result = step.gradients(units, by_channel=False)
        return sum(spec["weight"] * result.loss(name) for name, spec in channels.items())

    h = 1e-5
    numeric = (moved(h) - moved(-2 * h)) / (2 * h)
    moved(h)
    pairs = zip(step.parameters, direction, strict=True)
    exact = sum(float((p.grad * d).sum()) for p, d in pairs if p.grad is not None)
    assert exact == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("budget", [1, 40, 10_000])
@pytest.mark.parametrize("name", KINDS)
def test_other_weights_0_equal_the_channel_alone_bit_for_bit(name: str, budget: int, tmp_path: Path):
    """Items of switched-off channels are in the units of the first run and absent from the second's channels."""
    off = {kind: ALL_CHANNELS[kind] | ({} if kind == name else {"weight": 0.0}) for kind in KINDS}
    weights = []
    for label, channels, kinds in [("off", off, KINDS), ("alone", {name: ALL_CHANNELS[name]}, (name,))]:
        policy = TinyPolicy()

        def own_units(step: int, kinds: tuple[str, ...] = kinds) -> list[Unit]:
            every = mixed_units(step)
            return [unit for k, unit in enumerate(every) if KINDS[k // 2] in kinds]

        settings = config(steps=3, channels=channels, token_budget=budget)
        train(policy, StepSource(own_units), settings, MemoryRun(tmp_path / label))
        weights.append(policy.weights())
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_the_reference_runs_once_a_forest_and_only_when_asked():
    units = mixed_units(0, each=3)
    policy = TinyPolicy()
    runner(policy).gradients(units, by_channel=False)
    assert policy.reference_passes == 1
    policy = TinyPolicy()
    channels = {"cross_entropy": {}, "divergence": {}, "policy_gradient": {}}
    runner(policy, channels=channels).gradients(units, by_channel=False)
    assert policy.reference_passes == 0


def test_preference_at_the_start_is_ln_2_and_reference_kl_0(tmp_path: Path):
    """Policy = reference at step 0; the pairs' weights are 1 here, so the mean is ln 2 itself."""
    run = MemoryRun(tmp_path)
    units = [
        replace(unit, items=(replace(item, weight=1.0),)) if isinstance(item, PreferenceItem) else unit
        for unit in mixed_units(0, kinds=("policy_gradient", "preference"))
        for item in unit.items
    ]
    channels = {"policy_gradient": {"kl_coefficient": 0.1}, "preference": {}}
    train(TinyPolicy(), StepSource(lambda step: units), config(steps=2, channels=channels), run)
    assert run.lines[0]["loss/preference"] == pytest.approx(0.6931472, rel=1e-6)
    assert run.lines[0]["policy_gradient/reference_kl"] == 0
    assert run.lines[1]["policy_gradient/reference_kl"] > 0


def test_shares_split_by_tokens_and_lose_nothing():
    units = mixed_units(0, each=5)
    for n in (1, 2, 3):
        split = shares(units, n)
        assert sorted(map(id, chain(*split))) == sorted(map(id, units))
        sizes = [sum(unit.tokens for unit in share) for share in split]
        assert max(sizes) - min(sizes) <= 2 * max(unit.tokens for unit in units)
    assert shares([], 2) == [[], []]
