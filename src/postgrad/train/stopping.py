"""`Stop`: Ctrl-C and SIGTERM end a run after the step that is being done, with a checkpoint; once more ends it at once.

A step of a large batch takes minutes, and checkpoints are `loop.save_every` steps apart: without this, a run that was
stopped in its first steps would start over. Signals reach the main thread only, so elsewhere (a test, a notebook's
worker) nothing is changed. Replicas of a sync are left alone: they go on from a checkpoint that all of them have, and
one more on one side would push that one out. So is a run that watches for spikes: how far one goes back must not hang
on when somebody pressed a key.
Not covered: several workers. Their launcher passes the signal on a second time and then kills them; they go on from the
last regular checkpoint.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from postgrad.run.progress import note

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TOLD = b"stopping after this step, with a checkpoint; once more stops at once\n"


class Stop:
    """Whether the run was asked to stop. `heard` is what to do at the first signal, once."""

    def __init__(self) -> None:
        self.asked = False

    def hear(self, restore: Callable[[], None]) -> Callable[[int, FrameType | None], Any]:
        """The signals' handler; the first one brings the old handlers back by `restore`."""

        def handler(number: int, frame: FrameType | None) -> None:
            self.asked = True
            restore()
            os.write(2, _TOLD)  # print is not safe here: the signal may have come in the middle of one

        return handler


@contextmanager
def saying_what_is_saved(last: Callable[[], Path | None]) -> Iterator[None]:
    """Where a run is stopped at once, say where the next call goes on; `last` gives the newest checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        path = last()
        note("no checkpoint yet: the next call starts over" if path is None else f"the next call goes on from {path}")
        raise


@contextmanager
def stopping(*, possible: bool = True) -> Iterator[Stop]:
    """Listen for the signals while the block lasts, unless that is not `possible`."""
    stop = Stop()
    if not possible or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, stop.hear(restore))
    try:
        yield stop
    finally:
        restore()
