"""`Budget`: a replay stops before it could spend more than it may, not after.

A new batch is let through when everything paid so far plus the batch at its dearest (a token per byte of the ask,
every answer at full length) stays within the limit. Not covered: retries at a provider that bills failed calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postgrad.core.actor import Ask, Sampling
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError
from postgrad.teachers.replay import ReplayedStep, Teacher


class BudgetReached(Exception):  # it ends a replay as StopIteration ends a loop; it is no error
    """The next batch might not be within the budget."""


class Budget:
    """US dollars that one run may pay.

    Raises:
        ConfigError: the limit is negative, or a metered teacher has no known price.
    """

    def __init__(self, limit: float, teachers: Sequence[Teacher], sampling: Sampling) -> None:
        if limit < 0:
            raise ConfigError("the budget is below zero", got=limit, expected="US dollars")
        for teacher in teachers:
            if teacher.metered and teacher.price is None:
                raise ConfigError(
                    f"teacher {teacher.name} has no known price, so no budget can be kept",
                    do="give `prices` a file with this model, or take the budget out",
                )
        self.limit = limit
        self.paid = 0.0
        self._sampling = sampling

    def check(self, asks: Sequence[tuple[Teacher, Sequence[Ask]]]) -> None:
        """Let a batch of new calls through, or raise `BudgetReached`."""
        dearest = sum(self._dearest(teacher, ask) for teacher, unknown in asks for ask in unknown)
        if dearest and self.paid + dearest > self.limit:
            raise BudgetReached

    def pay(self, step: ReplayedStep) -> None:
        """Count what a replayed step cost in this run."""
        self.paid += sum(said.answer.cost or 0.0 for said in step.answers.values() if not said.cached)

    def _dearest(self, teacher: Teacher, ask: Ask) -> float:
        if teacher.price is None:
            return 0.0
        length = len(canonical_json(msgspec.to_builtins(ask)).encode())
        return teacher.price.cost(prompt_tokens=length, completion_tokens=self._sampling.max_new_tokens)
