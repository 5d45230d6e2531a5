"""Channel health: a weighted channel that trains nothing stops the run and is named.

A step is idle for a channel when it brought no items or a gradient of exactly 0. Some idle steps are legitimate: a
step in which every group's rewards are equal, or in which nothing failed and so nothing was hinted. What stops a run is

- `patience` idle steps in a row,
- a run that ends before the channel ever had a gradient,
- a gradient that reaches the hidden states but no trainable weight, at the channel's first contact: the first step in
  which it has a gradient at all.

Until its first contact a channel is measured at the weights, one backward pass for each channel. Later the norms are
those at the final hidden states, which the backward pass yields for free: a gradient that is 0 there is 0 everywhere
below, and that one reaches the weights was shown by the first contact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from postgrad.core.errors import DeadChannel, TrainingFault

NO_ITEMS = "no items"
NO_GRADIENT = "zero gradient"


class NotFinite(TrainingFault):
    """A loss or a gradient is NaN or infinite; no weight has moved."""


class ChannelHealth:
    """Watches channels step by step; `advice` says per channel what a lasting zero gradient usually means."""

    def __init__(self, advice: Mapping[str, str], *, patience: int) -> None:
        self._advice = dict(advice)
        self._patience = patience
        self._idle: dict[str, list[str]] = {name: [] for name in advice}
        self._alive: set[str] = set()
        self._steps = 0

    def awaits(self, counts: Mapping[str, int]) -> bool:
        """Whether a step with these items may be the first contact of a channel."""
        return any(counts[name] and name not in self._alive for name in self._advice)

    def observe(self, counts: Mapping[str, int], norms: Mapping[str, float]) -> None:
        """Take note of one step.

        Raises:
            DeadChannel: a channel trains nothing.
            NotFinite: a gradient is not finite.
        """
        for name in self._advice:
            if not math.isfinite(norms[name]):
                raise NotFinite(f"step {self._steps}: the gradient of channel '{name}' is {norms[name]}")
            self._note(name, counts[name], norms[name])
        self._steps += 1

    def require_reach(self, at_hidden: Mapping[str, float], at_weights: Mapping[str, float]) -> None:
        """Check that gradients at the hidden states arrive at trainable weights.

        Raises:
            DeadChannel: one does not.
        """
        for name, norm in at_hidden.items():
            if norm > 0 and at_weights[name] == 0:
                raise DeadChannel(name, "its gradient reaches no trainable weight; check which weights are frozen")

    def finish(self) -> None:
        """Check at the end of the run that every channel trained something.

        Raises:
            DeadChannel: one never had a gradient.
        """
        for name in self._advice:
            if self._steps and name not in self._alive:
                raise DeadChannel(name, f"no gradient in any of the {self._steps} steps: {self._story(name)}")

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint."""
        return {"idle": self._idle, "alive": sorted(self._alive), "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        self._idle = {name: list(reasons) for name, reasons in state["idle"].items()}
        self._alive = set(state["alive"])
        self._steps = int(state["steps"])

    def _note(self, name: str, count: int, norm: float) -> None:
        if count and norm > 0:
            self._alive.add(name)
            self._idle[name] = []
            return
        self._idle[name].append(NO_GRADIENT if count else NO_ITEMS)
        if len(self._idle[name]) >= self._patience:
            raise DeadChannel(name, f"nothing to train on for {self._patience} steps in a row: {self._story(name)}")

    def _story(self, name: str) -> str:
        """How the idle steps divide, and what to do."""
        reasons = self._idle[name]
        parts = [f"{kind} in {reasons.count(kind)}" for kind in (NO_ITEMS, NO_GRADIENT) if kind in reasons]
        advice = f"; {self._advice[name]}" if NO_GRADIENT in reasons else "; feed it, or set its weight to 0"
        return f"{' and '.join(parts)}{advice}"
