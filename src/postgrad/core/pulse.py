"""`beat`: a long call tells how far it is, and whoever watches hears it.

The parts that take minutes (a sampler with a hundred answers to decode) know how far they are, and lie below those
that talk to people. So they beat, and `run.progress` listens while it tracks something; without a listener a beat is
one comparison. The innermost listener hears; beats may come from any thread.
Not covered: several listeners at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[float, str], None]
"""Hears the share that is done (0 to 1) and words for a person."""

_listener: Listener | None = None


def beat(share: float, words: str) -> None:
    """Tell the listener, if there is one."""
    if _listener is not None:
        _listener(share, words)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear every beat while the block lasts, in place of the listener before."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
