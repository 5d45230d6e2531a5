"""`counted`: a number with its noun, as people write it."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 source`, `2 sources`, `1,200 rows`; `plural` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
