"""The three-channel method: fresh rollouts, hinted self-distillation at error sites, trace-replay preferences.

    loss = policy_gradient + alpha · divergence + beta · preference

- policy_gradient: each step samples `group_size` completions for `prompts` tasks and credits them by their siblings.
- divergence: the policy with a hint teaches the policy without it on the same action tokens (SDPO; formulas D.3).
  Actions come from failed rollouts of this step (hint from the environment's words) and from recorded error sites.
- preference: pairs from replaying recorded steps with teachers.

alpha = beta = 0 is plain RL. Each term alone is the same method with the other weights at 0.
Not covered: tasks chosen by difficulty, multi-turn rollouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.task import Task
from postgrad.envs import load_environment, training_tasks
from postgrad.methods.batches import Batches
from postgrad.methods.fresh import Completion, Rollouts, Sampler, credited_units, hinted_units
from postgrad.methods.supervised import FromRecords, record_batches
from postgrad.run.config import Config

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

Weight = Annotated[float, Field(ge=0)]


class Replay(FromRecords):
    """Recorded rows of one optimiser step."""

    channel = "preference"

    batch_size: int = 8
    """Preference pairs per step."""
    hint_rows: int = 4
    """Recorded error sites per step (when alpha > 0)."""


class Composer(Config):
    """Weights and the two sources of data."""

    alpha: Weight = 0.0
    """Weight of hinted self-distillation."""
    beta: Weight = 0.0
    """Weight of the trace-replay preference."""
    rollouts: Rollouts = Rollouts()
    """Fresh rollouts."""
    replay: Replay | None = None
    """Recorded rows; needed for beta > 0."""

    @model_validator(mode="after")
    def _pairs_need_records(self) -> Composer:
        if self.beta > 0 and self.replay is None:
            raise ValueError("beta > 0 needs replay.records, the pairs that `postgrad build` wrote")
        return self

    def weights(self) -> Mapping[str, float]:
        """Policy gradient with weight 1, the others where their weight is above 0."""
        weights = {"policy_gradient": 1.0, "divergence": self.alpha, "preference": self.beta}
        return {name: weight for name, weight in weights.items() if weight > 0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a KL term that idle completions would never feel, and half of an objective.

        Raises:
            ConfigError: `kl_coefficient` above 0 with ``idle: count``, or an objective whose advantage is another's.
        """
        credit = channels["policy_gradient"]
        if credit.get("kl_coefficient", 0) > 0 and self.rollouts.idle == "count":
            raise ConfigError(
                "channels.policy_gradient.kl_coefficient needs the tokens of all completions",
                got="rollouts.idle: count",
                do="set method.rollouts.idle: score",
            )
        if credit.get("objective", "dr_grpo") != self.rollouts.advantage:
            raise ConfigError(
                "channels.policy_gradient.objective and method.rollouts.advantage are two halves of one objective",
                got=f"{credit.get('objective', 'dr_grpo')} and {self.rollouts.advantage}",
                expected="the same name twice",
            )

    def data(self) -> Sequence[Path]:
        """The recorded rows, where there are any."""
        return () if self.replay is None else (self.replay.records,)

    def source(self, policy: Policy, *, seed: int) -> ComposerSource:
        """Rollouts on `policy` and batches of recorded rows.

        Raises:
            DataError: a weighted channel has no rows.
        """
        return ComposerSource(self, policy, seed=seed)


class ComposerSource:
    """Units of all three channels, step by step; its only state are the policy's weights."""

    def __init__(self, method: Composer, policy: Policy, *, seed: int) -> None:
        self._method, self._policy, self._seed = method, policy, seed
        rollouts = method.rollouts
        self._environment = load_environment(rollouts.environment)
        self._tasks = training_tasks(self._environment, rollouts.split, rollouts.tasks)
        if not self._tasks:
            raise DataError("the environment has no tasks", got=f"{rollouts.environment}/{rollouts.split}")
        self._sampler = Sampler(policy, self._environment, rollouts)
        self._pairs, self._sites = self._recorded()

    def units(self, step: int) -> Sequence[Unit]:
        """Sample, grade, credit; then add the recorded rows of `step`."""
        rollouts = self._method.rollouts
        groups = self._sampler.groups(self._drawn(step), seed=self._seed * 1_000_003 + step)
        units = credited_units(groups, rollouts)
        if self._method.alpha > 0:
            failed = [c for group in groups for c in group if c.grade.score < 1]
            units += hinted_units(self._spread(failed, rollouts.hints), self._policy.renderer, self._environment)
        for batches in (self._sites, self._pairs):
            units += batches.units(step) if batches else []
        return units

    def state(self) -> dict[str, Any]:
        """Nothing: tasks, samples and batches are functions of seed, step and weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    def _drawn(self, step: int) -> list[Task]:
        """Tasks of `step`: shuffled epochs over the pool."""
        count = self._method.rollouts.prompts
        drawn = []
        for place in range(step * count, (step + 1) * count):
            epoch, index = divmod(place, len(self._tasks))
            order = np.random.default_rng((self._seed, epoch)).permutation(len(self._tasks))
            drawn.append(self._tasks[order[index]])
        return drawn

    def _recorded(self) -> tuple[Batches | None, Batches | None]:
        replay = self._method.replay
        if replay is None:
            return None, None
        pairs = sites = None
        if self._method.beta > 0:
            pairs = record_batches(self._policy, replay.records, "preference", replay, seed=self._seed)
        if self._method.alpha > 0 and replay.hint_rows:
            rows = replay.model_copy(update={"batch_size": replay.hint_rows})
            sites = record_batches(self._policy, replay.records, "divergence", rows, seed=self._seed)
        return pairs, sites

    @staticmethod
    def _spread(failed: Sequence[Completion], count: int) -> list[Completion]:
        """At most `count` failures, evenly over the groups they come from."""
        return [failed[i] for i in sorted({round(k) for k in np.linspace(0, len(failed) - 1, min(count, len(failed)))})]
