"""`Case`: one definition at one input, with its value by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Measure = Callable[[], Sequence[float | None]]
"""Gives the numbers of a case; None where a number must be missing (the credit of a completion without a reward)."""


@dataclass(frozen=True)
class Case:
    """What must come out, and who measures it.

    Attributes:
        name: "subject/objective/quantity".
        source: the paper.
        by_hand: the derivation, short enough to check.
        expected: the numbers.
        ours: measures postgrad.
        peers: peer name to what measures it on the same input.
        notes: peer name to why it differs, where that is known.
        tolerance: largest difference, absolute for numbers below 1 and relative above.
    """

    name: str
    source: str
    by_hand: str
    expected: tuple[float | None, ...]
    ours: Measure
    peers: Mapping[str, Measure] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 2e-6
