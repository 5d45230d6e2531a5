"""`Made`: a row of training data, or the reason why there is none. What every builder of rows gives."""

from __future__ import annotations

import msgspec

from postgrad.core.message import Message
from postgrad.core.record import Provenance, Record
from postgrad.core.trace import Step, Trace
from postgrad.teachers.validity import invalid_reason

THE_TRACE = "trace"
"""Who stands behind a row that nobody was asked about: what happened shows it."""


class Made(msgspec.Struct, frozen=True):
    """A row, or the reason why a step gave none."""

    record: Record | None = None
    dropped: str | None = None


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row from a trace says of itself: the rule, why it holds, who stands behind it."""

    rule: str
    why: str
    teachers: tuple[str, ...] = ()
    agreement: float | None = None


def provenance(trace: Trace, step: Step, source: Source) -> Provenance:
    """Where a row of `step` comes from, for which nobody was paid."""
    return Provenance(
        trace.id,
        step.index,
        source.rule,
        source.teachers or (THE_TRACE,),
        source.agreement,
        source.why or "no reason was given",
        cost=0.0,
        fidelity=step.request.fidelity,
    )


def pair_at(
    trace: Trace, step: Step, *, chosen: Message, rejected: Message, source: Source, weight: float = 1.0
) -> Made:
    """A preference pair in the context of `step`, unless the context is unknown or the chosen action cannot be learnt.

    Both actions are given as they are to be learnt, and differ.
    """
    if not step.can_be_learnt:
        return Made(dropped="context")
    unfit = invalid_reason(chosen, step.request.tools)
    if unfit is not None:
        return Made(dropped=unfit)
    where = provenance(trace, step, source)
    return Made(
        Record(trace.context(step), chosen, step.request.tools, rejected=rejected, weight=weight, provenance=where)
    )
