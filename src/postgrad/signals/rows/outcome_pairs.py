"""Pairs weighed by how runs ended: ``outcome/1``.

Attempts at one task share their first contexts. Where attempts acted differently in the very same context (messages and
tools), each action has the mean outcome of the attempts that took it. The action with the best mean is preferred to the
one with the worst; the weight is the difference of the means. A step's own verifier counts before the run's end.
Differences below `LEAST_DIFFERENCE` and contexts with one action give none.

A trace is only looked at for its contexts' ids, so that a whole store can be gone through; contexts that several steps
share are then read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable, normal_form
from postgrad.signals.attempts import context_key, step_outcome
from postgrad.signals.endings import run_outcome
from postgrad.signals.rows.made import Made, Source, pair_at
from postgrad.teachers.validity import CUT_OFF

LEAST_DIFFERENCE = 0.2
"""Of two mean outcomes, on a scale from 0 to 1."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt's action in a context: where it stands, what it is, how it ended (0 to 1)."""

    trace: str
    step: int
    form: str
    outcome: float


def build_outcomes(traces: Callable[[], Iterable[Trace]]) -> Iterator[Made]:
    """Pairs over all traces, or the reason why a context with several attempts gives none.

    Args:
        traces: gives the traces anew with each call; those of evaluations are passed over.
    """
    wanted: dict[tuple[str, int], tuple[Attempt, Attempt]] = {}
    for attempts in _contexts(traces()).values():
        found = _best_and_worst(attempts)
        if isinstance(found, str):
            yield Made(dropped=found)
        else:
            wanted[found[0].trace, found[0].step] = found
    losers = {(worst.trace, worst.step) for _, worst in wanted.values()}
    actions: dict[tuple[str, int], Message] = {}
    steps: dict[tuple[str, int], tuple[Trace, Step]] = {}
    for trace in traces() if wanted else ():
        for step in trace.steps:
            if (trace.id, step.index) in losers:
                actions[trace.id, step.index] = learnable(step.action)
            if (trace.id, step.index) in wanted:
                steps[trace.id, step.index] = trace, step
    for key, (best, worst) in wanted.items():
        yield _pair(*steps[key], actions[worst.trace, worst.step], best, worst)


def _contexts(traces: Iterable[Trace]) -> dict[str, list[Attempt]]:
    """Attempts by context; contexts that only one step has are left out."""
    found: defaultdict[str, list[Attempt]] = defaultdict(list)
    for trace in traces:
        if trace.for_evaluation:
            continue
        end = run_outcome(trace)
        for step in trace.steps:
            outcome = step_outcome(step, end)
            cut = any(one.chosen and one.stop_reason in CUT_OFF for one in step.candidates)
            if outcome is None or cut or not step.can_be_learnt or not learnable(step.action).blocks:
                continue
            form = content_id(normal_form(step.action, step.request.tools))
            found[context_key(trace, step)].append(Attempt(trace.id, step.index, form, outcome))
    return {key: attempts for key, attempts in found.items() if len(attempts) > 1}


def _best_and_worst(attempts: list[Attempt]) -> tuple[Attempt, Attempt] | str:
    """One attempt with the best action and one with the worst, their outcomes being the means of their actions."""
    groups: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[attempt.form].append(attempt)
    if len(groups) < 2:
        return "one_action"
    means = [
        msgspec.structs.replace(group[0], outcome=sum(one.outcome for one in group) / len(group))
        for group in groups.values()
    ]
    best = max(means, key=lambda one: one.outcome)
    worst = min(means, key=lambda one: one.outcome)
    return (best, worst) if best.outcome - worst.outcome >= LEAST_DIFFERENCE else "same_outcome"


def _pair(trace: Trace, step: Step, worse: Message, best: Attempt, worst: Attempt) -> Made:
    why = f"mean outcome {best.outcome:.2f} against {worst.outcome:.2f} in the same context"
    taken = next(candidate for candidate in step.candidates if candidate.chosen)
    return pair_at(
        trace,
        step,
        chosen=learnable(step.action),
        rejected=worse,
        source=Source("outcome/1", why, (taken.model,) if taken.model else ()),
        weight=best.outcome - worst.outcome,
    )
