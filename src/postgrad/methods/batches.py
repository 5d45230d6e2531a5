"""Batches of units (or tasks, or rows) as a pure function of seed and step: a resumed run needs no data position.

Units that share a context (one tool list) come as a group and stay neighbours: groups are shuffled, not units, and
the forest then computes the shared prefix once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Batches(Generic[Thing]):
    """Endless shuffled epochs over groups of units; batch `step` never depends on what was drawn before."""

    groups: Sequence[Sequence[Thing]]
    size: int
    seed: int

    def __len__(self) -> int:
        """Units of one epoch."""
        return self._count

    @cached_property
    def _count(self) -> int:
        return sum(len(group) for group in self.groups)

    def units(self, step: int) -> list[Thing]:
        """Units of `step`; a batch may run over the end of an epoch into the next."""
        first = step * self.size
        return [self._unit(place) for place in range(first, first + self.size)]

    def _unit(self, place: int) -> Thing:
        import numpy as np

        epoch, index = divmod(place, len(self))
        if epoch not in self._epochs:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(self.groups))
            self._epochs[epoch] = [unit for k in order for unit in self.groups[k]]
        return self._epochs[epoch][index]

    @cached_property
    def _epochs(self) -> dict[int, list[Thing]]:
        return {}
