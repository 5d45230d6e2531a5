"""Rows to imitate from traces whose actions a verifier passed: rejection sampling, or a teacher's own run.

Only a step whose verifier gave the full score teaches; who acted is named as the row's teacher. Not covered: steps
without a verifier, however good they look.
"""

from __future__ import annotations

from collections.abc import Iterator

from postgrad.core.record import Provenance, Record
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable
from postgrad.signals.preferences import Made

RULE = "verified/1"


def build_verified(trace: Trace) -> Iterator[Made]:
    """A row per step of `trace` that a verifier judged, or the reason why there is none."""
    for step in trace.steps:
        scores = [feedback.value for feedback in step.feedback if feedback.kind == "verifier"]
        if not scores:
            continue
        if any(score is None or score < 1 for score in scores):
            yield Made(dropped="verifier_said_no")
            continue
        action = learnable(step.action)
        if not action.blocks:
            yield Made(dropped="empty")
            continue
        where = Provenance(trace.id, step.index, RULE, _actor(step))
        yield Made(Record(trace.context(step), action, step.request.tools, provenance=where))


def _actor(step: Step) -> tuple[str, ...]:
    model = next(candidate.model for candidate in step.candidates if candidate.chosen)
    return (model,) if model else ()
