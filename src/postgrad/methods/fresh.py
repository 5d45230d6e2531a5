"""Fresh rollouts on the policy itself: sample, grade, credit, and hint the failures.

A rollout here is one action: sampled token ids with their log-probabilities, the message they spell and the
verifier's grade. The ids that are scored are the ids that were sampled; nothing is tokenised again. A completion that
hit the limit is graded as it stands. Sampling is at temperature 1: at any other the sampler's distribution is not the
one whose log-probabilities are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.annotation import Unit
from postgrad.core.task import Grade, Task
from postgrad.envs import Environment, rollout
from postgrad.methods.layout import hinted_unit, sampled_unit
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
    group_size: Annotated[int, Field(ge=2)] = 4
    """Completions per task; their mean is the baseline."""
    max_new_tokens: Count = 96
    """Completion limit."""
    advantage: Literal["dr_grpo", "grpo"] = "dr_grpo"
    """Estimator of the advantage."""
    hints: int = 8
    """Failed completions per step that become self-distillation rows (when alpha > 0)."""
    idle: Literal["count", "score"] = "count"
    """Groups with equal rewards: only count them (they have no policy gradient), or score them (for a KL term)."""


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

    def _graded(self, task: Task, prompt: tuple[int, ...], sample: Sample) -> Completion:
        message = self.policy.renderer.parse(self.policy.renderer.decode(sample.tokens))
        answer = Answer(message, self.policy.name, sample.stop_reason)
        return Completion(task, prompt, sample, answer, self.environment.grade(task, message))


def credited_units(groups: Sequence[Sequence[Completion]], rollouts: Rollouts) -> list[Unit]:
    """Every completion with its advantage among its siblings; one whose grade is missing is left out."""
    from postgrad.objectives.advantages import ADVANTAGES

    units = []
    for group in groups:
        advantages = ADVANTAGES[rollouts.advantage]([completion.grade.score for completion in group])
        for completion, credit in zip(group, advantages, strict=True):
            if credit is not None:
                units.append(_credited(completion, credit, rollouts))
    return units


def _credited(completion: Completion, advantage: float, rollouts: Rollouts) -> Unit:
    """A completion without advantage has no policy gradient: as an empty one it counts and costs no compute."""
    prompt, sample, limit = completion.prompt, completion.sample, rollouts.max_new_tokens
    if advantage == 0 and rollouts.idle == "count":
        return sampled_unit(prompt[:1], (), (), 0.0, limit)
    return sampled_unit(prompt, sample.tokens, sample.logprobs, advantage, limit)


def hinted_units(failed: Sequence[Completion], renderer: Renderer, environment: Environment) -> list[Unit]:
    """Failed completions as self-distillation rows, where a hint can be made from what the environment said."""
    units = []
    for completion in failed:
        hint = _hint(completion, environment)
        if hint is not None and completion.sample.tokens:
            task = completion.task
            hinted = renderer.prompt(task.messages, task.tools, hint=hint)
            units.append(hinted_unit(completion.prompt, hinted, completion.sample.tokens))
    return units


def _hint(completion: Completion, environment: Environment) -> str | None:
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
