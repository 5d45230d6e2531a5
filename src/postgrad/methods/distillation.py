"""Distillation over records: `distillation` (a teacher's distributions on given actions) and `gkd` (on own ones too).

    loss = alpha · divergence + (1 − alpha) · cross_entropy

The teacher is another local model with the student's tokenizer, or a copy of the policy
(`channels.divergence.teacher`), on the very tokens of the student; or it was logged: records with soft targets, its
likeliest tokens one by one (``targets: logged``, which needs ``channels.divergence.support: top_k``).

GKD (arXiv 2306.13649) puts a completion that the student samples now in the place of the row's action with probability
`on_policy`; which rows is drawn by seed, step and place. The divergence counts the tokens it was computed on.

Not covered: teachers with another tokenizer (learn their texts with `sft`), teachers behind HTTP (log them first).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, LoggedTeacher, Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.record import Record
from postgrad.methods.alignment import logged_over, logged_teacher, refuse_own_teacher
from postgrad.methods.batches import Batches
from postgrad.methods.layout import Channel, Layout, action_span
from postgrad.methods.supervised import FromRecords, no_rows
from postgrad.signals.rows.records import read_records

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

Share = Annotated[float, Field(ge=0, le=1)]


class Distillation(FromRecords):
    """Soft distillation on given actions."""

    channel: ClassVar[Channel] = "divergence"

    alpha: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Weight of the divergence; the rest is cross-entropy on the same tokens."""
    targets: Literal["model", "logged"] = "model"
    """The teacher of `channels.divergence.teacher`, or the soft targets that came with the records."""

    def weights(self) -> Mapping[str, float]:
        """As `alpha` says."""
        weights = {"divergence": self.alpha, "cross_entropy": 1 - self.alpha}
        return {name: weight for name, weight in weights.items() if weight > 0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a teacher that is the student in the same context, and logged targets without top_k.

        Raises:
            ConfigError: either.
        """
        settings = channels["divergence"]
        if self.targets == "logged":
            if settings.get("support") != "top_k":
                raise ConfigError(
                    "logged teachers need channels.divergence.support: top_k", got=settings.get("support")
                )
        else:
            refuse_own_teacher(settings)

    def source(self, policy: Policy, *, seed: int) -> DistillationSource:
        """Lay the rows out for `policy`.

        Raises:
            DataError: there is none, or logged targets are over other tokens than the student's.
        """
        return DistillationSource(policy, self._batches(policy, seed), self, on_policy=0.0, seed=seed)

    def _batches(self, policy: Policy, seed: int) -> Batches[Row]:
        layout = Layout(policy.renderer, self.max_length)
        others: list[str] = []

        def build(record: Record) -> Row | None:
            return self._row(layout, record, others)

        groups = layout.grouped(read_records(self.records), build, "distillation")
        if others:
            raise DataError(
                f"soft targets of {len(others)} rows are over other tokens than the student's",
                got=f"targets for {others[0]}",
                expected=f"the tokens of {policy.name}",
                do="build them for this student, or learn the rows with method sft",
            )
        if not groups:
            raise no_rows(self.records, "divergence", layout)
        return Batches(groups, self.batch_size, seed)

    def _row(self, layout: Layout, record: Record, others: list[str]) -> Row | None:
        logged = self.targets == "logged"
        if record.hint is not None or (logged and record.soft is None):
            return None
        prompt, action = tuple(layout.prompt(record)), tuple(layout.renderer.action(record.action))
        if not layout.fits(len(prompt) + len(action)):
            return None
        if not logged:
            return Row(prompt, action, record.weight)
        assert record.soft is not None
        covered = logged_over(layout.renderer, record.soft, action)
        if not covered:
            others.append(record.soft.student)
            return None
        return Row(prompt, action[:covered], record.weight, logged_teacher(record.soft))


class GKD(Distillation):
    """Generalized knowledge distillation: given actions mixed with the student's own."""

    targets: Literal["model"] = "model"
    """A logged teacher knows nothing of what the student will sample."""
    on_policy: Share = 0.5
    """Probability that a row's action is the student's own."""
    max_new_tokens: Annotated[int, Field(ge=1)] = 128
    """Limit of the student's completions."""

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse what distillation does, and a limit for completions that are never sampled.

        Raises:
            ConfigError: either.
        """
        super().check(channels)
        if self.on_policy == 0 and "max_new_tokens" in self.model_fields_set:
            raise ConfigError("method.max_new_tokens does nothing at on_policy 0", got=self.max_new_tokens)

    def source(self, policy: Policy, *, seed: int) -> DistillationSource:
        """Rows for `policy`, some of whose actions it will sample.

        Raises:
            DataError: there is none.
        """
        return DistillationSource(policy, self._batches(policy, seed), self, on_policy=self.on_policy, seed=seed)


@dataclass(frozen=True)
class Row:
    """A context and its action as tokens, with the teacher where it was logged."""

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    weight: float
    logged: LoggedTeacher | None = None

    def unit(self, *, imitate: bool) -> Unit:
        """The divergence on the action's tokens and, if asked for, cross-entropy on the same."""
        span = action_span(0, self.prompt, self.action)
        items: tuple[Any, ...] = (DivergenceItem(span, self.logged or span, self.weight),)
        if imitate:
            items += (CrossEntropyItem(span, self.weight),)
        return Unit(((*self.prompt, *self.action),), items)


class DistillationSource:
    """Units of a batch of rows, with completions of the policy in some places; its only state are the weights."""

    def __init__(
        self, policy: Policy, batches: Batches[Row], method: Distillation, *, on_policy: float, seed: int
    ) -> None:
        self._policy, self._batches, self._method = policy, batches, method
        self._on_policy, self._seed = on_policy, seed

    def units(self, step: int) -> Sequence[Unit]:
        """The rows of `step`."""
        rows = self._batches.units(step)
        own = [k for k, draw in enumerate(self._draws(step, len(rows))) if draw < self._on_policy]
        imitate = self._method.alpha < 1
        units = {k: row.unit(imitate=imitate) for k, row in enumerate(rows) if k not in own}
        units |= {k: unit for k, unit in zip(own, self._sampled([rows[k] for k in own], step), strict=True) if unit}
        return [units[k] for k in sorted(units)]

    def state(self) -> dict[str, Any]:
        """Nothing: batches, draws and samples are functions of seed, step and weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    def _draws(self, step: int, n: int) -> list[float]:
        import numpy as np

        return [float(draw) for draw in np.random.default_rng((self._seed, step)).random(n)]

    def _sampled(self, rows: Sequence[Row], step: int) -> list[Unit | None]:
        """The student's completions after the rows' contexts: no cross-entropy, they are no examples to follow."""
        if not rows:
            return []
        from postgrad.models.sampler import generate

        assert isinstance(self._method, GKD)
        sampled = generate(
            self._policy,
            [row.prompt for row in rows],
            temperature=1.0,
            max_new_tokens=self._method.max_new_tokens,
            seed=self._seed * 1_000_003 + step,
        )
        completions = [Row(row.prompt, sample.tokens, row.weight) for row, (sample,) in zip(rows, sampled, strict=True)]
        return [completion.unit(imitate=False) if completion.action else None for completion in completions]
