"""Training curves as points of small inline SVG charts: no script, no library, no host.

Which series: every loss (`loss`, `loss/CHANNEL`), rewards and accuracies, and the gradient norm. The template draws;
this module picks and scales.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 260.0, 90.0
MOST_POINTS = 400
LINE_FROM = 3
"""Values that make a curve: a line through two would look like a trend and be none."""
DOTS_TO = 20
"""Values up to which each is marked, so that a line of few points is seen as one."""


@dataclass(frozen=True)
class Curve:
    """One series: SVG polyline points within WIDTH x HEIGHT, and the numbers that label it.

    `points` is empty where there are too few values for a line; `dots` are the points to be marked one by one.
    """

    name: str
    points: str
    count: int
    dots: tuple[tuple[str, str], ...]
    first: float
    last: float
    low: float
    high: float
    steps: tuple[int, int]


def curves(rows: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Curves of the rows of a metrics.jsonl, losses first; a series without a finite value is left out."""
    names = sorted({name for row in rows for name in row if _wanted(name)}, key=_rank)
    found = (_curve(name, _series(name, rows)) for name in names)
    return [curve for curve in found if curve is not None]


def _wanted(name: str) -> bool:
    return name.startswith("loss") or name == "gradient_norm" or name.endswith(("reward", "accuracy"))


def _rank(name: str) -> tuple[bool, bool, str]:
    return (name == "gradient_norm", not name.startswith("loss"), name)


def _series(name: str, rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Pairs of (step, value), thinned to `MOST_POINTS`; what is missing or not finite is left out."""
    pairs = [(int(row["step"]), float(row[name])) for row in rows if isinstance(row.get(name), (int, float))]
    finite = [(step, value) for step, value in pairs if math.isfinite(value)]
    stride = max(1, math.ceil(len(finite) / MOST_POINTS))
    return finite[:-1:stride] + finite[-1:]


def _curve(name: str, series: list[tuple[int, float]]) -> Curve | None:
    if not series:
        return None
    steps, values = zip(*series, strict=True)
    low, high = min(values), max(values)
    across, up = (steps[-1] - steps[0]) or 1, (high - low) or 1.0
    places = [
        (f"{WIDTH * (step - steps[0]) / across:.1f}", f"{HEIGHT * (1 - (value - low) / up):.1f}")
        for step, value in series
    ]
    points = " ".join(",".join(place) for place in places) if len(series) >= LINE_FROM else ""
    dots = tuple(places) if points and len(series) <= DOTS_TO else ()
    return Curve(name, points, len(series), dots, values[0], values[-1], low, high, (steps[0], steps[-1]))
