"""Fresh rollouts on the policy itself: sample, grade, credit, and hint the failures.

A rollout is sampled token ids with their log-probabilities, the message they spell and the verifier's grade; with
`max_turns` above 1 a refused call is answered with the tool's words and the policy may go on (`turns`). The ids that
are scored are the ids that were sampled; nothing is tokenised again. A completion that hit the limit is graded as it
stands.

Sampling is at temperature 1 over the whole vocabulary: at any other temperature, or with top_p, top_k or min_p, the
sampler's distribution is not the one whose log-probabilities are trained, and such a setting is refused. Completions
are drawn by the policy itself, or by a server that has its weights (`engine`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.annotation import FloatsT, PolicyGradientItem, Span, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.task import Task
from postgrad.envs import Environment, rollout
from postgrad.methods.completion import Completion
from postgrad.methods.credit import Credit
from postgrad.methods.layout import hinted_unit, idle_unit, sampled_unit
from postgrad.methods.turns import Attempt, play, whole
from postgrad.models.engines.config import EngineConfig
from postgrad.models.sample import Sample
from postgrad.objectives.outcome import Credits, Estimator
from postgrad.run.config import Config
from postgrad.signals.error_sites.sites import LEARNABLE, find_sites
from postgrad.signals.hints.hint import template_hint

if TYPE_CHECKING:
    from postgrad.models.engines.served import ServedSampler
    from postgrad.models.policy import Policy
    from postgrad.models.render import Renderer

TRUNCATIONS = ("temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty")
"""Settings of samplers that would change what is sampled and not what is trained."""

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
    max_turns: Count = 1
    """Turns of a completion: after a call that the tool refused there may be another one."""
    engine: EngineConfig | None = None
    """A server that samples for the policy; null is the policy itself."""

    @model_validator(mode="before")
    @classmethod
    def _samples_what_is_trained(cls, data: Any) -> Any:
        named = [name for name in TRUNCATIONS if isinstance(data, dict) and name in data]
        if named:
            raise ConfigError(
                f"rollouts.{named[0]}: completions are sampled at temperature 1 over the whole vocabulary",
                got=data[named[0]],
                expected="no such setting, because the log-probabilities that are trained are those",
            )
        return data

    @model_validator(mode="after")
    def _credit_is_defined(self) -> Rollouts:
        self.credit.check(limit=self.max_new_tokens)
        for name in ("kl_coefficient", "overlong_cache"):
            if self.max_turns > 1 and name in self.credit.model_fields_set and getattr(self.credit, name):
                raise ConfigError(f"credit.{name} with rollouts.max_turns above 1", do="leave one of them out")
        by_group = self.estimator.by_group  # made here, so that what it refuses is refused before anything is loaded
        if self.credit.idle == "resample" and not by_group:
            raise ConfigError(
                f"credit.idle: resample with advantage {self.advantage}: groups with equal rewards are not idle"
            )
        return self

    @property
    def estimator(self) -> Estimator:
        """The advantage estimator with its settings."""
        return self.credit.estimator(self.advantage, group_size=self.group_size)


@dataclass(frozen=True)
class Sampler:
    """Samples groups of completions from `policy` and has them graded."""

    policy: Policy
    environment: Environment
    rollouts: Rollouts

    def groups(self, tasks: Sequence[Task], *, seed: int) -> list[list[Completion]]:
        """`group_size` completions for each task."""
        size = self.rollouts.group_size
        flat = self._attempted(tasks, n=size, temperature=1.0, seed=seed)
        return [flat[place : place + size] for place in range(0, len(flat), size)]

    def greedy_rewards(self, tasks: Sequence[Task]) -> list[float | None]:
        """The grade of each task's greedy completion."""
        return [c.grade.score for c in self._attempted(tasks, n=1, temperature=0.0, seed=0)]

    def _attempted(self, tasks: Sequence[Task], *, n: int, temperature: float, seed: int) -> list[Completion]:
        """`n` graded completions of each task, one after the other."""
        renderer = self.policy.renderer
        prompts = [renderer.prompt(task.messages, task.tools) for task in tasks]
        attempts = [Attempt(t, tuple(p)) for t, p in zip(tasks, prompts, strict=True) for _ in range(n)]
        sampled = self._sampled(prompts, n=n, temperature=temperature, seed=seed)

        def draw(contexts: Sequence[Sequence[int]], turn: int) -> list[Sample]:
            later = self._sampled(contexts, n=1, temperature=temperature, seed=seed + (turn << 52))
            return [sample for (sample,) in later]

        play(
            attempts,
            [sample for group in sampled for sample in group],
            draw,
            renderer=renderer,
            environment=self.environment,
            max_turns=self.rollouts.max_turns,
        )
        return [self._graded(attempt) for attempt in attempts]

    def _sampled(
        self, prompts: Sequence[Sequence[int]], *, n: int, temperature: float, seed: int
    ) -> list[list[Sample]]:
        """Completions of the policy, or of the server that samples for it."""
        limit = self.rollouts.max_new_tokens
        if self._server is not None:
            return self._server.generate(prompts, n=n, temperature=temperature, max_new_tokens=limit, seed=seed)
        from postgrad.models.sampler import generate

        return generate(self.policy, prompts, n=n, temperature=temperature, max_new_tokens=limit, seed=seed)

    @cached_property
    def _server(self) -> ServedSampler | None:
        if self.rollouts.engine is None:
            return None
        from postgrad.models.engines.served import ServedSampler

        return ServedSampler(self.policy, self.rollouts.engine)

    def _graded(self, attempt: Attempt) -> Completion:
        reason, message = attempt.samples[-1].stop_reason, attempt.action
        sample = Sample(attempt.tokens, tuple(x for one in attempt.samples for x in one.logprobs), reason)
        answer, grade = Answer(message, self.policy.name, reason), self.environment.grade(attempt.task, message)
        return Completion(attempt.task, attempt.prompt, sample, answer, grade, tuple(attempt.observed))


def credited_units(groups: Sequence[Sequence[Completion]], credits: Credits, rollouts: Rollouts) -> list[Unit]:
    """Every completion with its credit; one whose credit is missing is left out."""
    import numpy as np

    limit, units = rollouts.max_new_tokens * rollouts.max_turns, []
    for group, own in zip(groups, credits, strict=True):
        for completion, credit in zip(group, own, strict=True):
            if credit is None:
                continue
            prompt, sample = completion.prompt, completion.sample
            if rollouts.credit.idle == "count" and not np.any(credit):
                units.append(idle_unit(prompt, len(sample.tokens), limit))
            elif completion.observed:
                units.append(turns_unit(completion, credit, limit))
            else:
                units.append(sampled_unit(prompt, sample.tokens, sample.logprobs, credit, limit))
    return units


def turns_unit(completion: Completion, credit: float | FloatsT, limit: int) -> Unit:
    """A completion of several turns: one branch, of which the sampled tokens are scored."""
    import numpy as np

    sample = completion.sample
    branch, places = whole(completion.prompt, sample.tokens, completion.observed)
    behaviour = np.asarray(sample.logprobs, dtype=np.float32)
    return Unit((branch,), (PolicyGradientItem(Span(0, places), credit, behaviour, max_length=limit),))


def differ(group: Sequence[Completion]) -> bool:
    """Whether the grades of a group are not all the same."""
    return len({c.grade.score for c in group if not math.isnan(c.grade.score)}) > 1


def hinted_units(failed: Sequence[Completion], renderer: Renderer, environment: Environment) -> list[Unit]:
    """Failed completions as self-distillation rows, where a hint can be made from what the environment said."""
    units = []
    for completion in failed:
        if completion.observed:
            raise ConfigError("hints for completions of several turns", do="set rollouts.max_turns: 1 or alpha: 0")
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
