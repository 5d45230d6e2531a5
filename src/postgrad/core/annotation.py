"""Channel annotations: what a method asks of the tokens, channel by channel.

A method turns its data into `Unit`s: branches of token ids that must be scored in one forest (a chosen and a
rejected action; a student and its hinted teacher) and, per branch, the items that feed channels. The loop reads
units and knows no method; a channel reads its own kind of item and knows no method either.

A `Span` names the scored tokens of one branch by their indices in it. Index 0 has nothing before it and cannot
be scored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatsT = NDArray[np.float32]


@dataclass(frozen=True)
class Span:
    """Scored tokens: `branch` is the place of the branch in its unit, `positions` increasing token indices >= 1."""

    branch: int
    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        assert all(p >= 1 for p in self.positions), "the first token of a branch cannot be scored"


@dataclass(frozen=True)
class CrossEntropyItem:
    """Imitate the span's tokens; `weight` scales the item."""

    span: Span
    weight: float = 1.0


@dataclass(frozen=True)
class PolicyGradientItem:
    """One sampled completion. `behaviour_T` are the sampler's log-probabilities of the span's tokens, in nats."""

    span: Span
    advantage: float
    behaviour_T: FloatsT
    max_length: int


@dataclass(frozen=True)
class DivergenceItem:
    """Pull the student's next-token distributions to the teacher's over the same tokens in another context."""

    student: Span
    teacher: Span
    weight: float = 1.0

    def __post_init__(self) -> None:
        assert len(self.student.positions) == len(self.teacher.positions), "student and teacher must be aligned"


@dataclass(frozen=True)
class PreferenceItem:
    """Prefer `chosen` to `rejected`; the reference is the policy with its adapter off, in the same forest."""

    chosen: Span
    rejected: Span
    weight: float = 1.0


Item = CrossEntropyItem | PolicyGradientItem | DivergenceItem | PreferenceItem


@dataclass(frozen=True)
class Unit:
    """Branches that stay in one forest, and the channel items that refer to them."""

    branches: tuple[tuple[int, ...], ...]
    items: tuple[Item, ...] = field(default=())

    @property
    def tokens(self) -> int:
        """Tokens of all branches, shared prefixes counted once per branch."""
        return sum(len(branch) for branch in self.branches)
