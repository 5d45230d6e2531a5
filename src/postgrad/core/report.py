"""`Report` and `Verdict`: what was measured, and a gate's word on it.

What was not measured is `unmeasured`, with a reason. It never becomes a number, and a gate fails on it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal["scored", "truncated", "too_long", "infra_error"]
Decision = Literal["promote", "iterate", "rollback"]


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One evaluated task: its score, what came out, and the model's answer as text."""

    id: str
    group: str
    score: float
    outcome: Outcome = "scored"
    error: str | None = None
    answer: str = ""


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """A benchmark's mean with its standard error and n; `items` carry the pairing."""

    benchmark: str
    mean: float
    stderr: float
    n: int
    items: tuple[Item, ...]
    settings: dict[str, str] = {}


class Unmeasured(msgspec.Struct, frozen=True, tag="unmeasured"):
    """A benchmark that was asked for and could not be run."""

    benchmark: str
    reason: str


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """All scores of one model."""

    model: str
    scores: dict[str, Score]
    unmeasured: tuple[Unmeasured, ...] = ()


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True):
    """Paired difference (candidate minus parent) on one benchmark, with its 95 % interval."""

    benchmark: str
    role: Literal["target", "guard"]
    verdict: Literal["superior", "non_inferior", "inconclusive", "regressed", "unmeasured"]
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    items_needed: int | None = None


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gate's decision with its reasons; only `promote` passes."""

    decision: Decision
    reasons: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the candidate may take the parent's place."""
        return self.decision == "promote"
