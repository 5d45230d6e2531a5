from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from postgrad.core.message import Message
from postgrad.core.task import Grade, Task
from postgrad.methods.evolution import ES, Evolve
from postgrad.models.policy import Policy, load_policy
from postgrad.train.config import LoopConfig
from postgrad.train.evolution import Evolution
from postgrad.train.workers import Workers
from recipes.coin import Coin
from unit.train.test_evolution import Fit, PointPolicy


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def method(**fields: Any) -> ES:
    return ES.model_validate({"environment": "recipes.coin:Coin", "max_new_tokens": 4, "temperature": 1.0} | fields)


def asked(es: ES, policy: Policy, steps: int, *, seed: int = 0, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Prompts and answers of every step, in the order graded."""
    seen: list[list[str]] = []

    def grade(self: Coin, task: Task, message: Message) -> Grade:
        seen[-1].append(f"{task.id} {message.text}")
        return Grade(float(len(seen[-1]) % 2))

    monkeypatch.setattr(Coin, "grade", grade)
    source = es.source(policy, seed=seed)
    for step in range(steps):
        seen.append([])
        seen[-1].append(str(source.fitness(step)))
    return seen


def test_fitness_is_the_mean_grade_and_the_same_question_has_the_same_answer(policy, monkeypatch):
    """Three tasks graded 1, 0, 1 (the first entry of a step is its list's length 1): 2/3, sampled alike both times."""
    first = asked(method(prompts=3), policy, 2, monkeypatch=monkeypatch)
    assert [step[-1] for step in first] == [str(2 / 3)] * 2
    assert first == asked(method(prompts=3), policy, 2, monkeypatch=monkeypatch)
    assert len({line.split()[0] for step in first for line in step[:-1]}) == 6  # six of eight tasks, none twice


def test_answers_without_a_grade_are_left_out(policy, monkeypatch):
    scores = iter([1.0, float("nan"), 0.0, float("nan"), float("nan")])
    monkeypatch.setattr(Coin, "grade", lambda self, task, message: Grade(next(scores)))
    source = method(prompts=3).source(policy, seed=0)
    assert source.fitness(0) == 0.5
    assert math.isnan(method(prompts=2).source(policy, seed=0).fitness(0))


@pytest.mark.parametrize(
    ("field", "value"),
    [("prompts", 5), ("tasks", 2), ("max_new_tokens", 7), ("temperature", 0.0)],
)
def test_a_number_changes_what_is_asked(field: str, value: Any, policy, monkeypatch):
    before = asked(method(prompts=3), policy, 2, monkeypatch=monkeypatch)
    assert before != asked(method(**({"prompts": 3} | {field: value})), policy, 2, monkeypatch=monkeypatch)
    assert before != asked(method(prompts=3), policy, 2, seed=1, monkeypatch=monkeypatch)


def test_every_number_of_es_is_swept():
    numbers = {name for name, f in ES.model_fields.items() if f.annotation in (int, float)}
    assert numbers == {"prompts", "tasks", "max_new_tokens", "temperature"}
    assert {n for n, f in Evolve.model_fields.items() if f.annotation in (int, float)} == {"pairs", "sigma"}


@pytest.mark.parametrize(("field", "value"), [("pairs", 3), ("sigma", 0.2)])
def test_pairs_and_sigma_change_the_gradient(field: str, value: Any):
    def gradient(evolve: Evolve) -> torch.Tensor:
        point = PointPolicy()
        source = Fit(lambda w, step: -float((w**4).sum()), point, evolve)
        Evolution(point, source, LoopConfig(), list(point.model.parameters()), Workers()).estimate(0)
        return torch.cat([p.grad.flatten() for p in point.model.parameters()])

    base = {"pairs": 2, "sigma": 0.1}
    assert not torch.equal(gradient(Evolve(**base)), gradient(Evolve(**(base | {field: value}))))
