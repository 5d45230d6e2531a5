"""The tokens of a divergence side by side: the student's and the same ones of its teacher, over all items of a forest.

Shapes: N aligned tokens, T tokens of the forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from postgrad.core.annotation import DivergenceItem, LoggedTeacher, Span
from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.objectives.channel import IntsN, Placed, Scored, joined


@dataclass(frozen=True)
class Aligned:
    """Tokens of all items in order.

    Attributes:
        items: how many items.
        owners_N: the item of each token.
        weights_N: its item's weight.
        student_N: the student's nodes.
        teacher_N: the teacher's nodes; -1 where the teacher was logged.
        differs_N: whether the two are predicted from different nodes.
        logged: the logged teachers, in order.
        behaviours: the sampler's log-probabilities, item by item.
    """

    items: int
    owners_N: IntsN
    weights_N: NDArray[np.float32]
    student_N: IntsN
    teacher_N: IntsN
    differs_N: NDArray[np.bool_]
    logged: tuple[LoggedTeacher, ...]
    behaviours: tuple[NDArray[np.float32] | None, ...]

    @classmethod
    def of(cls, scored: Scored, placed: Sequence[Placed[DivergenceItem]]) -> Aligned:
        """Lay the items' tokens side by side.

        Raises:
            TrainingFault: an item's student and teacher are not the same tokens.
        """
        lengths = np.array([len(p.item.student.positions) for p in placed], dtype=np.int64)
        student_N = joined([scored.nodes(p.unit, p.item.student) for p in placed])
        teacher_N = joined([_teacher_nodes(scored, p) for p in placed])
        tokens_T, parents_T = scored.forest.tokens_T, scored.forest.parents_T
        inside_N = teacher_N >= 0
        if (tokens_T[student_N[inside_N]] != tokens_T[teacher_N[inside_N]]).any():
            raise TrainingFault("channel 'divergence': student and teacher are not the same tokens")
        return cls(
            items=len(placed),
            owners_N=np.repeat(np.arange(len(placed)), lengths),
            weights_N=np.repeat(np.array([p.item.weight for p in placed], dtype=np.float32), lengths),
            student_N=student_N,
            teacher_N=teacher_N,
            differs_N=parents_T[student_N] != np.where(inside_N, parents_T[teacher_N], -1),
            logged=tuple(p.item.teacher for p in placed if isinstance(p.item.teacher, LoggedTeacher)),
            behaviours=tuple(p.item.behaviour_T for p in placed),
        )

    def __len__(self) -> int:
        return len(self.student_N)

    @property
    def in_forest_N(self) -> NDArray[np.bool_]:
        """Whether the teacher is in the forest."""
        return self.teacher_N >= 0

    def behaviour_N(self) -> NDArray[np.float32]:
        """The sampler's log-probabilities.

        Raises:
            ConfigError: an item has none.
        """
        parts = [part for part in self.behaviours if part is not None]
        if len(parts) < len(self.behaviours):
            raise ConfigError(
                "channels.divergence.ratio_limit needs the sampler's log-probabilities",
                got="rows that were not sampled by the policy",
                do="leave ratio_limit out",
            )
        return np.concatenate([np.empty(0, np.float32), *parts])


def _teacher_nodes(scored: Scored, placed: Placed[DivergenceItem]) -> IntsN:
    teacher = placed.item.teacher
    return scored.nodes(placed.unit, teacher) if isinstance(teacher, Span) else np.full(len(teacher), -1)
