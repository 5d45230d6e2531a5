"""`Stop`: a replay that is asked to end gives out no new call and waits for the calls under way.

A call that is dropped has been billed, or will be, and would be asked and billed again; one that is waited for is kept.
So whoever is about to ask, or to try again, looks here first, and whoever sleeps until it may, sleeps here. Not
covered: local models, which answer the whole group that they were given.
"""

from __future__ import annotations

import asyncio


class NoMoreCalls(Exception):  # it ends a replay as StopIteration ends a loop; it is no error
    """The replay is over before its last step; what it has is kept."""


class Interrupted(NoMoreCalls):
    """Somebody asked it to end."""


class Stop:
    """Whether the replay was asked to end: `asked`."""

    def __init__(self) -> None:
        self.asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = asyncio.Event()

    def ask(self) -> None:
        """End it. A signal handler or another thread may call this."""
        self.asked = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._heard.set)

    def check(self) -> None:
        """Pass, unless it was asked to end.

        Raises:
            Interrupted: it was.
        """
        if self.asked:
            raise Interrupted

    async def sleep(self, seconds: float) -> None:
        """As asyncio's, but not longer than until it is asked to end.

        Raises:
            Interrupted: it was asked to end.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # an event belongs to the loop in which someone first waited for it
            self._loop, self._heard = loop, asyncio.Event()
        self.check()  # after the loop is known: whoever asks from now on wakes it
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return
        self.check()
