from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from postgrad.core.errors import ConfigError, DeadChannel, TrainingFault
from postgrad.methods.evolution import Evolve
from postgrad.train.config import LoopConfig, TrainConfig
from postgrad.train.evolution import Evolution
from postgrad.train.loop import train
from postgrad.train.workers import Workers
from unit.train.tiny_training import MemoryRun


class Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
        self.v = nn.Parameter(torch.tensor([[3.0]]))


class PointPolicy:
    """A policy that is nothing but four weights."""

    name = "point"

    def __init__(self) -> None:
        self.model = Point()

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])


@dataclass
class Fit:
    measure: Callable[[torch.Tensor, int], float]
    policy: PointPolicy
    evolution: Evolve = field(default_factory=Evolve)
    asked: list[int] = field(default_factory=list)

    def fitness(self, step: int) -> float:
        self.asked.append(step)
        return self.measure(self.policy.weights(), step)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        return None


SLOPE = torch.tensor([1.0, 2.0, -1.0, 0.5])


def linear(w: torch.Tensor, step: int) -> float:
    return float(SLOPE @ w)


def settings(steps: int, **sections: Any) -> TrainConfig:
    optim = {"name": "sgd", "lr": 0.1, "clip_norm": None} | sections.pop("optim", {})
    return TrainConfig.model_validate({"optim": optim, "loop": {"steps": steps, "save_every": 1000, **sections}})


class OneWorker:
    """A share of the pairs, as one of two workers would have it."""

    def __init__(self, rank: int, all_of_them: list[Any]) -> None:
        self.rank, self.size, self._all = rank, 2, all_of_them

    def gathered(self, value: Any) -> list[Any]:
        self._all.append(value)
        return self._all


def test_one_step_of_sgd_is_the_textbook_update(tmp_path: Path):
    """For a linear fitness s·w, (R⁺ − R⁻)/2 = σ s·ε exactly, so w moves by lr/K Σ (s·ε_k) ε_k: along the noise
    itself, which is drawn again here from the estimator's own generator.
    """
    policy = PointPolicy()
    before = policy.weights()
    source = Fit(linear, policy, Evolve(pairs=3, sigma=0.25))
    estimator = Evolution(policy, source, LoopConfig(), list(policy.model.parameters()), Workers())
    noise = [torch.cat([e.flatten() for e in estimator._noise(0, k)]) for k in range(3)]
    expected = sum((float(SLOPE @ e) * e for e in noise), start=torch.zeros(4)) * 0.1 / 3
    train(policy, source, settings(1), MemoryRun(tmp_path))
    torch.testing.assert_close(policy.weights() - before, expected, rtol=1e-4, atol=1e-6)
    assert source.asked == [0] * 6


def test_the_estimate_is_the_gradient_on_average():
    """Mean over 1,000 pairs of (s·ε) ε is s. Entry i has variance |s|² + s_i² <= 10.25, so a standard error of 0.1."""
    policy = PointPolicy()
    source = Fit(linear, policy, Evolve(pairs=1000, sigma=0.1))
    Evolution(policy, source, LoopConfig(), list(policy.model.parameters()), Workers()).estimate(0)
    gradient = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    assert float((gradient + SLOPE).abs().max()) < 0.35


def test_weights_are_as_they_were_after_measuring_bit_for_bit():
    policy = PointPolicy()
    before = policy.weights()
    source = Fit(linear, policy, Evolve(pairs=5, sigma=0.1))
    Evolution(policy, source, LoopConfig(), list(policy.model.parameters()), Workers()).estimate(3)
    assert torch.equal(policy.weights(), before)


def test_two_workers_measure_half_each_and_have_the_same_gradient():
    def gradient(workers: Any, source: Fit) -> torch.Tensor:
        policy = source.policy
        Evolution(policy, source, LoopConfig(), list(policy.model.parameters()), workers).estimate(1)
        return torch.cat([p.grad.flatten() for p in policy.model.parameters()])

    def source() -> Fit:
        return Fit(linear, PointPolicy(), Evolve(pairs=4, sigma=0.1))

    alone = gradient(Workers(), source())
    shared: list[Any] = []
    first, second = source(), source()
    gradient(OneWorker(0, shared), first)
    assert torch.equal(gradient(OneWorker(1, shared), second), alone)
    assert len(first.asked) == len(second.asked) == 4


def test_a_pair_that_was_not_measured_is_left_out():
    """The third answer is NaN: pair 1 of 0..2 is gone, and K is 2."""

    def broken(w: torch.Tensor, step: int) -> float:
        calls.append(1)
        return math.nan if len(calls) == 3 else linear(w, step)

    calls: list[int] = []
    policy = PointPolicy()
    estimator = Evolution(
        policy,
        Fit(broken, policy, Evolve(pairs=3, sigma=0.1)),
        LoopConfig(),
        list(policy.model.parameters()),
        Workers(),
    )
    assert estimator.estimate(0).metrics["pairs"] == 2
    noise = [torch.cat([e.flatten() for e in estimator._noise(0, k)]) for k in (0, 2)]
    expected = -sum((float(SLOPE @ e) * e for e in noise), start=torch.zeros(4)) / 2
    gradient = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)


def test_nothing_measured_is_a_fault_and_equal_fitness_is_death(tmp_path: Path):
    policy = PointPolicy()
    with pytest.raises(TrainingFault, match="no perturbation could be measured"):
        train(policy, Fit(lambda w, s: math.nan, policy), settings(1), MemoryRun(tmp_path / "a"))
    policy = PointPolicy()
    with pytest.raises(DeadChannel, match=r"'fitness': nothing to train on for 3 steps.*same fitness"):
        train(policy, Fit(lambda w, s: 1.0, policy), settings(9, patience=3), MemoryRun(tmp_path / "b"))


def test_it_climbs_and_resumes_bit_for_bit(tmp_path: Path):
    """−|w|² from |w|² = 14.25: thirty steps more than halve it; stopped at step 20 and resumed, the same weights."""

    class Stop(Exception):
        pass

    def hill(w: torch.Tensor, step: int) -> float:
        return -float(w @ w)

    def stopping(w: torch.Tensor, step: int) -> float:
        if step == 20 and not stopped:
            stopped.append(1)
            raise Stop
        return hill(w, step)

    stopped: list[int] = []
    whole, broken = PointPolicy(), PointPolicy()
    train(whole, Fit(hill, whole), settings(30, optim={"lr": 0.02}), MemoryRun(tmp_path / "whole"))
    assert float(whole.weights() @ whole.weights()) < 7
    again = settings(30, optim={"lr": 0.02}, save_every=7)
    with pytest.raises(Stop):
        train(broken, Fit(stopping, broken), again, MemoryRun(tmp_path / "broken"))
    resumed = PointPolicy()
    train(resumed, Fit(stopping, resumed), again, MemoryRun(tmp_path / "broken"))
    assert torch.equal(resumed.weights(), whole.weights())


@pytest.mark.parametrize(
    ("shaping", "expected"),
    [("none", [1, 3, 3, 5]), ("standardise", [-math.sqrt(2), 0, 0, math.sqrt(2)]), ("rank", [-0.5, 0, 0, 0.5])],
)
def test_shaping_by_hand(shaping: str, expected: Sequence[float]):
    """1 3 3 5: mean 3, variance (4 + 0 + 0 + 4)/4 = 2. Ranks 0, 1.5, 1.5, 3 of 3, less a half."""
    assert Evolve(shaping=shaping).shaped([1, 3, 3, 5]) == pytest.approx(expected)


def test_equal_fitness_is_shaped_to_nothing():
    assert Evolve(shaping="standardise").shaped([2, 2]) == [0, 0]
    assert Evolve(shaping="rank").shaped([2, 2]) == [0, 0]


def test_noise_on_embeddings_is_refused_without_channels():
    with pytest.raises(ValueError, match="embedding_noise is for cross_entropy alone"):
        settings(1, embedding_noise=1.0)


def test_what_needs_a_backward_pass_is_refused(tmp_path: Path):
    policy = PointPolicy()
    for wrong in ({"reuse": {"parts": 2}}, {"dtype": "bfloat16"}):
        with pytest.raises(ConfigError, match="for methods with a backward pass"):
            train(policy, Fit(linear, policy), settings(1, **wrong), MemoryRun(tmp_path))
