"""Which steps of a store are replayed: those at error sites, all of them, or those worth most for their money.

Steps of evaluations are never replayed; steps of unknown context and compactions are left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from postgrad.core.actor import Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.run.config import Config
from postgrad.teachers.prices import FREE
from postgrad.teachers.replay import Teacher
from postgrad.teachers.schedule import ask_of
from postgrad.teachers.tokens import Scale
from postgrad.teachers.voi import Prospect, cheapest, choose, features, uncertainty

if TYPE_CHECKING:
    from postgrad.signals.sites import Site
    from postgrad.traces.store import Store

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
    from postgrad.signals.sites import LEARNABLE, find_sites

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


def worthy_steps(
    store: Store,
    teachers: Sequence[Teacher],
    sampling: Sampling,
    config: VoiConfig,
    *,
    budget: float | None,
    limit: int | None,
) -> Steps:
    """Trace id -> the steps worth most for `budget` US dollars, or for `config.share` of what all would cost.

    Raises:
        ConfigError: the student cannot be loaded.
    """
    prospects = list(prospects_of(store, teachers, sampling, config))
    total = sum(prospect.cost for prospect in prospects)
    free = all(teacher.price == FREE for teacher in teachers)
    money = config.share * total if budget is None or free else budget
    money = max(money, cheapest(prospects, whole=config.whole))  # if it does not suffice, the replay says so
    steps: Steps = {}
    for prospect in choose(prospects, money, whole=config.whole)[:limit]:
        steps.setdefault(prospect.trace, []).append(prospect.step)
    return {trace: sorted(indices) for trace, indices in steps.items()}


def prospects_of(
    store: Store, teachers: Sequence[Teacher], sampling: Sampling, config: VoiConfig
) -> Iterator[Prospect]:
    """Every step that can be replayed, with what is known about it."""
    from postgrad.signals.sites import find_sites

    student = Student(config) if config.student else None
    scale = Scale()
    for trace in store.traces():
        steps = [step for step in trace.steps if step.can_be_learnt]
        if trace.for_evaluation or not steps:
            continue
        sites: dict[int, list[Site]] = {}
        for site in find_sites(trace):
            sites.setdefault(site.step, []).append(site)
        unsure = student.uncertainties([ask_of(trace, step) for step in steps]) if student else [0.0] * len(steps)
        for step, doubt in zip(steps, unsure, strict=True):
            yield Prospect(
                trace.id,
                step.index,
                cost=_cost(trace, step, teachers, sampling, scale),
                error=_evidence(sites.get(step.index, ())),
                uncertainty=doubt,
                position=step.index / max(1, len(trace.steps) - 1),
                tools=bool(step.request.tools),
                features=features(step.action, _last(trace, step), {site.kind for site in sites.get(step.index, ())}),
            )


def _last(trace: Trace, step: Step) -> Message | None:
    ids = step.request.messages
    return trace.messages[ids[-1]] if ids else None


def _evidence(sites: Sequence[Site]) -> float:
    """1 for a mistake, less for one that was made before, a share for a failure that may not be the student's."""
    from postgrad.signals.sites import LEARNABLE

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


class Student:
    """Samples a local model's own actions, to see how unsure it is."""

    def __init__(self, config: VoiConfig) -> None:
        from postgrad.models.policy import load_policy

        self._config = config
        self._policy = load_policy(config.student)

    def uncertainties(self, asks: Sequence[Ask]) -> list[float]:
        """One number from 0 to 1 per ask; 0 for a context that the student cannot hold."""
        from postgrad.models.sampler import generate
        from postgrad.signals.actions import normal_form

        config, renderer = self._config, self._policy.renderer
        prompts = [renderer.prompt(ask.messages, ask.tools) for ask in asks]
        room = self._policy.context_length - config.max_new_tokens
        fitting = [place for place, prompt in enumerate(prompts) if len(prompt) <= room]
        drawn = generate(
            self._policy,
            [prompts[place] for place in fitting],
            n=config.samples,
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            seed=0,
        )
        found = [0.0] * len(asks)
        for place, samples in zip(fitting, drawn, strict=True):
            forms = [normal_form(renderer.parse(renderer.decode(sample.tokens))) for sample in samples]
            surprisals = [-sum(sample.logprobs) / max(1, len(sample.logprobs)) for sample in samples]
            found[place] = uncertainty(forms, [float(value) for value in surprisals])
        return found


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
        from postgrad.signals.hints import template_hint
        from postgrad.signals.sites import find_sites

        hints: dict[int, str] = {}
        for site in find_sites(trace):
            hint = template_hint(site, trace)
            if hint is not None:
                hints.setdefault(site.step, hint)
        return hints
