"""Rows for distillation: the action to learn, with the teacher's distributions over its tokens where they can be had.

Each row is soft (`soft_targets`) or of the sequence alone (the action as the teacher wrote it, for cross-entropy).
`Levels` counts which, and why rows are not soft: that a teacher's tokens do not fit is told, and refused if so wished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from postgrad.core.record import Record
from postgrad.signals.actions import learnable
from postgrad.signals.agreement import Agreement
from postgrad.signals.rows.made import Made
from postgrad.signals.rows.preferences import BY_MAJORITY, Choice, imitation
from postgrad.signals.rows.soft_targets import StudentVocabulary, Unfit, refuse_mismatch
from postgrad.teachers.replay import ReplayedStep

Mismatch = Literal["sequence", "refuse"]


@dataclass
class Levels:
    """Makes rows soft where it can, for the student `vocabulary` (None: none is named, so nothing is soft).

    `mismatch` says what to do with a teacher whose tokens are not the student's. `counts`: rows that are "soft", and
    the others by the reason why they are not.
    """

    vocabulary: StudentVocabulary | None = None
    mismatch: Mismatch = "sequence"
    counts: Counter[str] = field(default_factory=Counter)

    def row(self, row: Record, step: ReplayedStep, teachers: Iterable[str]) -> Record:
        """`row` with the soft targets of the first of `teachers` that has fitting ones.

        Raises:
            DataError: a teacher's tokens are not the student's, and that is to be refused.
        """
        if self.vocabulary is None:
            self.counts["no_student"] += 1
            return row
        reason: Unfit = "no_logprobs"
        for name in teachers:
            answer = step.answers[name].answer
            assert answer.message is not None, "a teacher that acted"
            action = learnable(answer.message)
            found = self.vocabulary.targets(name, answer, action)
            if not isinstance(found, str):
                self.counts["soft"] += 1
                return msgspec.structs.replace(row, action=action, soft=found)
            if found == "tokenizer_mismatch" and self.mismatch == "refuse":
                raise refuse_mismatch(name, self.vocabulary.name)
            reason = reason if found == "no_logprobs" else found
        self.counts[reason] += 1
        return row


def build_distilled(
    replayed: Iterable[ReplayedStep], choice: Choice = BY_MAJORITY, levels: Levels | None = None
) -> Iterator[Made]:
    """A row or a reason per replayed step.

    Raises:
        DataError: see `Levels.row`.
    """
    levels = levels if levels is not None else Levels()
    for step in replayed:
        found = choice.of(step)
        if isinstance(found, Agreement):
            yield Made(levels.row(imitation(step, found, choice), step, found.teachers))
        else:
            yield Made(dropped=found)
