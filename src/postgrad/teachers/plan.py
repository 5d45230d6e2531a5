"""The plan: what a replay will cost, before any call.

Calls whose answers are in the cache cost nothing. The others are weighed (`tokens`), put in the order in which they
will go out (`schedule`), and what a provider's prompt cache will hold by then is counted at its price. An answer is
expected to be as long as the action that the student took. Two sums come out: `cost` is what to expect, with the
stated error of the estimate; `most` is what the calls can cost at worst, with nothing found in a prompt cache and every
answer at full length.

What an estimate rests on, the best that there is: the bills of steps that this teacher has answered already; the
teacher's tokenizer; what the traces' own logs say that the student's requests counted, where the request is known
whole; else characters. Nobody can know before a call how long another model's answer will be, nor what it thinks and
bills without showing it. Not covered: retries at a provider that bills failed calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from postgrad.core.actor import Ask, Sampling
from postgrad.core.trace import Trace
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.prices import FREE
from postgrad.teachers.provider import most_written
from postgrad.teachers.rates import Logged, Rates, no_log
from postgrad.teachers.replay import Teacher
from postgrad.teachers.schedule import Item, common, root_of
from postgrad.teachers.tokens import Scale, Size, most_tokens

_PLAIN = Scale()


@dataclass
class _Sums:
    """One teacher's calls, added up."""

    calls: int = 0
    known: int = 0
    read: float = 0.0
    found: float = 0.0
    stored: float = 0.0
    written: float = 0.0
    most_read: float = 0.0
    most_written: float = 0.0
    answered: dict[str, Size] = field(default_factory=dict)
    followed: int = 0
    hits: int = 0
    billed: Rates = field(default_factory=Rates)
    logged: Rates = field(default_factory=Rates)


class _Contexts:
    """Sizes of a trace's contexts, each worked out from the one before: a trace of K steps costs its length.

    Per teacher it also knows what the provider has been asked: of a trace the last request, of a common beginning the
    first.
    """

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._ids: Sequence[str] = ()
        self._sizes: list[Size] = []
        self._asked: dict[str, Sequence[str]] = {}
        self._roots: dict[str, Sequence[str]] = {}

    def sizes(self, item: Item) -> list[Size]:
        """Place n: the size of the first n messages."""
        ids = item.step.request.messages
        same = common(self._ids, ids)
        new = (self._scale.message(item.trace.messages[key]) for key in ids[same:])
        before = self._sizes[: same + 1] or [Size()]
        self._ids, self._sizes = ids, [*before[:-1], *accumulate(new, initial=before[-1])]
        return self._sizes

    def asked(self, item: Item) -> int:
        """How many messages at the beginning of `item`, which is asked now, were asked before."""
        ids = item.step.request.messages
        before = self._asked.get(item.trace.id)
        self._asked[item.trace.id] = ids
        if before is None:
            root = root_of(item)
            before = self._roots.setdefault(root, ids) if root else ids
        return 0 if before is ids else common(before, ids)


class Plan:
    """The plan of one replay; `add` it up trace by trace, then `told` says it."""

    def __init__(
        self,
        steps: Mapping[str, Sequence[int]],
        teachers: Sequence[Teacher],
        sampling: Sampling,
        *,
        logged: Logged = no_log,
    ) -> None:
        self.steps = steps
        self.teachers = teachers
        self.sampling = sampling
        self.logged = logged
        self._sums = {teacher.name: _Sums() for teacher in teachers}
        self._longest = {teacher.name: _longest(teacher, sampling) for teacher in teachers}
        self._contexts = {teacher.name: _Contexts(_scale_of(teacher)) for teacher in teachers}

    def add(self, traces: Iterable[Trace]) -> Plan:
        """Add the selected steps of `traces`."""
        for trace in traces:
            wanted = set(self.steps.get(trace.id, ()))
            for item in (Item(trace, step) for step in trace.steps if step.index in wanted):
                for teacher in self.teachers:
                    self._add(teacher, item)
        return self

    def told(self) -> dict[str, dict[str, Any]]:
        """Per teacher, plain JSON: calls, answers in the cache, tokens, US dollars."""
        return {teacher.name: self._told(teacher, self._sums[teacher.name]) for teacher in self.teachers}

    def _add(self, teacher: Teacher, item: Item) -> None:
        ask, sums, contexts = teacher.ask(*item), self._sums[teacher.name], self._contexts[teacher.name]
        scale = _scale_of(teacher)
        beginnings, tools = contexts.sizes(item), scale.tools(ask.tools)
        size = beginnings[-1] + tools + scale.hint(ask.hint)
        written = min(float(self.sampling.max_new_tokens), scale.answer(item.step.action))
        (known,) = teacher.known([ask], self.sampling)
        if known is not None:
            sums.known += 1
            sums.billed.add_bill(known, size.tokens, written)
            before = sums.answered.get(item.trace.id)
            sums.followed += before is not None and teacher.price != FREE and _kept(before, _cache_of(teacher)) > 0
            sums.hits += known.cached_tokens > 0
            sums.answered[item.trace.id] = size
            return
        sums.calls += 1
        sums.read += size.tokens
        sums.written += written
        sums.logged.add_log(self.logged(item.step), item.step, size.tokens, scale.answer(item.step.action))
        if teacher.price == FREE:
            return
        asked = contexts.asked(item) if teacher.price.rewards_order else 0
        found = _kept(beginnings[asked] + tools, _cache_of(teacher)) if asked else 0.0
        sums.found += found
        several = len(self.steps.get(item.trace.id, ())) > 1
        sums.stored += size.tokens - found if several and teacher.price.cache_write is not None else 0.0
        sums.most_read += most_tokens(size)
        sums.most_written += self._longest[teacher.name]

    def _told(self, teacher: Teacher, sums: _Sums) -> dict[str, Any]:
        rates = _rates(teacher, sums)
        reads, writes = rates.read.value or 1.0, rates.written.value or 1.0
        written = min(sums.written * writes, float(sums.calls * self.sampling.max_new_tokens))
        if sums.followed and not sums.hits:  # bills of steps that followed others of their trace name no cache
            sums.found = 0.0
        cost = teacher.price.cost(
            prompt_tokens=sums.read * reads,
            completion_tokens=written,
            cached=sums.found * reads,
            written=sums.stored * reads,
        )
        batch = teacher.price.batch_cost(prompt_tokens=sums.read * reads, completion_tokens=written)
        most = (sums.most_read * teacher.price.dearest_input + sums.most_written * teacher.price.output) / 1e6
        told = {
            "calls": sums.calls,
            "cached": sums.known,
            "tokens_in": round(sums.read * reads),
            "tokens_cached": round(sums.found * reads),
            "tokens_out": round(written),
            "cost": round(cost, 9),
            "most": round(max(most, cost), 9),
            "basis": _basis(teacher, sums),
        }
        if batch is not None:
            told["batch_cost"] = round(batch, 9)
        return told


def _rates(teacher: Teacher, sums: _Sums) -> Rates:
    """The best that is known."""
    if sums.billed.read.value is not None or _scale_of(teacher).counts:
        return sums.billed
    return sums.logged


def _scale_of(teacher: Teacher) -> Scale:
    return teacher.actor.meter.scale if isinstance(teacher.actor, NetworkTeacher) else _PLAIN


def _longest(teacher: Teacher, sampling: Sampling) -> float:
    """Most tokens of an answer: as asked for, which a teacher's `extra` may change."""
    if not isinstance(teacher.actor, NetworkTeacher):
        return sampling.max_new_tokens
    asked = most_written(teacher.actor.endpoints[0].provider.body(Ask((), ()), sampling, shared=None))
    return sampling.max_new_tokens if asked == math.inf else max(sampling.max_new_tokens, asked)


def _cache_of(teacher: Teacher) -> tuple[int, int]:
    assert isinstance(teacher.actor, NetworkTeacher), "only network teachers cost"
    return teacher.actor.endpoints[0].provider.prompt_cache


def _kept(size: Size, cache: tuple[int, int]) -> float:
    shortest, unit = cache
    if size.tokens < shortest:
        return 0.0
    return size.tokens if unit == 1 else size.tokens // unit * unit


def _basis(teacher: Teacher, sums: _Sums) -> str:
    """What the estimate rests on, and how far it may be off."""
    if teacher.price == FREE:
        return "free"
    if sums.billed.read.value is not None:
        return f"bills of {sums.billed.read.steps} answered steps, +-2 %"
    scale = _scale_of(teacher)
    if not scale.counts and sums.logged.read.value is not None:
        return f"what {sums.logged.read.steps} of these requests counted in their log, +-15 %"
    return scale.basis
