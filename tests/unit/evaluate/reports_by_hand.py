"""Reports made by hand for the tests of gates, page and verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.report import Item, Outcome, Report, Score, Unmeasured
from postgrad.evaluate.statistics import mean_stderr

SETTINGS = {"mode": "free", "max_new_tokens": "64", "grader": "g 1", "prompts": "p", "weights": "w", "batch": "8"}


def score(name: str, scores: Sequence[float], **changed: Any) -> Score:
    """Score of items i0, i1, ...; `outcomes` maps a place to its outcome, `settings` and `groups` may be given."""
    outcomes: Mapping[int, Outcome] = changed.get("outcomes", {})
    groups = changed.get("groups", [f"i{i}" for i in range(len(scores))])
    items = tuple(
        Item(f"i{i}", groups[i], value, outcomes.get(i, "scored"), answer=f"answer {i}")
        for i, value in enumerate(scores)
    )
    counted = [item for item in items if item.outcome in ("scored", "truncated")]
    mean, stderr = mean_stderr([item.score for item in counted], [item.group for item in counted])
    return Score(name, mean, stderr, len(counted), items, {**SETTINGS, **changed.get("settings", {})})


def report(*scores: Score, model: str = "m", unmeasured: Sequence[Unmeasured] = ()) -> Report:
    """Report of the scores under their own names."""
    return Report(model, {one.benchmark: one for one in scores}, tuple(unmeasured))


def first(right: int, of: int) -> list[float]:
    """`right` ones, then zeros."""
    return [1.0] * right + [0.0] * (of - right)
