"""The gateway: every call over a network goes through here, one try at a time, with money and a line in the journal.

One try, in order: wait for a place among the calls at once, and until the endpoint may be asked; set money aside; write
down that a request leaves; send it; keep the answer in the cache; settle. A try that failed in a way that may pass is
made again, after the time that the endpoint asked for, else after a random time that doubles. An endpoint that fails
ask after ask is left alone. Not covered: batch APIs.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import dataclass, field

import msgspec

from postgrad.core.actor import Answer, Sampling
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError
from postgrad.teachers.cache import AnswerCache
from postgrad.teachers.call import Call
from postgrad.teachers.journal import Journal, Line
from postgrad.teachers.money.budget import Budget, BudgetReached, NotYet
from postgrad.teachers.money.prices import FREE, Price
from postgrad.teachers.money.tokens import Meter
from postgrad.teachers.once import PerLoop
from postgrad.teachers.providers.failures import MAYBE_BILLED, CallFailed
from postgrad.teachers.providers.provider import Body, Provider, Reply, Send, most_written
from postgrad.teachers.stopping import Interrupted, Stop

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds; of waits that the endpoint did not ask for
_SPREAD = 0.25  # seconds between those that come back after a wait that it did ask for
_DOWN_AFTER = 4  # asks in a row that an endpoint could not answer
_ROUNDING = 1e-9  # as a share; of sums of floats


@dataclass(frozen=True)
class Limits:
    """How hard an endpoint is worked: calls at once, seconds per try (None: by length), tries after the first.

    `patience` is the longest time, in seconds, that an endpoint may ask to be left alone before it counts as failing.
    """

    concurrency: int = 8
    timeout: float | None = None
    max_retries: int = 5
    patience: float = 120.0

    def seconds(self, sampling: Sampling) -> float:
        """For one try: 20, and a tenth for every token that may be written."""
        return self.timeout or 20.0 + 0.1 * sampling.max_new_tokens


@dataclass(frozen=True)
class Endpoint:
    """Where a teacher is asked. `accepted` are further model ids that may answer in its name."""

    provider: Provider
    price: Price = FREE
    limits: Limits = Limits()
    accepted: tuple[str, ...] = ()


class Gateway:
    """What all network teachers of a run share: budget, journal, how many calls may be under way, whether to `stop`."""

    def __init__(self, *, budget: Budget | None = None, journal: Journal | None = None, concurrency: int = 8) -> None:
        self.budget = budget or Budget()
        self.journal = journal or Journal()
        self.slots = PerLoop(lambda: asyncio.Semaphore(concurrency))
        self.random = random.Random()  # of waits only
        self.stop = Stop()
        self._places = PerLoop[dict[str, asyncio.Semaphore]](dict)

    def places(self, endpoint: Endpoint) -> asyncio.Semaphore:
        """The places at a provider; teachers at one address share them, as many as the first of them allows."""
        address = endpoint.provider.address
        return self._places().setdefault(address, asyncio.Semaphore(endpoint.limits.concurrency))


@dataclass
class Connection:
    """An endpoint while it is open: its client, its places, and how it has been doing."""

    endpoint: Endpoint
    send: Send
    gateway: Gateway
    cache: AnswerCache
    meter: Meter
    slots: asyncio.Semaphore
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    not_before: float = 0.0
    failed_in_a_row: int = 0
    answered: int = 0
    breaks_off: bool = False
    bounds: dict[str, float] = field(default_factory=dict)

    @property
    def is_down(self) -> bool:
        """Whether it is left alone."""
        return self.failed_in_a_row >= _DOWN_AFTER

    async def answer(self, call: Call) -> Answer:
        """Try until there is an answer or no try is left.

        Raises:
            BudgetReached: a try might not be within the budget.
            Interrupted: the replay was asked to end, and this call was not under way.
            CallFailed: the last failure.
        """
        try:
            return await self._until_answered(call)
        finally:
            self.gateway.budget.lost.discard(call.key)

    async def _until_answered(self, call: Call) -> Answer:
        lost: CallFailed | None = None
        tries, answered = 0, self.answered
        while True:
            try:
                answer = await self._in_turn(call)
            except BudgetReached:
                if lost is None:
                    raise
                raise lost from None  # its tries hold what money there is: an error of this ask, which is counted
            except CallFailed as failed:
                if failed.kind == "rate_limited" and self.answered > answered and tries:
                    tries -= 1  # it answered others meanwhile: a turn will come, however many wait for theirs
                if self._gives_up(failed, tries):
                    self._note(failed)
                    raise
                answered = self.answered
                if failed.kind in MAYBE_BILLED:
                    lost = failed
                    self.gateway.budget.lost.add(call.key)
                await self.gateway.stop.sleep(self._wait(failed, tries))
                tries += 1
            else:
                self.answered += 1
                self.failed_in_a_row = 0
                return answer

    def _gives_up(self, failed: CallFailed, tries: int) -> bool:
        limits = self.endpoint.limits
        too_long = failed.wait is not None and failed.wait > limits.patience
        return too_long or self.is_down or tries >= failed.repeats(limits.max_retries)

    def _note(self, failed: CallFailed) -> None:
        if failed.kind == "quota":
            self.failed_in_a_row = _DOWN_AFTER
        elif failed.kind != "refused":  # that was the ask's fault
            self.failed_in_a_row += 1

    def _wait(self, failed: CallFailed, tries: int) -> float:
        """Seconds until the next try. What an endpoint asked for holds for every call to it."""
        if failed.wait is None:
            return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**tries) * self.gateway.random.uniform(0.5, 1.0)
        self.not_before = max(self.not_before, time.monotonic() + failed.wait)
        return failed.wait + self.gateway.random.uniform(0.0, _SPREAD)

    async def _in_turn(self, call: Call) -> Answer:
        """One try, when there is a place and the endpoint may be asked."""
        while True:
            await self.gateway.stop.sleep(self._rest())
            try:
                async with self.slots, self.gateway.slots():
                    self.gateway.stop.check()
                    if self.is_down:  # it may have become so, or asked for a rest, while this call waited for its place
                        raise CallFailed("down", "the endpoint failed ask after ask")
                    if not self._rest():
                        return await self._after_the_first(call)
            except NotYet:  # its place is free for those that were lost
                await self.gateway.stop.sleep(_SPREAD)

    def _rest(self) -> float:
        return max(0.0, self.not_before - time.monotonic())

    async def _after_the_first(self, call: Call) -> Answer:
        """Under a budget one call shows what this teacher bills before many are made."""
        if self.gateway.budget.limit is not None:
            async with self.first:
                if not self.meter.calls:
                    return await self._paid(call)
        return await self._paid(call)

    async def _paid(self, call: Call) -> Answer:
        """One try with its money: reserved, tried, kept, settled, in this order."""
        if self.breaks_off:
            self.gateway.budget.require_turn(call.key)
        body = self.endpoint.provider.body(call.sent, call.sampling, shared=call.shared)
        journal = self.gateway.journal
        most = self._most(call, body)
        leaving = call.leaving(self.endpoint.provider, body, name=journal.name())
        aside = journal.set_aside(leaving, most)
        least = None if aside is None else max(0.0, most - aside)
        held = await self.gateway.budget.reserve(most, whose=call.teacher, key=call.key, least=least)
        if self.gateway.stop.asked:  # while it waited for the money
            await self.gateway.budget.settle(held)
            raise Interrupted
        end, lost = Line("settled", "", call.teacher, outcome="interrupted"), False
        try:
            journal.write(msgspec.structs.replace(leaving, reserved=held.amount))
            lost = True
            reply, seconds = await self._try(body, call)
            answer = self._priced(call, reply, seconds)
            self.cache.put(call.key, answer)
            lost, end = answer.cost is None, self._answered(call, answer, most)
            self.breaks_off = False
            return answer
        except CallFailed as failed:
            lost = failed.kind in MAYBE_BILLED
            self.breaks_off = self.breaks_off or lost
            end = Line("settled", "", call.teacher, outcome=failed.kind, status=failed.status)
            raise
        finally:
            uncertain = held.amount if lost else 0.0
            end = msgspec.structs.replace(end, call=leaving.call, key=call.key, trace=call.trace, uncertain=uncertain)
            try:
                journal.write(end)
            finally:  # also where the disk is full: others wait for this money
                if end.surprise:
                    self.gateway.budget.expect(call.teacher, times=end.surprise, least=end.dearest)
                await self.gateway.budget.settle(held, paid=end.cost, uncertain=uncertain)
                if end.outcome == "answered" and journal.may_be_lower(call.key):
                    self.gateway.budget.uncertain = journal.uncertain

    def _answered(self, call: Call, answer: Answer, most: float) -> Line:
        """The line of a bill. It is a surprise where the call might not cost as much, had no prompt cache helped."""
        dearest = self._dollars(answer.prompt_tokens, answer.completion_tokens)
        return Line(
            "settled",
            "",
            call.teacher,
            outcome="answered",
            cost=answer.cost or 0.0,
            tokens=(answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens),
            dearest=dearest,
            surprise=dearest / most if dearest > (1 + _ROUNDING) * most > 0 else 0.0,
        )

    def _most(self, call: Call, body: Body) -> float:
        """US dollars that a try may cost, by what the request says itself: a recipe's `extra` may have changed it.

        Not less than a bill that nobody could expect: whoever billed it once may do so again.
        """
        read, written = self.meter.most(call.ask, call.sampling, lane=call.trace)
        price, asked = self.endpoint.price, most_written(body)
        if asked == math.inf and price.output and self.gateway.budget.limit is not None:
            raise ConfigError(
                f"teacher {call.teacher}: no budget holds for answers of any length",
                got="`extra` without a limit of tokens",
                expected="max_tokens: N, or as the API names it",
                do="set it in `extra`, or leave the budget out",
            )
        longest = written if asked == math.inf else max(written, asked)
        added = self.endpoint.provider.extra  # a schema for the answer, say, is read as well: a token a byte at most
        dollars = self._dollars(read + (len(canonical_json(dict(added)).encode()) if added else 0), longest)
        # What it might cost at most when it was asked first still holds, also where other bills have come since.
        least = self.bounds[call.key] = min(dollars, self.bounds.get(call.key, math.inf))
        return max(least, self.gateway.journal.surprise(call.teacher))

    def _dollars(self, read: float, written: float) -> float:
        """US dollars at most, nothing found in a prompt cache."""
        return (read * self.endpoint.price.dearest_input + written * self.endpoint.price.output) / 1e6

    async def _try(self, body: Body, call: Call) -> tuple[Reply, float]:
        seconds = self.endpoint.limits.seconds(call.sampling)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(seconds):
                raw = await self.send(body, call.key)
            return self.endpoint.provider.read(raw, call.sent), time.perf_counter() - started
        except TimeoutError as error:
            raise CallFailed("timeout", f"no whole answer in {seconds:g} s") from error
        except RecursionError as error:
            raise CallFailed("invalid_reply", "the endpoint gave JSON that is nested too deeply") from error

    def _priced(self, call: Call, reply: Reply, seconds: float) -> Answer:
        usage, cost = reply.usage, None
        if usage is not None:
            self.meter.learn(call.ask, lane=call.trace, read=usage.read, written=usage.written)
            cost = self.endpoint.price.cost(
                prompt_tokens=usage.read,
                completion_tokens=usage.written,
                cached=usage.cached,
                written=usage.cache_written,
            )
        return Answer(
            message=reply.message,
            model=reply.model or self.endpoint.provider.model,
            stop_reason=reply.stop_reason,
            prompt_tokens=usage.read if usage else 0,
            completion_tokens=usage.written if usage else 0,
            seconds=seconds,
            cost=cost if usage or not self.endpoint.price.free else 0.0,
            cached_tokens=usage.cached if usage else 0,
            tokens=reply.tokens,
        )
