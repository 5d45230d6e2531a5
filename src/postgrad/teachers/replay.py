"""Replay: put recorded steps before teachers again and keep what each of them would have done.

Steps go to the teachers in batches. Everything that costs is in the teachers' caches, so a replay that was killed goes
through what it had without a call. The student's own action is kept beside the answers. Not covered: running the
teachers' actions; a replay asks, it does not act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.prices import Price

Hinter = Callable[[Trace, Step], str | None]


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
    metered: bool = False
    price: Price | None = None

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


class TeacherAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One teacher's answer to one step; `seconds` and `cost` are in `answer`, and were spent earlier if `cached`."""

    answer: Answer
    kind: str
    hint: str | None = None
    cached: bool = False


class ReplayedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step, the student's action, and each teacher's answer, by name. The ask is without any teacher's hint."""

    trace: str
    step: int
    ask: Ask
    action: Message
    answers: dict[str, TeacherAnswer]


def ask_of(trace: Trace, step: Step) -> Ask:
    """The step as a question: its context, its tools, its task."""
    return Ask(trace.context(step), step.request.tools, trace.task_id)


def replay(
    traces: Iterable[Trace],
    steps: Mapping[str, Sequence[int]],
    teachers: Sequence[Teacher],
    sampling: Sampling,
    *,
    batch: int = 32,
    before: Callable[[Sequence[tuple[Teacher, Sequence[Ask]]]], None] | None = None,
) -> Iterator[ReplayedStep]:
    """Ask every teacher about every selected step.

    Args:
        traces: the traces; those without selected steps are passed over.
        steps: trace id -> indices of the steps to replay.
        teachers: with different names.
        sampling: how to sample; each teacher adds its own `constrained`.
        batch: steps asked at once.
        before: called with the asks of a batch that would be new calls; may raise to stop the replay.

    Raises:
        OutsideFailure: a teacher cannot be reached; what arrived is in its cache.
    """
    chosen = ((trace, step) for trace in traces for step in trace.steps if step.index in set(steps.get(trace.id, ())))
    while group := list(islice(chosen, batch)):
        rounds = [_Round.of(teacher, group, sampling) for teacher in teachers]
        if before is not None:
            before([(each.teacher, each.unknown) for each in rounds])
        answers = [each.answers() for each in rounds]
        for place, (trace, step) in enumerate(group):
            named = {each.teacher.name: given[place] for each, given in zip(rounds, answers, strict=True)}
            yield ReplayedStep(trace.id, step.index, ask_of(trace, step), step.action, named)


@dataclass(frozen=True)
class _Round:
    """One batch for one teacher."""

    teacher: Teacher
    asks: list[Ask]
    known: list[Answer | None]
    sampling: Sampling

    @classmethod
    def of(cls, teacher: Teacher, group: Sequence[tuple[Trace, Step]], base: Sampling) -> _Round:
        asks = [teacher.ask(trace, step) for trace, step in group]
        sampling = teacher.sampling(base)
        actor = teacher.actor
        known = actor.known(asks, sampling) if isinstance(actor, CachedActor) else [None] * len(asks)
        return cls(teacher, asks, list(known), sampling)

    @property
    def unknown(self) -> list[Ask]:
        return [ask for ask, known in zip(self.asks, self.known, strict=True) if known is None]

    def answers(self) -> list[TeacherAnswer]:
        given = self.teacher.actor.answer(self.asks, self.sampling)
        return [
            TeacherAnswer(answer, self.teacher.kind, ask.hint, known is not None)
            for answer, ask, known in zip(given, self.asks, self.known, strict=True)
        ]
