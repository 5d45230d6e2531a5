"""One generation at a time, in the order of arrival, on one thread that is not the server's.

`Turns` decides who may run; `Worker` runs the engine. Events are pulled one by one, so a cancelled exchange stops
the engine after the token in work. Not covered: batching several requests, and stopping within a prefill.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import anyio

from postgrad.serve.engine import Event
from postgrad.serve.refusal import queue_full

T = TypeVar("T")


class Turns:
    """A queue with a bound: `max_waiting` exchanges may wait beside the running one."""

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._inside = 0
        self.mine = asyncio.Lock()  # hands over in the order of arrival

    @property
    def waiting(self) -> int:
        """How many wait."""
        return max(self._inside - 1, 0)

    @property
    def running(self) -> int:
        """1 while a generation runs."""
        return min(self._inside, 1)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Take a place in the queue.

        Raises:
            Refusal: no place is left.
        """
        if self._inside > self._max_waiting:
            raise queue_full(self.waiting)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1


class Worker:
    """The one thread that runs the engine: tokenizers and torch's thread-local modes never meet a second one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="postgrad-engine")

    async def call(self, function: Callable[[], T]) -> T:
        """Run `function` on the engine's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def pull(self, events: Generator[Event, None, None]) -> AsyncGenerator[Event, None]:
        """Pull events one by one; leaving early closes `events` after the step in work."""
        try:
            while (event := await self.call(lambda: next(events, None))) is not None:
                yield event
        finally:
            with anyio.CancelScope(shield=True):
                await self.call(events.close)

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=True, cancel_futures=True)
