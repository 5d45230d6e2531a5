"""Teachers of a run: what the copies are, how they move, and that a resumed run goes on bit for bit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from postgrad.core.annotation import DivergenceItem, Unit
from postgrad.core.errors import ConfigError, DeadChannel
from postgrad.core.forest import build_forest
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import load_policy
from postgrad.models.tiny import byte_tokenizer
from postgrad.objectives.teaching import Taid, Teacher
from postgrad.train.channels import build_channels
from postgrad.train.loop import train
from postgrad.train.teachers import Blend, Teachers, build_teachers, refuse_other_tokenizer
from unit.train.tiny_training import (
    MemoryRun,
    StepSource,
    Twinned,
    config,
    random_tokens,
    random_unit,
    span,
)


def hinted(seed: int) -> list[Unit]:
    rng = np.random.default_rng(seed)
    return [random_unit("divergence", rng) for _ in range(3)]


def alone(seed: int) -> list[Unit]:
    """The teacher in the student's own context."""
    rng = np.random.default_rng(seed)
    units = []
    for _ in range(3):
        prompt, action = random_tokens(rng, 4), random_tokens(rng, 4)
        own = span(0, prompt, action)
        units.append(Unit(((*prompt, *action),), (DivergenceItem(own, own),)))
    return units


def channels(**teacher: Any) -> dict[str, dict[str, Any]]:
    return {"divergence": {"beta": 0.0, "teacher": teacher}}


def run(tmp_path: Path, make: Any, steps: int = 4, **teacher: Any) -> tuple[Twinned, MemoryRun]:
    policy, memory = Twinned(seed=1), MemoryRun(tmp_path)
    train(policy, StepSource(make), config(steps=steps, channels=channels(**teacher), save_every=2), memory)
    return policy, memory


def test_the_average_follows_by_its_rate():
    """φ ← 0.9 φ + 0.1 θ: weights moved by +1 move the copy by 0.1, then by 0.1 · 0.9 more; the frozen one stays."""
    policy = Twinned()
    teachers = Teachers(policy, Teacher(kind="ema", rate=0.1), steps=10)
    teachers.begin()
    before = {name: tensor.clone() for name, tensor in teachers.tensors().items()}
    with torch.no_grad():
        for p in policy.model.parameters():
            p += 1.0
    teachers.after_step(0)
    teachers.after_step(1)
    for name, tensor in teachers.tensors().items():
        torch.testing.assert_close(tensor, before[name] + 0.19)


def test_copies_are_made_once_and_from_the_live_weights():
    """Weights shifted in memory before the run are what the copy holds; nothing is read again by name."""
    policy = Twinned()
    with torch.no_grad():
        policy.model.embed.weight += 0.5
    teachers = Teachers(policy, Teacher(kind="frozen"), steps=10)
    teachers.begin()
    teachers.begin()
    assert policy.twins == 1
    assert torch.equal(teachers.tensors()["frozen/embed.weight"], policy.model.embed.weight)


@pytest.mark.parametrize("kind", ["frozen", "ema", "trust_region"])
def test_a_self_teacher_starts_equal_to_the_student(kind: str, tmp_path: Path):
    """In its own context: divergence 0 at the first step, and no gradient at all is an error that says so."""
    policy, memory = Twinned(seed=1), MemoryRun(tmp_path)
    rate = {} if kind == "frozen" else {"rate": 0.1}
    with pytest.raises(DeadChannel, match="teacher and student agree"):
        train(policy, StepSource(alone), config(steps=1, channels=channels(kind=kind, **rate)), memory)
    assert abs(memory.lines[0]["loss"]) < 1e-6


@pytest.mark.parametrize(
    "teacher",
    [{"kind": "frozen"}, {"kind": "ema", "rate": 0.3}, {"kind": "trust_region", "rate": 0.3}, {"kind": "live"}],
)
def test_only_a_live_teacher_moves_with_the_student(teacher: dict[str, Any], tmp_path: Path):
    """The same four steps under every kind: the losses of the first step agree, the weights at the end do not."""
    policy, memory = run(tmp_path, hinted, **teacher)
    live, live_memory = run(tmp_path / "live", hinted)
    assert memory.lines[0]["loss"] == pytest.approx(live_memory.lines[0]["loss"], rel=1e-5)
    same = all(torch.equal(a, b) for a, b in zip(policy.weights().values(), live.weights().values(), strict=True))
    assert same == (teacher["kind"] == "live")


@pytest.mark.parametrize(
    "teacher",
    [
        {"kind": "frozen"},
        {"kind": "ema", "rate": 0.3},
        {"kind": "trust_region", "rate": 0.3},
        {"kind": "ema", "rate": 0.3, "taid": {"start": 0.3, "step": 0.2, "momentum": 0.5}},
    ],
    ids=str,
)
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(teacher: dict[str, Any], tmp_path: Path):
    whole, _ = run(tmp_path / "whole", hinted, **teacher)
    settings = config(steps=4, channels=channels(**teacher), save_every=2)

    class Killed(Exception):
        pass

    def killed(step: int) -> list[Unit]:
        if step == 3:
            raise Killed
        return hinted(step)

    with pytest.raises(Killed):
        train(Twinned(seed=1), StepSource(killed), settings, MemoryRun(tmp_path / "cut"))
    again = Twinned(seed=1)
    train(again, StepSource(hinted), settings, MemoryRun(tmp_path / "cut"))
    for name, weight in whole.weights().items():
        assert torch.equal(weight, again.weights()[name]), name


def test_taid_moves_as_written():
    """Start 0.2, end 0.8, 10 steps, a = 0.5, b = 0.5.

    Step 0: no δ yet, m = 0: τ = 0.2 + 0.5 · ½ · 0.8 = 0.4. Losses 4 then 3: δ = ¼, m = ⅛, σ(⅛) = 0.531209:
    τ = 0.4 + 0.5 · 0.531209 · 0.6 = 0.559363. The line is at 0.26 and 0.32, below both.
    """
    blend = Blend(Taid(start=0.2, end=0.8, step=0.5, momentum=0.5), steps=10)
    blend.observe(4.0)
    blend.move(0)
    assert blend.tau == pytest.approx(0.4)
    blend.observe(3.0)
    blend.move(1)
    assert blend.tau == pytest.approx(0.559363, abs=1e-6)
    again = Blend(Taid(start=0.2, end=0.8, step=0.5, momentum=0.5), steps=10)
    again.restore(blend.state())
    for one in (blend, again):
        one.observe(2.0)
        one.move(2)
    assert blend.tau == again.tau
    for step in range(3, 10):
        blend.move(step)
    assert blend.tau == 0.8


def test_without_a_step_taid_is_a_line():
    blend = Blend(Taid(start=0.2, end=1.0, step=0.0), steps=4)
    taus = []
    for step in range(4):
        blend.observe(1.0)
        blend.move(step)
        taus.append(blend.tau)
    assert taus == pytest.approx([0.4, 0.6, 0.8, 1.0])


def test_a_loss_that_is_missing_leaves_the_momentum_alone():
    blend = Blend(Taid(step=0.5, momentum=0.5), steps=10)
    for loss in (2.0, math.nan, 1.0):
        blend.observe(loss)
        blend.move(0)
    assert blend.state()["momentum"] == pytest.approx(0.25)  # δ = (2 − 1)/2, once


def test_no_teacher_is_built_where_the_policy_itself_teaches():
    live, _ = build_channels({"divergence": {}})
    assert build_teachers(Twinned(), live, steps=1) is None


def test_a_teacher_pass_reads_only_what_it_needs():
    """Student branch of 3 + 2 tokens, hinted branch of 3 + 4 + 2: the teacher reads 3 + 4 + 1, its last token not."""
    prompt, hint, action = (1, 2, 3), (4, 5, 6, 7), (8, 9)
    unit = Unit(
        ((*prompt, *action), (*prompt, *hint, *action)),
        (DivergenceItem(span(0, prompt, action), span(1, (*prompt, *hint), action)),),
    )
    policy = Twinned()
    teachers = Teachers(policy, Teacher(kind="frozen"), steps=1)
    teachers.begin()
    lengths: list[int] = []
    reader = teachers._copies["frozen"]
    whole = reader.hidden_TD
    reader.hidden_TD = lambda forest: lengths.append(len(forest)) or whole(forest)  # type: ignore[method-assign]
    forest = build_forest([unit])
    nodes = forest.paths[0][1][7:]
    rows = teachers.teaching(forest).view("frozen").predicting_ND(nodes)
    assert lengths == [8]
    torch.testing.assert_close(rows, policy.model.hidden_TD(forest)[forest.parents_T[nodes]])


def test_a_teacher_reads_flat_what_it_reads_as_a_tree():
    """A policy without tree support reads branch by branch; the teacher's part of a forest is no exception."""
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=2))
    unit = Unit(
        ((1, 5, 6, 7), (1, 5, 9, 9, 6, 7)), (DivergenceItem(span(0, (1, 5), (6, 7)), span(1, (1, 5, 9, 9), (6, 7))),)
    )
    forest = build_forest([unit])
    nodes = forest.paths[0][1][4:]
    teachers = Teachers(policy, Teacher(kind="frozen"), steps=1)
    teachers.begin()
    tree = teachers.teaching(forest).view("frozen").predicting_ND(nodes)
    teachers._copies["frozen"]._layout = replace(policy._layout, kind="flat")  # type: ignore[attr-defined]
    torch.testing.assert_close(
        teachers.teaching(forest).view("frozen").predicting_ND(nodes), tree, rtol=1e-4, atol=1e-5
    )


def test_another_tokenizer_is_refused():
    ours, other = byte_tokenizer(), byte_tokenizer()
    refuse_other_tokenizer(ours, other, teacher_name="same")
    other.add_tokens(["<|new|>"])
    with pytest.raises(ConfigError, match=r"another tokenizer.*'<\|new\|>'"):
        refuse_other_tokenizer(ours, other, teacher_name="other")


def test_a_twin_shares_the_frozen_weights_and_copies_the_trained_ones():
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=2))
    twin = policy.twin()
    own, theirs = dict(policy.model.named_parameters()), dict(twin.model.named_parameters())
    assert own.keys() == theirs.keys()
    for name, p in own.items():
        assert (theirs[name] is p) == (not p.requires_grad), name
        assert not theirs[name].requires_grad
        assert torch.equal(theirs[name], p)


def test_a_model_teacher_of_a_loaded_policy(tmp_path: Path):
    """tiny-random teaches a copy of itself whose weights were changed: the loss falls towards 0."""
    policy = load_policy("tiny-random")
    with torch.no_grad():
        for p in policy.model.parameters():
            p += 0.02 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0))
    memory = MemoryRun(tmp_path)
    settings = config(
        steps=6, channels=channels(kind="model", model="tiny-random"), optim={"lr": 1e-3, "weight_decay": 0.0}
    )
    train(policy, StepSource(lambda step: alone(0)), settings, memory)
    losses = [line["loss"] for line in memory.lines]
    assert losses[-1] < 0.7 * losses[0]
