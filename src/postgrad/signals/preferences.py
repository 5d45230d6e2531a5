"""Preference pairs from traces: what teachers would have done, or what worked later, against what was done.

``majority/1`` (trace-replay preference): chosen = the action that the teachers agree on, rejected = the student's, when
the student's is outside that cluster; the weight is the cluster's share. ``recovery/1``: chosen = the first later call
of the same tool on the same target that succeeded, rejected = the call that failed; no teacher is asked. The recovery
may use what the student saw in between, so it is only taken where one call failed by its own form or by its command.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from postgrad.core.message import Message
from postgrad.core.record import Provenance, Record
from postgrad.core.trace import Trace
from postgrad.signals.actions import learnable, same_action
from postgrad.signals.agreement import Agreement, agree, gold_action
from postgrad.signals.recoveries import recovering_call
from postgrad.signals.sites import Site
from postgrad.teachers.replay import ReplayedStep
from postgrad.teachers.validity import invalid_reason


class Made(msgspec.Struct, frozen=True):
    """A row, or the reason why a step gave none."""

    record: Record | None = None
    dropped: str | None = None


def build_pairs(replayed: Iterable[ReplayedStep]) -> Iterable[Made]:
    """One pair or one reason per replayed step; ``same_as_student`` is a reason."""
    return (_pair(step, agree(step), rule="majority/1") for step in replayed)


def build_imitations(replayed: Iterable[ReplayedStep], *, gold: bool = False) -> Iterable[Made]:
    """Rows for cross-entropy: the majority's action, or with `gold` the action of the gold teacher."""
    for step in replayed:
        found = gold_action(step) if gold else agree(step)
        if isinstance(found, Agreement):
            yield Made(_row(step, found, rule="gold/1" if gold else "majority/1"))
        else:
            yield Made(dropped=found)


def _pair(step: ReplayedStep, found: Agreement | str, *, rule: str) -> Made:
    if not isinstance(found, Agreement):
        return Made(dropped=found)
    if same_action(found.action, step.action):
        return Made(dropped="same_as_student")
    row = _row(step, found, rule=rule)
    return Made(msgspec.structs.replace(row, rejected=learnable(step.action), weight=found.share))


def _row(step: ReplayedStep, found: Agreement, *, rule: str) -> Record:
    return Record(
        messages=step.ask.messages,
        action=found.action,
        tools=step.ask.tools,
        provenance=Provenance(step.trace, step.step, rule, found.teachers, found.share),
    )


def build_recoveries(trace: Trace, sites: Iterable[Site]) -> Iterable[Made]:
    """A pair per site of `trace` that the same run recovered from, or the reason why not."""
    for site in sites:
        if site.verdict == "real" and site.kind in ("invalid_call", "tool_error"):
            yield _recovery(trace, site)


def _recovery(trace: Trace, site: Site) -> Made:
    if site.recovery_step is None:
        return Made(dropped="not_recovered")
    if site.repeat_of is not None:
        return Made(dropped="repeated_mistake")
    steps = {step.index: step for step in trace.steps}
    failed, later = steps[site.step], steps[site.recovery_step]
    if not failed.can_be_learnt:
        return Made(dropped="context")
    call = next((call for call in failed.action.tool_calls if call.id == site.call), None)
    if call is None or len(failed.action.tool_calls) > 1:
        return Made(dropped="parallel_calls")
    better = recovering_call(later, call)
    assert better is not None, "a recovery step has a recovering call"
    chosen = Message("assistant", (better,))
    if same_action(chosen, failed.action):
        return Made(dropped="same_call_worked_later")
    unfit = invalid_reason(chosen, failed.request.tools)
    if unfit is not None:
        return Made(dropped=unfit)
    return Made(
        Record(
            messages=trace.context(failed),
            action=chosen,
            tools=failed.request.tools,
            rejected=Message("assistant", (call,)),
            provenance=Provenance(trace.id, failed.index, "recovery/1"),
        )
    )
