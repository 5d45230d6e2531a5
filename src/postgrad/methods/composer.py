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

from pydantic import Field, model_validator

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.task import Task
from postgrad.envs import load_environment, training_tasks
from postgrad.methods.batches import Batches
from postgrad.methods.completion import Completion
from postgrad.methods.credit import credited
from postgrad.methods.fresh import Rollouts, Sampler, credited_units, differ, hinted_units
from postgrad.methods.supervised import FromRecords, record_batches
from postgrad.objectives.outcome import Credits
from postgrad.run.config import Config

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

Weight = Annotated[float, Field(ge=0)]
RESAMPLE_ROUNDS = 4


class Replay(FromRecords):
    """Recorded rows of one optimiser step."""

    channel = "preference"

    batch_size: int = 8
    """Preference pairs per step."""
    hint_rows: int = 4
    """Recorded error sites per step (when alpha > 0)."""


class Composer(Config):
    """Three channels together: fresh rollouts, hints at their error sites, recorded pairs; weights and both sources."""

    alpha: Weight = 0.0
    """Weight of hinted self-distillation."""
    beta: Weight = 0.0
    """Weight of the trace-replay preference."""
    rollouts: Rollouts = Rollouts()
    """Fresh rollouts."""
    hints: Annotated[int, Field(ge=0)] = 8
    """Failed completions per step that become self-distillation rows (when alpha > 0)."""
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
        """Refuse a policy objective that these rollouts cannot serve.

        Raises:
            ConfigError: a term over all completions with idle ones left out, an objective without its own advantage
                unless another one is named, or credit by token for a loss by completion.
        """
        from postgrad.objectives.policy_objectives import objective_named

        settings = channels["policy_gradient"]
        for term in ("kl_coefficient", "entropy_coefficient"):
            if settings.get(term, 0) > 0 and self.rollouts.credit.idle == "count":
                raise ConfigError(
                    f"channels.policy_gradient.{term} needs the tokens of all completions",
                    got="rollouts.credit.idle: count",
                    do="set method.rollouts.credit.idle: score, or resample",
                )
        name = settings.get("objective", "dr_grpo")
        objective, advantage = objective_named(name), self.rollouts.advantage
        if objective.advantage != advantage and "advantage" not in self.rollouts.model_fields_set:
            raise ConfigError(
                f"objective {name} is defined with advantage {objective.advantage}",
                got=f"none, and {advantage} is the default",
                do=f"set method.rollouts.advantage: {objective.advantage}, or another one if you mean it",
            )
        if objective.surrogate.by_sequence and self.rollouts.credit.by_token(self.rollouts.estimator):
            raise ConfigError(
                f"advantage {advantage} gives each token its own credit, objective {name} has one ratio a completion",
                do="use objective gspo_token, or a discount of 1 and no KL term in the reward",
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
        if rollouts.credit.kl_coefficient > 0:
            policy.freeze_reference()
        self._pairs, self._sites = self._recorded()

    def units(self, step: int) -> Sequence[Unit]:
        """Sample, grade, credit; then add the recorded rows of `step`."""
        rollouts = self._method.rollouts
        groups, idle = self._sampled(step)
        units = credited_units(groups, self._credits(groups), rollouts)
        if self._method.alpha > 0:
            failed = [c for group in groups + idle for c in group if c.grade.score < 1]
            units += hinted_units(self._spread(failed, self._method.hints), self._policy.renderer, self._environment)
        for batches in (self._sites, self._pairs):
            units += batches.units(step) if batches else []
        return units

    def state(self) -> dict[str, Any]:
        """Nothing: tasks, samples and batches are functions of seed, step and weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    def _sampled(self, step: int) -> tuple[list[list[Completion]], list[list[Completion]]]:
        """Groups that learn in `step`, and idle ones that others were sampled in the place of."""
        rollouts = self._method.rollouts
        if rollouts.credit.idle != "resample":
            return self._round(step, 0, rollouts.prompts), []
        kept: list[list[Completion]] = []
        idle: list[list[Completion]] = []
        for again in range(1 + (rollouts.credit.resample_rounds or RESAMPLE_ROUNDS)):
            if len(kept) == rollouts.prompts:
                break
            for group in self._round(step, again, rollouts.prompts - len(kept)):
                (kept if differ(group) else idle).append(group)
        return (kept, idle) if kept else (idle[: rollouts.prompts], idle[rollouts.prompts :])

    def _round(self, step: int, again: int, count: int) -> list[list[Completion]]:
        seed = self._seed * 1_000_003 + step + (again << 40)
        return self._sampler.groups(self._drawn(step, again)[:count], seed=seed)

    def _credits(self, groups: Sequence[Sequence[Completion]]) -> Credits:
        rollouts = self._method.rollouts
        chosen = rollouts.estimator
        greedy: list[float | None] = [None] * len(groups)
        if chosen.needs_greedy:
            greedy = self._sampler.greedy_rewards([group[0].task for group in groups])
        return credited(
            groups,
            greedy,
            policy=self._policy,
            credit=rollouts.credit,
            chosen=chosen,
            limit=rollouts.max_new_tokens,
        )

    def _drawn(self, step: int, again: int = 0) -> list[Task]:
        """Tasks of `step`: shuffled epochs over the pool; in place of idle ones, any."""
        import numpy as np

        count = self._method.rollouts.prompts
        if again:
            order = np.random.default_rng((self._seed, step, again)).permutation(len(self._tasks))
            return [self._tasks[index] for index in order[:count]]
        drawn = []
        for place in range(step * count, (step + 1) * count):
            epoch, index = divmod(place, len(self._tasks))
            order = np.random.default_rng((self._seed, epoch)).permutation(len(self._tasks))
            drawn.append(self._tasks[order[index]])
        return drawn

    def _recorded(self) -> tuple[Batches[Unit] | None, Batches[Unit] | None]:
        replay = self._method.replay
        if replay is None:
            return None, None
        pairs = sites = None
        if self._method.beta > 0:
            pairs = record_batches(self._policy, replay.records, "preference", replay, seed=self._seed).batches
        if self._method.alpha > 0 and replay.hint_rows:
            rows = replay.model_copy(update={"batch_size": replay.hint_rows})
            sites = record_batches(self._policy, replay.records, "divergence", rows, seed=self._seed).batches
        return pairs, sites

    @staticmethod
    def _spread(failed: Sequence[Completion], count: int) -> list[Completion]:
        """At most `count` failures, evenly over the groups they come from."""
        import numpy as np

        return [failed[i] for i in sorted({round(k) for k in np.linspace(0, len(failed) - 1, min(count, len(failed)))})]
