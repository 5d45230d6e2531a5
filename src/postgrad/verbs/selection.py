"""Which steps of a store are replayed: those at error sites, all of them, or those worth most for their money.

Steps of evaluations are never replayed; steps of unknown context and compactions are left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

from postgrad.core.actor import Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.run.config import Config
from postgrad.teachers.money.prices import FREE
from postgrad.teachers.money.schedule import ask_of
from postgrad.teachers.money.tokens import Scale
from postgrad.teachers.money.voi import Doubt, Prospect, cheapest, choose, features
from postgrad.teachers.replay import Teacher

if TYPE_CHECKING:
    from postgrad.signals.error_sites.sites import Site
    from postgrad.traces.storage.store import Store

Which = Literal["sites", "all", "voi"]
Steps = dict[str, list[int]]
_LESSER_EVIDENCE = 0.3  # of a failure that may have been the environment's fault
_KEPT_TRACES = 64


class VoiConfig(Config):
    """How `steps: voi` weighs steps."""

    share: Annotated[float, Field(gt=0, le=1)] = 0.3
    """part of the cost of all steps to spend, where there is no budget"""
    whole: bool = False
    """choose whole traces"""
    student: str = ""
    """local model whose uncertainty counts: its entropy, and how much its samples disagree"""
    samples: Annotated[int, Field(ge=2)] = 4
    """actions to sample from the student per step"""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """of these samples"""
    max_new_tokens: Annotated[int, Field(ge=1)] = 64
    """most tokens of one of them"""


def fit_steps(traces: Iterator[Trace], *, which: Which, limit: int | None = None) -> Steps:
    """Trace id -> steps that can be replayed, at error sites only with `which` "sites"."""
    from postgrad.signals.error_sites.sites import LEARNABLE, find_sites

    left = limit
    chosen: Steps = {}
    for trace in traces:
        if trace.for_evaluation:
            continue
        fit = [step for step in trace.steps if step.can_be_learnt]
        if which == "sites":
            wanted = {site.step for site in find_sites(trace) if site.verdict in LEARNABLE}
            fit = [step for step in fit if step.index in wanted]
        found = [step.index for step in fit][:left]
        left = None if left is None else left - len(found)
        if found:
            chosen[trace.id] = found
        if left == 0:
            break
    return chosen


def worthy_steps(prospects: Sequence[Prospect], config: VoiConfig, *, money: float | None, limit: int | None) -> Steps:
    """Trace id -> the steps worth most for `money` (None: for `config.share` of what all would cost)."""
    total = sum(prospect.cost for prospect in prospects)
    spent = config.share * total if money is None else money
    spent = max(spent, cheapest(prospects, whole=config.whole))  # if it does not suffice, the replay says so
    steps: Steps = {}
    for prospect in choose(prospects, spent, whole=config.whole)[:limit]:
        steps.setdefault(prospect.trace, []).append(prospect.step)
    return {trace: sorted(indices) for trace, indices in steps.items()}


class Doubter(Protocol):
    """Whoever can say how unsure it is: `student.Student`."""

    def doubts(self, asks: Sequence[Ask]) -> list[Doubt]:
        """How unsure it is at each."""
        ...


@dataclass(frozen=True)
class Prospects:
    """What is known about steps before anyone is asked.

    Attributes:
        teachers: who would be paid.
        sampling: how they would answer.
        student: whose doubts count; None for nobody's.
    """

    teachers: Sequence[Teacher]
    sampling: Sampling
    student: Doubter | None = None

    def of(self, store: Store) -> Iterator[Prospect]:
        """Every step that can be replayed."""
        scale = Scale()
        for trace in store.traces():
            steps = [step for step in trace.steps if step.can_be_learnt]
            if not trace.for_evaluation and steps:
                yield from self._of_trace(trace, steps, scale)

    def _of_trace(self, trace: Trace, steps: Sequence[Step], scale: Scale) -> Iterator[Prospect]:
        from postgrad.signals.error_sites.sites import find_sites

        sites: dict[int, list[Site]] = {}
        for site in find_sites(trace):
            sites.setdefault(site.step, []).append(site)
        asks = [ask_of(trace, step) for step in steps]
        doubts = self.student.doubts(asks) if self.student is not None else [Doubt()] * len(steps)
        for step, doubt in zip(steps, doubts, strict=True):
            known = sites.get(step.index, ())
            yield Prospect(
                trace.id,
                step.index,
                cost=_cost(trace, step, self.teachers, self.sampling, scale),
                error=_evidence(known),
                uncertainty=doubt.value,
                position=step.index / max(1, len(trace.steps) - 1),
                tools=bool(step.request.tools),
                features=features(step.action, _last(trace, step), {site.kind for site in known}),
            )


def _last(trace: Trace, step: Step) -> Message | None:
    ids = step.request.messages
    return trace.messages[ids[-1]] if ids else None


def _evidence(sites: Sequence[Site]) -> float:
    """1 for a mistake, less for one that was made before, a share for a failure that may not be the student's."""
    from postgrad.signals.error_sites.sites import LEARNABLE

    known = [(0.5 if site.repeat_of is not None else 1.0) for site in sites if site.verdict in LEARNABLE]
    return max(known, default=_LESSER_EVIDENCE if sites else 0.0)


def _cost(trace: Trace, step: Step, teachers: Sequence[Teacher], sampling: Sampling, scale: Scale) -> float:
    """US dollars over all teachers; tokens where all of them are free. What a prompt cache saves is left out."""
    read = (
        sum(scale.message(message).tokens for message in trace.context(step)) + scale.tools(step.request.tools).tokens
    )
    written = min(float(sampling.max_new_tokens), scale.answer(step.action))
    prices = [teacher.price for teacher in teachers if teacher.price != FREE]
    if not prices:
        return read + written
    return sum(price.cost(prompt_tokens=read, completion_tokens=written) for price in prices)


class TemplateHints:
    """Trace and step -> the hint for the first learnable mistake there. A trace's hints are found once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Trace, dict[int, str]]] = OrderedDict()

    def __call__(self, trace: Trace, step: Step) -> str | None:
        """The hint, None where there is nothing to say."""
        known = self._known.get(id(trace))
        if known is None:
            known = self._known[id(trace)] = (trace, self._of(trace))
            if len(self._known) > _KEPT_TRACES:
                self._known.popitem(last=False)
        return known[1].get(step.index)

    @staticmethod
    def _of(trace: Trace) -> dict[int, str]:
        from postgrad.signals.error_sites.sites import find_sites
        from postgrad.signals.hints.hint import template_hint

        hints: dict[int, str] = {}
        for site in find_sites(trace):
            hint = template_hint(site, trace)
            if hint is not None:
                hints.setdefault(site.step, hint)
        return hints
