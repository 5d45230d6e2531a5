"""DiLoCo (arXiv:2311.08105): replicas take H optimiser steps apart, then step together by what they moved on average.

    Δ = mean_k (θ − θ_k)        θ the outer copy of the weights, θ_k replica k's own after its H steps
    m ← β m + Δ
    θ ← θ − γ (Δ + β m)         outer SGD with Nesterov momentum; then θ_k ← θ

H counts optimiser steps, not micro-batches. Inner optimisers keep their states and are never averaged. With γ = 1 and
β = 0 the outer step is the mean of the weights, and is computed as that: θ − (θ − θ̄) differs from θ̄ in the last bits.

With `fragments` F the weights are cut in F runs of about equal size, each with outer state of its own and due at a step
of its own among the H, so that a sync moves 1/F of them. After the last step of a run everything is synced: all
replicas end with the same weights.

Every replica is a run of its own: its own command, run folder and, if it likes, several workers. Not covered: replicas
that come and go, compression, steps that overlap with the exchange. Of an adapter, the factors are averaged one by one,
which is not the average of their products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from postgrad.train.settings import STRICT, Beta, Count, Positive

if TYPE_CHECKING:
    from torch import nn

    from postgrad.train.sync.outer import OuterLoop

OWN = ("replica", "address", "timeout")
"""Settings that replicas need not share."""


@dataclass(frozen=True, config=STRICT)
class DiLoCo:
    """Settings; the same for all replicas but for `replica`."""

    replicas: Count
    """How many replicas there are."""
    replica: Annotated[int, Field(ge=0)] = 0
    """Which of them this run is, from 0; the first one is where the others meet."""
    address: Annotated[str, Field(pattern=r"^[^:\s]+:[0-9]{1,5}$")] | None = None
    """host:port at which the first replica listens; needed from two replicas on."""
    every: Count = 100
    """H: optimiser steps between two outer steps of a weight."""
    lr: Positive = 0.7
    """γ: outer learning rate."""
    momentum: Beta = 0.9
    """β: outer Nesterov momentum."""
    fragments: Count = 1
    """Parts of the weights that are synced at different steps."""
    timeout: Positive = 1800.0
    """Seconds to wait for another replica."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.replica >= self.replicas:
            raise ValueError(f"replica {self.replica} of {self.replicas}: expected 0 to {self.replicas - 1}")
        if self.replicas > 1 and self.address is None:
            raise ValueError("several replicas need an address, host:port of the first one")
        if self.every % self.fragments:
            raise ValueError(f"every ({self.every}) must be a multiple of fragments ({self.fragments})")
        return self

    @property
    def averages(self) -> bool:
        """Whether an outer step is nothing but the mean of the weights."""
        return self.lr == 1 and self.momentum == 0

    def due(self, fragment: int, step: int) -> bool:
        """Whether `fragment` has its outer step after optimiser step `step` (from 0) of a run that goes on."""
        offset = (fragment + 1) * self.every // self.fragments
        return (step + 1 - offset) % self.every == 0

    def shared(self) -> dict[str, Any]:
        """The settings that all replicas must have alike."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in OWN}

    def build(self, parameters: Mapping[str, nn.Parameter], *, steps: int, rank: int) -> OuterLoop:
        """The outer loop over `parameters`."""
        from postgrad.train.sync.outer import OuterLoop

        return OuterLoop(self, parameters, steps=steps, rank=rank)
