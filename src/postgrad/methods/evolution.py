"""`es`: an evolution strategy on rewards alone, without a backward pass (`train.evolution`).

The fitness of a set of weights is the mean grade of its answers to the tasks of the step. All perturbations of a step
answer the same tasks with the same sampling seed, so they differ by their weights only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from postgrad.core.errors import DataError
from postgrad.core.task import Task
from postgrad.envs import load_environment, training_tasks
from postgrad.methods.batches import Batches
from postgrad.run.config import Config

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

Count = Annotated[int, Field(ge=1)]


class Evolve(Config):
    """How to climb."""

    pairs: Count = 8
    """Antithetic pairs a step: each is two sets of weights to measure."""
    sigma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    """Standard deviation of a perturbation."""
    shaping: Literal["none", "standardise", "rank"] = "none"
    """What the weights follow: fitness itself, its z-score, or its rank from -1/2 to 1/2 (ties share theirs)."""

    def shaped(self, fitness: Sequence[float]) -> list[float]:
        """Fitness as the weights follow it; all 0 where all are equal."""
        if self.shaping == "none":
            return list(fitness)
        mean = sum(fitness) / len(fitness)
        if self.shaping == "standardise":
            spread = math.sqrt(sum((x - mean) ** 2 for x in fitness) / len(fitness))
            return [(x - mean) / spread if spread else 0.0 for x in fitness]
        below = [sum(y < x for y in fitness) + (sum(y == x for y in fitness) - 1) / 2 for x in fitness]
        return [rank / (len(fitness) - 1) - 0.5 for rank in below]


class ES(Config):
    """An evolution strategy: where rewards come from, and how to climb them."""

    environment: str = "function_calling"
    """Where tasks and rewards come from."""
    split: str = "train"
    """Split of its tasks."""
    tasks: Count = 256
    """Tasks that steps draw from."""
    prompts: Count = 8
    """Tasks a step; their mean grade is the fitness."""
    max_new_tokens: Count = 96
    """Completion limit."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Of sampling; 0 is greedy."""
    evolve: Evolve = Evolve()
    """The evolution strategy."""

    def weights(self) -> Mapping[str, float]:
        """No channel: there is no gradient to ask for."""
        return {}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """There are none."""

    def data(self) -> Sequence[Path]:
        """No files."""
        return ()

    def source(self, policy: Policy, *, seed: int) -> Rewards:
        """Rewards of `policy`'s answers.

        Raises:
            ConfigError: an environment that may not be trained on.
            DataError: it has no tasks.
        """
        return Rewards(self, policy, seed=seed)


class Rewards:
    """A `FitnessSource`; its only state are the policy's weights."""

    def __init__(self, method: ES, policy: Policy, *, seed: int) -> None:
        self._method, self._policy, self._seed = method, policy, seed
        self._environment = load_environment(method.environment)
        self._tasks = training_tasks(self._environment, method.split, method.tasks)
        if not self._tasks:
            raise DataError("the environment has no tasks", got=f"{method.environment}/{method.split}")

    @property
    def evolution(self) -> Evolve:
        """How to climb."""
        return self._method.evolve

    def fitness(self, step: int) -> float:
        """Mean grade of the answers to the tasks of `step`; an answer without a grade is left out, NaN without any."""
        from postgrad.models.sampler import generate

        tasks, renderer = self._batches.units(step), self._policy.renderer
        sampled = generate(
            self._policy,
            [renderer.prompt(task.messages, task.tools) for task in tasks],
            temperature=self._method.temperature,
            max_new_tokens=self._method.max_new_tokens,
            seed=self._seed * 1_000_003 + step,
        )
        scores = [
            self._environment.grade(task, renderer.parse(renderer.decode(sample.tokens), tools=task.tools)).score
            for task, (sample,) in zip(tasks, sampled, strict=True)
        ]
        known = [score for score in scores if score is not None and math.isfinite(score)]
        return sum(known) / len(known) if known else math.nan

    def state(self) -> dict[str, Any]:
        """Nothing: tasks and samples are functions of seed, step and weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    @cached_property
    def _batches(self) -> Batches[Task]:
        return Batches([[task] for task in self._tasks], self._method.prompts, self._seed)
