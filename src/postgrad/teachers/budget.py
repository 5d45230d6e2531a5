"""`Budget`: money is reserved before a call and settled after it, so that it cannot be overrun by calls at once.

A reservation is the most that a call may cost. It is let through only while everything paid, everything that may have
been billed without an answer, and everything reserved stay within the limit. Where it does not fit, it waits for the
calls under way to settle; where it does not fit with nothing under way, the replay is over, for every later call too.
Not covered: taxes, and a provider that bills more tokens than a request has bytes without having done so before.
"""

from __future__ import annotations

import asyncio
import math

from postgrad.core.errors import ConfigError
from postgrad.teachers.once import PerLoop

_ROUNDING = 1e-12  # US dollars: sums of floats, never the price of a token


class BudgetReached(Exception):  # it ends a replay as StopIteration ends a loop; it is no error
    """The next call might not be within the budget."""


class Budget:
    """US dollars. `limit` None is no limit.

    Attributes:
        paid: settled, earlier runs of the same folder included.
        uncertain: reserved for calls that broke off, which the provider may have billed.
        stopped: a call was refused.

    Raises:
        ConfigError: the limit is no amount of money.
    """

    def __init__(self, limit: float | None = None, *, paid: float = 0.0, uncertain: float = 0.0) -> None:
        if limit is not None and not (0 <= limit < math.inf):
            raise ConfigError("the budget is no amount of money", got=limit, expected="US dollars, at least 0")
        self.limit = limit
        self.paid = paid
        self.uncertain = uncertain
        self.stopped = False
        self._reserved: list[float] = []
        self._condition = PerLoop(asyncio.Condition)

    async def reserve(self, amount: float) -> None:
        """Set `amount` aside, at once or when calls under way have settled.

        Raises:
            BudgetReached: it does not fit.
        """
        if self.limit is None:
            self._reserved.append(amount)
            return
        async with self._condition():
            while not self._fits(amount):
                if self.stopped or not self._reserved:
                    self.stopped = True
                    self._condition().notify_all()
                    raise BudgetReached
                await self._condition().wait()
            self._reserved.append(amount)

    async def settle(self, amount: float, *, paid: float = 0.0, uncertain: float = 0.0) -> None:
        """Give the reservation `amount` back and count what was paid, or may have been."""
        self._reserved.remove(amount)
        self.paid += paid
        self.uncertain += uncertain
        if self.limit is not None:
            async with self._condition():
                self._condition().notify_all()

    @property
    def overrun(self) -> float:
        """What was paid above the limit: where a provider billed more than a call could cost by the rules."""
        above = 0.0 if self.limit is None else self.paid - self.limit
        return above if above > _ROUNDING else 0.0

    def _fits(self, amount: float) -> bool:
        assert self.limit is not None, "asked only under a limit"
        if self.stopped:
            return False
        held = math.fsum((self.paid, self.uncertain, amount, *self._reserved))
        return amount == 0 or held <= self.limit + _ROUNDING
