"""Self-distillation on fresh attempts: the policy, told more, teaches itself what it just sampled (SDPO, OPSD).

Each step samples attempts at tasks. An attempt for which there is something to tell becomes a unit: its own tokens
after the task (the student) and after the task with a hint (the teacher). Where the hint comes from, the first of
`hints` that has one:

    sibling    another attempt of the group that succeeded, never the attempt itself; reasoning is left out
    feedback   the environment's own words on the attempt
    template   the template of the error's kind (`signals`)
    reference  the task's reference solution

`sdpo_fresh` is SDPO (sibling, feedback, template); `opsd` is OPSD (reference). An attempt without a hint takes no part.
The sampler's log-probabilities come along, for `channels.divergence.ratio_limit` and a rollout buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from postgrad.core.annotation import DivergenceItem, Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.envs import Environment, load_environment, training_tasks
from postgrad.methods.alignment import reads_alike
from postgrad.methods.batches import Batches
from postgrad.methods.completion import Completion
from postgrad.methods.fresh import Rollouts, Sampler, site_hint
from postgrad.methods.layout import hinted_unit
from postgrad.run.config import Config

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.models.render import Renderer

Count = Annotated[int, Field(ge=1)]
Source = Literal["sibling", "feedback", "template", "reference"]

SOLUTION = "A correct answer to this, from another attempt:\n\n{text}\n\nNow answer it yourself."
FEEDBACK = "An earlier attempt at this failed. What was said about it:\n\n{text}\n\nNow answer it yourself."
REFERENCE = "The reference solution:\n\n{text}\n\nNow answer it yourself, in your own way."
_THINKING = re.compile(r"<think>.*?</think>\s*", re.DOTALL)


class Attempts(Config):
    """Fresh attempts of one optimiser step."""

    environment: str = "function_calling"
    """Where tasks, their checks and their references come from."""
    split: str = "train"
    """Split of its tasks."""
    tasks: Count = 256
    """Tasks that steps draw from."""
    prompts: Count = 8
    """Tasks per step."""
    group_size: Count = 4
    """Attempts per task."""
    max_new_tokens: Count = 96
    """Limit of an attempt."""


class SDPOFresh(Config):
    """SDPO on fresh attempts (self-distillation policy optimisation)."""

    rollouts: Attempts = Attempts()
    """The attempts."""
    hints: Annotated[tuple[Source, ...], Field(min_length=1)] = ("sibling", "feedback", "template")
    """Where hints come from, in the order in which they are asked."""
    success: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Score from which an attempt counts as a success."""
    teach: Literal["all", "failed"] = "all"
    """All attempts that have a hint, or only failed ones."""
    max_hinted: Count = 10240
    """Longest context with a hint, in tokens; an attempt with a longer one takes no part."""

    def weights(self) -> Mapping[str, float]:
        """The divergence alone."""
        return {"divergence": 1.0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a sibling's success without siblings, a source named twice, and a threshold that nothing asks for.

        Raises:
            ConfigError: one of them.
        """
        if len(set(self.hints)) < len(self.hints):
            raise ConfigError("method.hints names a source twice", got=", ".join(self.hints))
        if self.hints == ("sibling",) and self.rollouts.group_size < 2:
            raise ConfigError("hints from siblings need method.rollouts.group_size of 2 or more", got=1)
        if "success" in self.model_fields_set and "sibling" not in self.hints and self.teach == "all":
            raise ConfigError(
                "method.success does nothing without hints from siblings or teach: failed", got=self.success
            )

    def data(self) -> Sequence[Path]:
        """No files."""
        return ()

    def source(self, policy: Policy, *, seed: int) -> AttemptSource:
        """Attempts of `policy`.

        Raises:
            DataError: the environment has no tasks.
        """
        return AttemptSource(self, policy, seed=seed)


class OPSD(SDPOFresh):
    """On-policy self-distillation from reference solutions."""

    rollouts: Attempts = Attempts(group_size=1)
    hints: Annotated[tuple[Source, ...], Field(min_length=1)] = ("reference",)


class AttemptSource:
    """Units of fresh attempts; its only state are the policy's weights."""

    def __init__(self, method: SDPOFresh, policy: Policy, *, seed: int) -> None:
        own = method.rollouts
        self._method, self._renderer, self._seed = method, policy.renderer, seed
        self._environment = load_environment(own.environment)
        tasks = training_tasks(self._environment, own.split, own.tasks)
        if not tasks:
            raise DataError("the environment has no tasks", got=f"{own.environment}/{own.split}")
        self._tasks = Batches([[task] for task in tasks], own.prompts, seed)
        # No advantage is taken here; this one is defined for groups of any size.
        shared = Rollouts(group_size=own.group_size, max_new_tokens=own.max_new_tokens, advantage="reinforce++")
        self._sampler = Sampler(policy, self._environment, shared)

    def units(self, step: int) -> Sequence[Unit]:
        """Attempt the tasks of `step`, then hint."""
        groups = self._sampler.groups(self._tasks.units(step), seed=self._seed * 1_000_003 + step)
        units = [self._unit(attempt, group) for group in groups for attempt in group]
        return [unit for unit in units if unit is not None]

    def state(self) -> dict[str, Any]:
        """Nothing: tasks and samples are functions of seed, step and weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    def _unit(self, attempt: Completion, group: Sequence[Completion]) -> Unit | None:
        import numpy as np

        tokens = attempt.sample.tokens
        if not tokens or (self._method.teach == "failed" and attempt.grade.score >= self._method.success):
            return None
        hint = self._hint(attempt, group)
        if hint is None:
            return None
        hinted = self._renderer.prompt(attempt.task.messages, attempt.task.tools, hint=hint)
        if len(hinted) > self._method.max_hinted or not reads_alike(self._renderer, attempt.prompt, hinted, tokens):
            return None
        unit = hinted_unit(attempt.prompt, hinted, tokens)
        behaviour_T = np.asarray(attempt.sample.logprobs, dtype=np.float32)
        items = tuple(replace(i, behaviour_T=behaviour_T) for i in unit.items if isinstance(i, DivergenceItem))
        return replace(unit, items=items)

    def _hint(self, attempt: Completion, group: Sequence[Completion]) -> str | None:
        tellers: Mapping[Source, Callable[[], str | None]] = {
            "sibling": partial(sibling_hint, attempt, group, self._renderer, success=self._method.success),
            "feedback": partial(feedback_hint, attempt, self._environment),
            "template": partial(site_hint, attempt, self._environment),
            "reference": partial(reference_hint, attempt.task, self._renderer),
        }
        return next((hint for source in self._method.hints if (hint := tellers[source]()) is not None), None)


def sibling_hint(attempt: Completion, group: Sequence[Completion], renderer: Renderer, *, success: float) -> str | None:
    """What the first successful sibling answered; the attempt itself, and an equal one, tell nothing."""
    for other in group:
        if other is not attempt and other.sample.tokens != attempt.sample.tokens and other.grade.score >= success:
            text = without_thinking(renderer.decode(other.sample.tokens))
            if text:
                return SOLUTION.format(text=text)
    return None


def feedback_hint(attempt: Completion, environment: Environment) -> str | None:
    """The environment's words: its results for the attempt's calls, else what its check found."""
    message = attempt.answer.message
    results = environment.respond(attempt.task, message) if message is not None and attempt.grade.score < 1 else ()
    said = [result.text for result in results if result.is_error is not False and result.text.strip()]
    text = "\n".join(said) or attempt.grade.detail
    return FEEDBACK.format(text=text) if text else None


def reference_hint(task: Task, renderer: Renderer) -> str | None:
    """The task's reference solution as the model would write it."""
    reference: Message | None = task.reference
    if reference is None:
        return None
    text = without_thinking(renderer.decode(renderer.action(reference)))
    return REFERENCE.format(text=text) if text else None


def without_thinking(text: str) -> str:
    """`text` without its reasoning."""
    return _THINKING.sub("", text).strip()
