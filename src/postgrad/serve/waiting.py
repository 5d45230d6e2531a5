"""Signals: handlers for as long as a block lasts, and waiting for the one that stops a server."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

_LOOK = 0.2  # seconds


def wait_until_stopped() -> None:
    """Sleep until SIGINT or SIGTERM.

    The system may hand a signal to any thread, also one of a library's; that does not wake this one, which alone runs
    Python's handlers. So it wakes by itself to look.
    """
    stop = threading.Event()
    with handled({signal.SIGINT: lambda number: stop.set(), signal.SIGTERM: lambda number: stop.set()}):
        while not stop.wait(_LOOK):
            pass


@contextmanager
def handled(handlers: Mapping[signal.Signals, Callable[[int], None]]) -> Iterator[None]:
    """Signal handlers for as long as the block lasts."""

    def handler(function: Callable[[int], None]) -> Callable[[int, FrameType | None], None]:
        return lambda number, frame: function(number)

    before = {number: signal.signal(number, handler(function)) for number, function in handlers.items()}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
