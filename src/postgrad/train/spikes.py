"""Spike detection: a step that is far out of line with the last ones is undone together with what led to it.

    out of line     x > median + threshold · max(1.4826 · median|x_i − median|, |median| / 100)

over the last `window` steps, of the loss, of the norm of the whole gradient, or of either; a number that is not
finite always is. 1.4826 makes the spread that of a normal distribution; the hundredth keeps a run whose losses are
all but equal from seeing spikes in its rounding.

The loop then goes back to the last checkpoint (weights, optimiser, random states, companions, the source's state)
and does its steps again without the batch that spiked and the `before` batches before it, whose updates may have
caused it (PaLM, arXiv:2204.02311 section 5.1). All of it is a function of the numbers seen, so a run that is killed
and resumed does the same.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from postgrad.core.errors import TrainingFault
from postgrad.train.config import SpikesConfig

WATCHED = {"loss": ("loss",), "gradient_norm": ("gradient_norm",), "either": ("loss", "gradient_norm")}


class Spikes:
    """What was seen, which batches are left out, how often the run went back."""

    def __init__(self, config: SpikesConfig) -> None:
        self._config = config
        self._seen = {name: deque[float](maxlen=config.window) for name in WATCHED[config.watch]}
        self._left_out: set[int] = set()
        self.rollbacks = 0

    @property
    def watching(self) -> bool:
        """Whether detection is on."""
        return self._config.threshold is not None

    def reason(self, numbers: Mapping[str, float]) -> str | None:
        """Why these numbers of a step are a spike; None, and they are remembered, if they are none."""
        if self._config.threshold is None:
            return None
        for name, seen in self._seen.items():
            if found := self._out_of_line(numbers[name], seen, self._config.threshold):
                return f"{name} {numbers[name]:.4g} {found}"
        for name, seen in self._seen.items():
            seen.append(numbers[name])
        return None

    def leave_out(self, batch: int, *, first: int, why: str) -> None:
        """Leave `batch` out, and those before it, though none before `first`, the checkpoint's.

        Raises:
            TrainingFault: the run went back too often.
        """
        if self.rollbacks == self._config.limit:
            raise TrainingFault(
                f"batch {batch}: {why}; the run went back {self.rollbacks} times, which is loop.spikes.limit;"
                " a smaller optim.lr may help"
            )
        self.rollbacks += 1
        wanted, left = self._config.before + 1, batch
        while wanted and left >= first:
            if left not in self._left_out:
                self._left_out.add(left)
                wanted -= 1
            left -= 1

    def next_batch(self, batch: int) -> int:
        """The first batch from `batch` on that is not left out."""
        while batch in self._left_out:
            batch += 1
        return batch

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint."""
        seen = {name: list(values) for name, values in self._seen.items()}
        return {"seen": seen, "left_out": sorted(self._left_out), "rollbacks": self.rollbacks}

    def restore(self, state: Mapping[str, Any], *, rolling_back: bool = False) -> None:
        """Take back what `state` gave; a rollback keeps what it has just learnt about batches."""
        for name, values in state["seen"].items():
            self._seen[name] = deque(values, maxlen=self._config.window)
        if not rolling_back:
            self._left_out, self.rollbacks = set(state["left_out"]), int(state["rollbacks"])

    def _out_of_line(self, value: float, seen: deque[float], threshold: float) -> str | None:
        if not math.isfinite(value):
            return "is not finite"
        if len(seen) < self._config.window:
            return None
        middle = median(seen)
        spread = max(1.4826 * median(abs(x - middle) for x in seen), abs(middle) / 100)
        if value > middle + threshold * spread:
            return f"is more than {threshold:g} deviations above the median {middle:.4g} of the last {len(seen)} steps"
        return None
