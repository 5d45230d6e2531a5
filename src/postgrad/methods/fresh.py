"""Fresh rollouts on the policy itself: sample, grade, credit, and hint the failures.

A rollout here is one action: sampled token ids with their log-probabilities, the message they spell and the
verifier's grade. The ids that are scored are the ids that were sampled; nothing is tokenised again. A completion that
hit the limit is graded as it stands. Sampling is at temperature 1: at any other the sampler's distribution is not the
one whose log-probabilities are trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.task import Grade, Task
from postgrad.envs import Environment, rollout
from postgrad.methods.credit import Credit
from postgrad.methods.layout import hinted_unit, idle_unit, sampled_unit
from postgrad.objectives.outcome import Credits, Estimator
from postgrad.run.config import Config
from postgrad.signals.hints import template_hint
from postgrad.signals.sites import LEARNABLE, find_sites

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.models.render import Renderer
    from postgrad.models.sampler import Sample

Count = Annotated[int, Field(ge=1)]


class Rollouts(Config):
    """Fresh rollouts of one optimiser step."""

    environment: str = "function_calling"
    """Where tasks and rewards come from."""
    split: str = "train"
    """Split of its tasks."""
    tasks: Count = 256
    """Tasks that steps draw from."""
    prompts: Count = 8
    """Tasks per step."""
    group_size: Count = 4
    """Completions per task; most estimators compare them with each other and need two."""
    max_new_tokens: Count = 96
    """Completion limit."""
    advantage: Literal[
        "dr_grpo", "grpo", "rloo", "opo", "remax", "lite_ppo", "gfpo", "reinforce++", "reinforce++_baseline"
    ] = "dr_grpo"
    """Estimator of the advantage."""
    credit: Credit = Credit()
    """Its settings, and what shapes the reward."""
    hints: int = 8
    """Failed completions per step that become self-distillation rows (when alpha > 0)."""
    idle: Literal["count", "score", "resample"] = "count"
    """Groups with equal rewards: only count them (they have no policy gradient), score them (for a KL term or an
    entropy bonus), or put others in their place (dynamic sampling)."""

    @model_validator(mode="after")
    def _credit_is_defined(self) -> Rollouts:
        self.credit.check(limit=self.max_new_tokens, idle=self.idle)
        by_group = self.estimator.by_group  # made here, so that what it refuses is refused before anything is loaded
        if self.idle == "resample" and not by_group:
            raise ConfigError(f"idle: resample with advantage {self.advantage}: groups with equal rewards are not idle")
        return self

    @property
    def estimator(self) -> Estimator:
        """The advantage estimator with its settings."""
        return self.credit.estimator(self.advantage, group_size=self.group_size)


@dataclass(frozen=True)
class Completion:
    """One sampled action of the policy on a task."""

    task: Task
    prompt: tuple[int, ...]
    sample: Sample
    answer: Answer
    grade: Grade


@dataclass(frozen=True)
class Sampler:
    """Samples groups of completions from `policy` and has them graded."""

    policy: Policy
    environment: Environment
    rollouts: Rollouts

    def groups(self, tasks: Sequence[Task], *, seed: int) -> list[list[Completion]]:
        """`group_size` completions for each task."""
        from postgrad.models.sampler import generate

        renderer = self.policy.renderer
        prompts = [renderer.prompt(task.messages, task.tools) for task in tasks]
        sampled = generate(
            self.policy,
            prompts,
            n=self.rollouts.group_size,
            temperature=1.0,
            max_new_tokens=self.rollouts.max_new_tokens,
            seed=seed,
        )
        return [
            [self._graded(task, tuple(prompt), sample) for sample in group]
            for task, prompt, group in zip(tasks, prompts, sampled, strict=True)
        ]

    def greedy_rewards(self, tasks: Sequence[Task]) -> list[float | None]:
        """The grade of each task's greedy completion."""
        from postgrad.models.sampler import generate

        renderer, limit = self.policy.renderer, self.rollouts.max_new_tokens
        prompts = [renderer.prompt(task.messages, task.tools) for task in tasks]
        sampled = generate(self.policy, prompts, temperature=0.0, max_new_tokens=limit, seed=0)
        graded = [
            self._graded(task, tuple(prompt), sample)
            for task, prompt, (sample,) in zip(tasks, prompts, sampled, strict=True)
        ]
        return [completion.grade.score for completion in graded]

    def _graded(self, task: Task, prompt: tuple[int, ...], sample: Sample) -> Completion:
        message = self.policy.renderer.parse(self.policy.renderer.decode(sample.tokens))
        answer = Answer(message, self.policy.name, sample.stop_reason)
        return Completion(task, prompt, sample, answer, self.environment.grade(task, message))


def credited_units(groups: Sequence[Sequence[Completion]], credits: Credits, rollouts: Rollouts) -> list[Unit]:
    """Every completion with its credit; one whose credit is missing is left out."""
    limit, units = rollouts.max_new_tokens, []
    for group, own in zip(groups, credits, strict=True):
        for completion, credit in zip(group, own, strict=True):
            if credit is None:
                continue
            prompt, sample = completion.prompt, completion.sample
            if rollouts.idle != "count" or np.any(credit):
                units.append(sampled_unit(prompt, sample.tokens, sample.logprobs, credit, limit))
            else:
                units.append(idle_unit(prompt, len(sample.tokens), limit))
    return units


def differ(group: Sequence[Completion]) -> bool:
    """Whether the grades of a group are not all the same."""
    return len({c.grade.score for c in group if not math.isnan(c.grade.score)}) > 1


def hinted_units(failed: Sequence[Completion], renderer: Renderer, environment: Environment) -> list[Unit]:
    """Failed completions as self-distillation rows, where a hint can be made from what the environment said."""
    units = []
    for completion in failed:
        hint = site_hint(completion, environment)
        if hint is not None and completion.sample.tokens:
            task = completion.task
            hinted = renderer.prompt(task.messages, task.tools, hint=hint)
            units.append(hinted_unit(completion.prompt, hinted, completion.sample.tokens))
    return units


def site_hint(completion: Completion, environment: Environment) -> str | None:
    """The template hint of the first learnable site in the completion's own trace."""
    (trace,) = rollout(_Replayed(completion.answer), environment, [completion.task], Sampling())
    sites = (site for site in find_sites(trace) if site.verdict in LEARNABLE)
    return next((hint for site in sites if (hint := template_hint(site, trace))), None)


@dataclass(frozen=True)
class _Replayed:
    """An actor that gives an answer it gave before, so that a completion is recorded as any rollout is."""

    given: Answer
    kind: str = "replayed answer"

    @property
    def name(self) -> str:
        return self.given.model

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """The same answer for every ask."""
        return [self.given for _ in asks]
