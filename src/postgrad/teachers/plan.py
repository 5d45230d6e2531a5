"""The plan: what a replay will cost, before any call.

Calls whose answers are in the cache cost nothing. The others are weighed (`tokens`), put in the order in which they
will go out (`schedule`), and what a provider's prompt cache will hold by then is counted at its price
(`prompt_cache`): also what an earlier run asked a short while ago, for the replay is taken to start now (`asked`). An
answer is expected to be as long as the action that the student took. Three sums come out: `cost` is what to expect,
with the stated error of the estimate; `cost_uncached` is the same with nothing found in a prompt cache; `most` is what
the calls can cost at worst, every answer at full length.

What an estimate rests on, the best that there is: the bills of steps that this teacher has answered already; the
teacher's tokenizer; what the traces' own logs say that the student's requests counted, where the request is known
whole; else characters. Nobody can know before a call how long another model's answer will be, nor what it thinks and
bills without showing it. Not covered: retries at a provider that bills failed calls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.trace import Trace
from postgrad.teachers.money.asked import Asked
from postgrad.teachers.money.prices import kept_seconds
from postgrad.teachers.money.rates import Line, Logged, Rates, no_log
from postgrad.teachers.money.schedule import Item, Schedule, common
from postgrad.teachers.money.tokens import Beginning, Scale, Size, most_tokens
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.providers.prompt_cache import RULES, Bills, Expected, RuleName
from postgrad.teachers.providers.provider import Body, most_written
from postgrad.teachers.replay import Teacher

_PLAIN = Scale()
_DIGITS = 9  # of US dollars
_FEW_BILLS = 3  # below it their spread says nothing
_SURE, _UNSURE = 0.02, 0.15  # the least that is promised of an estimate by many bills, and by one


@dataclass
class _Sums:
    """One teacher's calls, added up. `requests`: estimated tokens, and those of the beginning that was asked before."""

    known: int = 0
    requests: list[tuple[float, float, bool]] = field(default_factory=list)
    written: float = 0.0
    most_read: float = 0.0
    most_written: float = 0.0
    answered: list[tuple[int, int, float, float]] = field(default_factory=list)
    billed: Rates = field(default_factory=Rates)
    logged: Rates = field(default_factory=Rates)

    @property
    def calls(self) -> int:
        """How many there will be."""
        return len(self.requests)

    def bills(self) -> Bills:
        """What was billed as cached, where one answered step followed another."""
        bills = Bills()
        for read, cached, size, beginning in self.answered:
            if beginning:
                bills.add(read * min(1.0, beginning / size), cached)
        return bills


class _Contexts:
    """Sizes of a trace's contexts, each worked out from the one before: a trace of K steps costs its length."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._ids: Sequence[str] = ()
        self._known: list[Beginning] = [Beginning()]

    def beginnings(self, item: Item) -> list[Beginning]:
        """Place n: the first n messages."""
        ids = item.step.request.messages
        same = common(self._ids, ids)
        new = (item.trace.messages[key] for key in ids[same:])
        grown = accumulate(new, self._scale.after, initial=self._known[same])
        self._ids, self._known = ids, [*self._known[:same], *grown]
        return self._known


class _Request(NamedTuple):
    """A step as a teacher is asked it, what it has answered, and when (Unix time; for what is to come the plan's)."""

    item: Item
    ask: Ask
    known: Answer | None
    at: float


class _Weighing:
    """How one teacher's requests are weighed, and what it was asked in this plan and in earlier runs."""

    def __init__(self, teacher: Teacher, keeps: float, sampling: Sampling, schedule: Schedule) -> None:
        self.scale = _scale_of(teacher)
        self.schedule = schedule
        self.around = _around(teacher, self.scale, sampling)
        self.contexts = _Contexts(self.scale)
        self.asked = Asked(keeps)
        self.sums = _Sums()


class Plan:
    """The plan of one replay; `add` it up trace by trace, then `told` says it."""

    def __init__(
        self,
        steps: Mapping[str, Sequence[int]],
        teachers: Sequence[Teacher],
        sampling: Sampling,
        *,
        logged: Logged = no_log,
        keeps: Mapping[RuleName, float] | None = None,
    ) -> None:
        self.steps = steps
        self.teachers = teachers
        self.sampling = sampling
        self.logged = logged
        self._now = time.time()
        keeps = kept_seconds() if keeps is None else keeps
        in_order = any(teacher.price.rewards_order for teacher in teachers)
        self._weighing = {
            one.name: _Weighing(one, keeps.get(_assumed(one), 0.0), sampling, Schedule(steps, in_order=in_order))
            for one in teachers
        }
        self._longest = {teacher.name: _longest(teacher, sampling) for teacher in teachers}

    def add(self, traces: Iterable[Trace]) -> Plan:
        """Add the selected steps of `traces`."""
        for trace in traces:
            wanted = set(self.steps.get(trace.id, ()))
            items = [Item(trace, step) for step in trace.steps if step.index in wanted]
            for teacher in self.teachers:
                for one in sorted(self._requests(teacher, items), key=lambda one: one.at):
                    self._add(teacher, one)
        return self

    def told(self) -> dict[str, dict[str, Any]]:
        """Per teacher, plain JSON: calls, answers in the cache, tokens, US dollars."""
        return {teacher.name: self._told(teacher, self._weighing[teacher.name].sums) for teacher in self.teachers}

    def _requests(self, teacher: Teacher, items: Sequence[Item]) -> Iterator[_Request]:
        actor, at = teacher.actor, self._now
        for item in items:
            ask = teacher.ask(*item)
            (known,) = teacher.known([ask], self.sampling)
            if known is not None and isinstance(actor, NetworkTeacher) and teacher.price.rewards_order:
                yield _Request(item, ask, known, actor.cache.kept_at(ask, teacher.sampling(self.sampling)))
            else:
                yield _Request(item, ask, known, at)

    def _add(self, teacher: Teacher, request: _Request) -> None:
        (item, ask, known, at), weighing = request, self._weighing[teacher.name]
        scale, sums = weighing.scale, weighing.sums
        beginnings = weighing.contexts.beginnings(item)
        around = weighing.around + scale.marks(ask, weighing.schedule.shared(item))
        size = scale.request(beginnings[-1], ask.tools, ask.hint) + around
        answer = scale.answer(item.step.action)
        asked = weighing.asked
        before = asked.before(item, at, earlier_run=known is not None) if teacher.price.rewards_order else 0
        beginning = (scale.request(beginnings[before], ask.tools) + around).tokens if before else 0.0
        written = min(float(self.sampling.max_new_tokens), answer)
        if known is not None:
            _learn(sums, known, size.tokens, beginning, written)
            return
        several = len(self.steps.get(item.trace.id, ())) > 1
        sums.requests.append((size.tokens, beginning, several))
        sums.written += written
        sums.logged.add_log(self.logged(item.step), item.step, size.tokens, answer)
        sums.most_read += most_tokens(size)
        sums.most_written += self._longest[teacher.name]

    def _told(self, teacher: Teacher, sums: _Sums) -> dict[str, Any]:
        rates, cache, price = _rates(teacher, sums), sums.bills().expected(_assumed(teacher)), teacher.price
        line = rates.read.line
        read = line.of(math.fsum(size for size, _, _ in sums.requests), calls=sums.calls)
        written = rates.written.line.of(sums.written, calls=sums.calls)
        written = min(written, float(sums.calls * self.sampling.max_new_tokens))
        found, stored = _in_prompt_cache(sums, line, cache) if price.rewards_order else (0.0, 0.0)
        stored = 0.0 if price.cache_write is None else stored
        cost = price.cost(prompt_tokens=read, completion_tokens=written, cached=found, written=stored)
        plain = price.cost(prompt_tokens=read, completion_tokens=written)
        batch = price.batch_cost(prompt_tokens=read, completion_tokens=written)
        most = (sums.most_read * price.dearest_input + sums.most_written * price.output) / 1e6
        told = {
            "calls": sums.calls,
            "cached": sums.known,
            "tokens_in": round(read),
            "tokens_cached": round(found),
            "tokens_out": round(written),
            "cost": round(cost, _DIGITS),
            "cost_uncached": round(plain, _DIGITS),
            "most": round(max(most, cost, plain), _DIGITS),
            "basis": _basis(teacher, sums, cost),
            "prompt_cache": cache.told if price.rewards_order else "no discount",
            "price_as_of": price.as_of,
        }
        if batch is not None:
            told["batch_cost"] = round(batch, _DIGITS)
        return told


def _learn(sums: _Sums, known: Answer, size: float, beginning: float, written: float) -> None:
    """An answer that is there already: nothing to pay, and its bill corrects the rest."""
    sums.known += 1
    sums.billed.add_bill(known, size, written)
    if known.prompt_tokens:
        sums.answered.append((known.prompt_tokens, known.cached_tokens, size, beginning))


def _in_prompt_cache(sums: _Sums, line: Line, cache: Expected) -> tuple[float, float]:
    """Tokens that will be found in the provider's prompt cache, and those that are written into it for later."""
    found = stored = 0.0
    for size, beginning, several in sums.requests:
        here = cache.found(line.of(beginning)) if beginning else 0.0
        found += here
        if several and RULES[cache.name].found(line.of(size)):
            stored += max(0.0, line.of(size) - here)
    return found, stored


def _rates(teacher: Teacher, sums: _Sums) -> Rates:
    """The best that is known."""
    return sums.billed if sums.billed.read.known or _scale_of(teacher).counts else sums.logged


def _scale_of(teacher: Teacher) -> Scale:
    return teacher.actor.meter.scale if isinstance(teacher.actor, NetworkTeacher) else _PLAIN


def _empty(teacher: NetworkTeacher, sampling: Sampling) -> Body:
    """A request in which nothing is said."""
    return teacher.endpoints[0].provider.body(Ask((), ()), sampling, shared=None)


def _around(teacher: Teacher, scale: Scale, sampling: Sampling) -> Size:
    """What a request has besides messages and tools: the model, how to decode, a recipe's `extra`."""
    if not isinstance(teacher.actor, NetworkTeacher):
        return Size()
    return scale.around(_empty(teacher.actor, teacher.sampling(sampling)))


def _longest(teacher: Teacher, sampling: Sampling) -> float:
    """Most tokens of an answer: as asked for, which a teacher's `extra` may change."""
    if not isinstance(teacher.actor, NetworkTeacher):
        return sampling.max_new_tokens
    asked = most_written(_empty(teacher.actor, sampling))
    return sampling.max_new_tokens if asked == math.inf else max(sampling.max_new_tokens, asked)


def _assumed(teacher: Teacher) -> RuleName:
    """The rule that is taken for granted until a bill says otherwise: the price row's, else the API's."""
    if teacher.price.prompt_cache is not None or not isinstance(teacher.actor, NetworkTeacher):
        return teacher.price.prompt_cache or "none"
    return teacher.actor.endpoints[0].provider.prompt_cache


def _basis(teacher: Teacher, sums: _Sums, cost: float) -> str:
    """What the estimate rests on, and how far it may be off."""
    if teacher.price.free:
        return "free"
    if sums.billed.read.known:
        return f"bills of {sums.billed.read.steps} answered steps, +-{100 * _error(teacher, sums, cost):.0f} %"
    scale = _scale_of(teacher)
    if not scale.counts and sums.logged.read.known:
        return f"what {sums.logged.read.steps} of these requests counted in their log, +-15 %"
    return scale.basis


def _error(teacher: Teacher, sums: _Sums, cost: float) -> float:
    """Two standard errors of the sum over the calls to come, by how the bills spread, as a share of the cost.

    Bills of a few steps of one trace are alike and spread less than what comes, so few of them never promise much.
    """
    rates, price, calls = sums.billed, teacher.price, sums.calls
    if rates.read.steps < _FEW_BILLS:
        return _UNSURE
    spread = math.hypot(price.input * rates.read.line.spread, price.output * rates.written.line.spread) / 1e6
    error = 2 * spread * math.sqrt(calls + calls**2 / rates.read.steps)
    return max(_SURE, _UNSURE / math.sqrt(rates.read.steps), error / cost) if cost else _SURE
