"""`GatePolicy`: what a candidate must show. Plain configuration, so that a recipe can hold it without scipy."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from postgrad.run.config import Config

Share = Annotated[float, Field(gt=0, lt=1)]


class GatePolicy(Config):
    """Targets must get better, guards must not get worse by more than a margin."""

    targets: Annotated[tuple[str, ...], Field(min_length=1)] = ("function_calling/heldout",)
    """benchmarks that this stage is meant to improve; every one must be superior"""
    guards: tuple[str, ...] = ()
    """benchmarks that must be non-inferior: retention, safety, an outside judge"""
    margin: Share = 0.05
    """largest loss that is accepted, as an absolute difference of means (0.05 = 5 points)"""
    margins: dict[str, Share] = Field(default_factory=dict)
    """benchmark -> its own margin"""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """error rate: two-sided for superiority, one-sided for non-inferiority, family-wise (Holm) for regressions"""
    power: Share = 0.8
    """power with which "how many more items" is answered"""
    max_infra_errors: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """share of items lost to infrastructure above which a benchmark decides nothing"""
    max_truncation_gap: Annotated[float, Field(ge=0, le=1)] = 0.02
    """difference in the share of cut-off answers above which a pass must hold with credit for the parent's"""

    @model_validator(mode="after")
    def _one_role_each(self) -> GatePolicy:
        names = (*self.targets, *self.guards)
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"a benchmark has one role, named once: {', '.join(doubled)}")
        unknown = sorted(set(self.margins) - set(names))
        if unknown:
            raise ValueError(f"margins for benchmarks that are neither target nor guard: {', '.join(unknown)}")
        return self

    def margin_of(self, benchmark: str) -> float:
        """Return the margin of `benchmark`."""
        return self.margins.get(benchmark, self.margin)
