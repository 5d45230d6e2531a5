"""Several optimiser steps on what the source gave once: a rollout buffer.

With `parts` P and `passes` E, the source is asked every P·E batches. What it gives is shuffled and dealt out to P
steps, E times over; each deal is another. Log-probabilities stay those of the sampling policy, the engine's and, where
a channel takes them apart, the trainer's (`old_policy`).

The buffer is part of a checkpoint, so a run that is killed in the middle of it goes on with the very units that were
sampled, which the weights of now would not sample again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from postgrad.core.annotation import Unit
from postgrad.train.config import ReuseConfig
from postgrad.train.contracts import UnitSource
from postgrad.train.old_policy import Prepare
from postgrad.train.unit_codec import decode_unit, encode_unit


class Buffered:
    """A source over `source` that is asked once for `parts · passes` batches; `prepare` sees what it gives first."""

    def __init__(self, source: UnitSource, reuse: ReuseConfig, *, seed: int, prepare: Prepare = list) -> None:
        self._source, self._reuse, self._seed, self._prepare = source, reuse, seed, prepare
        self._round = -1
        self._units: list[Unit] = []

    def units(self, step: int) -> Sequence[Unit]:
        """The part of batch `step`; it may be empty where the source gave fewer units than `parts`."""
        parts, passes = self._reuse.parts, self._reuse.passes
        now, place = divmod(step, parts * passes)
        if now != self._round:
            self._round, self._units = now, list(self._prepare(self._source.units(now)))
        deal, part = divmod(place, parts)
        order = np.random.default_rng([self._seed, now, deal]).permutation(len(self._units))
        return [self._units[k] for k in sorted(order[part::parts])]

    def state(self) -> dict[str, Any]:
        """The source's state and the buffer."""
        return {"source": self._source.state(), "round": self._round, "units": [encode_unit(u) for u in self._units]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        self._source.restore(state["source"])
        self._round = int(state["round"])
        self._units = [decode_unit(unit) for unit in state["units"]]
