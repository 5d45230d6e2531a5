"""Replay: put recorded steps before teachers again and keep what each of them would have done.

Steps go to the teachers in groups. In a group the network teachers are asked all at once, as far as their limits allow;
where a provider gives a discount for prompts that begin alike, the steps of a trace go one after the other, each when
the one before has been answered, and of several traces that begin alike the first goes first (`schedule`). Then the
others (local models, gold answers) answer the group in one piece. Everything that costs is in the teachers' caches, so
a replay that was killed goes through what it had without a call. The student's own action is kept beside the answers.
Not covered: running the teachers' actions; a replay asks, it does not act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Fidelity, Step, Trace
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.money.prices import FREE, Price
from postgrad.teachers.money.schedule import Item, Schedule, ask_of
from postgrad.teachers.network import NetworkTeacher, or_raised
from postgrad.teachers.stopping import NoMoreCalls, Stop

Hinter = Callable[[Trace, Step], str | None]
TOLD_A_HINT = "told a hint"
"""In the kind of a teacher that got a hint without the answer in it; one that was told the answer should repeat it."""


def no_hint(trace: Trace, step: Step) -> None:
    """The default: a teacher sees what the student saw."""
    return None


@dataclass(frozen=True)
class Teacher:
    """An actor in its role: how it decodes, what it is told (`note` says so), and what its calls cost."""

    name: str
    actor: Actor
    constrained: bool = False
    hint: Hinter = no_hint
    note: str = ""
    price: Price = FREE

    @property
    def kind(self) -> str:
        """What it is, as reports print it: "local model, told the gold answer"."""
        return ", ".join(part for part in (self.actor.kind, self.note) if part)

    def sampling(self, base: Sampling) -> Sampling:
        """`base` with this teacher's decoding."""
        return msgspec.structs.replace(base, constrained=self.constrained)

    def ask(self, trace: Trace, step: Step) -> Ask:
        """The step as this teacher is asked it."""
        return msgspec.structs.replace(ask_of(trace, step), hint=self.hint(trace, step))

    def known(self, asks: Sequence[Ask], base: Sampling) -> list[Answer | None]:
        """What of `asks` needs no call any more."""
        if isinstance(self.actor, CachedActor | NetworkTeacher):
            return self.actor.known(asks, self.sampling(base))
        return [None] * len(asks)


class TeacherAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One teacher's answer to one step; `seconds` and `cost` are in `answer`, and were spent earlier if `cached`."""

    answer: Answer
    kind: str
    hint: str | None = None
    cached: bool = False


class ReplayedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step, the student's action, and each teacher's answer, by name. The ask is without any teacher's hint.

    `fidelity` is how exactly the step's context is known; older files do not say.
    """

    trace: str
    step: int
    ask: Ask
    action: Message
    answers: dict[str, TeacherAnswer]
    fidelity: Fidelity | None = None


def chosen_steps(traces: Iterable[Trace], steps: Mapping[str, Sequence[int]]) -> Iterator[Item]:
    """The selected steps in the order of the traces; of each trace in its own order."""
    for trace in traces:
        wanted = set(steps.get(trace.id, ()))
        yield from (Item(trace, step) for step in trace.steps if step.index in wanted)


def replay(
    traces: Iterable[Trace],
    steps: Mapping[str, Sequence[int]],
    teachers: Sequence[Teacher],
    sampling: Sampling,
    *,
    batch: int = 32,
    stop: Stop | None = None,
) -> Iterator[ReplayedStep]:
    """Ask every teacher about every selected step; ends early when a budget is reached or `stop` is asked for.

    Steps that all have answered come out also then.

    Args:
        traces: the traces; those without selected steps are passed over.
        steps: trace id -> indices of the steps to replay.
        teachers: with different names.
        sampling: how to sample; each teacher adds its own `constrained`.
        batch: steps asked at once.
        stop: the gateway's, which the other actors know nothing of.

    Raises:
        ConfigError: an endpoint refuses the key, the model or the address.
    """
    network = [teacher for teacher in teachers if isinstance(teacher.actor, NetworkTeacher)]
    others = [teacher for teacher in teachers if not isinstance(teacher.actor, NetworkTeacher)]
    schedule = Schedule(steps, in_order=any(teacher.price.rewards_order for teacher in network))
    chosen = chosen_steps(traces, steps)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            for teacher in network:
                assert isinstance(teacher.actor, NetworkTeacher), "sorted above"
                runner.run(stack.enter_async_context(teacher.actor.connected()))
            while group := list(islice(chosen, batch)):
                said = runner.run(_ask_network(group, network, sampling, schedule)) if network else [{} for _ in group]
                whole = [(item, answers) for item, answers in zip(group, said, strict=True) if answers is not None]
                if stop is not None and stop.asked:
                    whole = [one for one in whole if _needs_no_work(one[0], others, sampling)]
                _ask_others(whole, others, sampling)
                for item, answers in whole:
                    yield _step(item, {teacher.name: answers[teacher.name] for teacher in teachers})
                if len(whole) < len(group):
                    return
        finally:
            runner.run(stack.aclose())


Answers = dict[str, TeacherAnswer]


def _step(item: Item, answers: Answers) -> ReplayedStep:
    trace, step = item
    return ReplayedStep(trace.id, step.index, ask_of(trace, step), step.action, answers, step.request.fidelity)


async def _ask_network(
    group: Sequence[Item], teachers: Sequence[Teacher], sampling: Sampling, schedule: Schedule
) -> list[Answers | None]:
    """Every network teacher's answer to every step of a group; None where not all of them could be asked any more."""
    found: dict[int, Answers] = {}

    async def one(teacher: Teacher, item: Item, shared: int | None) -> TeacherAnswer:
        assert isinstance(teacher.actor, NetworkTeacher), "only those are asked here"
        ask = teacher.ask(*item)
        given = await teacher.actor.ask(ask, teacher.sampling(sampling), trace=item.trace.id, shared=shared)
        return TeacherAnswer(given[0], teacher.kind, ask.hint, cached=given[1])

    async def step(place: int) -> None:
        shared = schedule.shared(group[place])
        told = await asyncio.gather(*(one(t, group[place], shared) for t in teachers), return_exceptions=True)
        found[place] = {t.name: answer for t, answer in zip(teachers, or_raised(told), strict=True)}

    ends = await asyncio.gather(*schedule.lanes(group, step), return_exceptions=True)
    or_raised([end for end in ends if not isinstance(end, NoMoreCalls)])
    return [found.get(place) for place in range(len(group))]


def _needs_no_work(item: Item, teachers: Sequence[Teacher], sampling: Sampling) -> bool:
    """Whether no model has to be run for it: what is worth keeping is kept."""
    working = [teacher for teacher in teachers if isinstance(teacher.actor, CachedActor)]
    return all(None not in teacher.known([teacher.ask(*item)], sampling) for teacher in working)


def _ask_others(group: Sequence[tuple[Item, Answers]], teachers: Sequence[Teacher], sampling: Sampling) -> None:
    """Add the answers of actors that answer a list at once."""
    for teacher in teachers:
        asks = [teacher.ask(*item) for item, _ in group]
        known = teacher.known(asks, sampling)
        given = teacher.actor.answer(asks, teacher.sampling(sampling)) if asks else []
        for (_, answers), answer, ask, kept in zip(group, given, asks, known, strict=True):
            answers[teacher.name] = TeacherAnswer(answer, teacher.kind, ask.hint, kept is not None)
