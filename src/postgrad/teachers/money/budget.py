"""`Budget`: money is reserved before a call and settled after it, so that it cannot be overrun by calls at once.

A reservation is the most that a call may cost. It is let through only while everything paid, everything that may have
been billed without an answer, and everything reserved stay within the limit. Where it does not fit, it waits for the
calls under way to settle; where it does not fit with nothing under way, the replay is over, for every later call too.
A call whose try was lost is asked again before new ones are, also with what its lost try holds where that is all that
is left: then nothing else is under way, for both tries together may cost more than that.
A bill above its reservation shows that the calls under way at the same provider may cost more as well: what is reserved
for them is raised (`expect`), so that nothing starts on money that they will need. Not covered: taxes, and what such
calls under way cost themselves, for they cannot be taken back.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from postgrad.core.errors import ConfigError
from postgrad.teachers.once import PerLoop
from postgrad.teachers.stopping import NoMoreCalls

_ROUNDING = 1e-12  # US dollars: sums of floats, never the price of a token


class BudgetReached(NoMoreCalls):
    """The next call might not be within the budget."""


class NotYet(Exception):  # it is no error: whoever gets it asks again a little later
    """There is no money for a new call before the lost ones have been asked again."""


@dataclass(eq=False)
class Held:
    """US dollars that are set aside for one call of `whose`."""

    amount: float
    whose: str = ""


class Budget:
    """US dollars. `limit` None is no limit.

    Attributes:
        paid: settled, earlier runs of the same folder included.
        uncertain: reserved for calls that broke off, which the provider may have billed.
        stopped: a call was refused.
        lost: keys of the calls whose try was lost, and which will be asked again.

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
        self.lost: set[str] = set()
        self._held: list[Held] = []
        self._condition = PerLoop(asyncio.Condition)

    async def reserve(self, amount: float, *, whose: str = "", key: str = "", least: float | None = None) -> Held:
        """Set `amount` aside for a call of `whose`, at once or when calls under way have settled.

        Args:
            amount: US dollars.
            whose: the teacher's name.
            key: of the request.
            least: where lost tries of the same request hold money, what has to be set aside beside that. It will do
                where `amount` does not fit and nothing is under way.

        Raises:
            BudgetReached: it does not fit.
            NotYet: it is a new call, and does not fit before lost ones have been asked again.
        """
        held = Held(amount, whose)
        if self.limit is None:
            self._held.append(held)
            return held
        async with self._condition():
            while not self._fits(held.amount):
                others = self.lost - {key}
                if self._held and (least is not None or not self.stopped):
                    await self._condition().wait()
                elif least is not None and self._needed(least) <= self.limit + _ROUNDING:
                    held.amount = least
                    break
                elif others and least is None and not self.stopped:
                    raise NotYet
                else:
                    self.stopped = self.stopped or not others
                    self._condition().notify_all()
                    raise BudgetReached
            self._held.append(held)
        return held

    def require_turn(self, key: str) -> None:
        """While an endpoint breaks off answer after answer, it is asked only for what it lost.

        Else a burst of them would pin the worst case of as many calls as there are.

        Raises:
            NotYet: others come first.
        """
        if self.limit is not None and self.lost and key not in self.lost:
            raise NotYet

    def expect(self, whose: str, *, times: float, least: float) -> None:
        """Raise what is set aside for calls of `whose` that are under way: so many `times`, to `least` at least."""
        for held in self._held:
            if held.whose == whose:
                held.amount = max(held.amount * times, least)

    async def settle(self, held: Held, *, paid: float = 0.0, uncertain: float = 0.0) -> None:
        """Give a reservation back and count what was paid, or may have been."""
        self._held.remove(held)
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
        return amount == 0 or self._needed(amount) <= self.limit + _ROUNDING

    def _needed(self, amount: float) -> float:
        """US dollars that may be gone when `amount` is set aside as well."""
        return math.fsum((self.paid, self.uncertain, amount, *(held.amount for held in self._held)))
