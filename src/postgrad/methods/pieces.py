"""Cut a long sequence into pieces that a model can hold, every scored token in exactly one of them.

A piece repeats the last `overlap` tokens of the one before as context that is not scored again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    """Tokens `start` to `stop` of the sequence; those from `fresh` on were in no piece before."""

    start: int
    stop: int
    fresh: int


def pieces(length: int, *, longest: int, overlap: int) -> Iterator[Piece]:
    """Pieces of a sequence of `length` tokens, each of at most `longest`; ``1 <= overlap < longest``.

    The first token of the sequence is fresh in the first piece and has nothing before it to be scored by.
    """
    assert 1 <= overlap < longest
    fresh = 0
    while fresh < length:
        start = max(0, fresh - overlap)
        stop = min(length, start + longest)
        yield Piece(start, stop, fresh)
        fresh = stop
