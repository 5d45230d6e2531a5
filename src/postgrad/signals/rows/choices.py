"""Pairs from answers that somebody chose between: regenerations and branches.

- ``regeneration/1``: a step has several answers, and the conversation went on from one of them; it is preferred to the
  others. Where nothing went on from it, the newest answer is only the newest, and gives no pair.
- ``branch/1``: the user went back and took another path from the same context; the answer on the path that was kept is
  preferred to the one on the path that was left. Where the user changed their own words the contexts differ: no pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable, same_action
from postgrad.signals.rows.made import Made, Source, pair_at
from postgrad.teachers.validity import CUT_OFF


def build_choices(trace: Trace) -> Iterator[Made]:
    """A pair per answer of `trace` that was left for another, or the reason why there is none."""
    for step in trace.steps:
        others = [one for one in step.candidates if one.teacher is None and not one.chosen]
        for other in others:
            if other.stop_reason in CUT_OFF:
                yield Made(dropped="cut_off")
            elif step.abandoned or not _went_on(trace, step):
                yield Made(dropped="nothing_chosen")
            else:
                why = f"the conversation went on from it and not from {len(others)} other answers"
                yield _pair(trace, step, other.message, Source("regeneration/1", why, ("user",)))
    yield from _branches(trace)


def _branches(trace: Trace) -> Iterator[Made]:
    kept: dict[tuple[str, ...], Step] = {}
    for step in trace.steps:
        if not step.abandoned:
            kept.setdefault(step.request.messages, step)
    for left in trace.steps:
        if left.abandoned:
            instead = kept.get(left.request.messages)
            if instead is None:
                yield Made(dropped="other_context")
            elif not _went_on(trace, instead):
                yield Made(dropped="nothing_chosen")
            else:
                why = f"the user went back from step {left.index} and took this path"
                yield _pair(trace, instead, left.action, Source("branch/1", why, ("user",)))


def _went_on(trace: Trace, step: Step) -> bool:
    """Whether a later step has the answer in its context."""
    mine = step.action.id
    return any(
        later.index > step.index
        and any(trace.messages[key].id == mine for key in later.request.messages[len(step.request.messages) :])
        for later in trace.steps
    )


def _pair(trace: Trace, step: Step, worse: Message, source: Source) -> Made:
    if same_action(step.action, worse, step.request.tools):
        return Made(dropped="same_action")
    better, worse = learnable(step.action), learnable(worse)
    if not worse.blocks:
        return Made(dropped="empty")
    return pair_at(trace, step, chosen=better, rejected=worse, source=source)
