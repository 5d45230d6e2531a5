"""Rows to imitate from the store's own actions; who acted is named as the row's teacher.

`verified/1`: the step's verifier gave the full score (rejection sampling, or a teacher's own run).
`taken/1`: the action taken at a step where no error site lies, for traces of a stronger model, which have no verifier.
Not covered: whether an action without an error was also a good one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from postgrad.core.record import Record
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable
from postgrad.signals.error_sites.sites import Site
from postgrad.signals.rows.human import corrections_of
from postgrad.signals.rows.made import Made, Source, provenance
from postgrad.teachers.validity import CUT_OFF

# Verdicts that speak for the action: what looked wrong there was not.
_HARMLESS = ("benign", "expected", "env")
_WHY = {"verified/1": "the verifier gave the full score", "taken/1": "no error lies at this step"}


def build_verified(trace: Trace) -> Iterator[Made]:
    """A row per step of `trace` that a verifier judged, or the reason why there is none."""
    for step in trace.steps:
        scores = [feedback.value for feedback in step.feedback if feedback.kind == "verifier"]
        if not scores:
            continue
        if any(score is None or score < 1 for score in scores):
            yield Made(dropped="verifier_said_no")
        else:
            yield _imitated(trace, step, "verified/1")


def build_taken(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """A row per step of `trace`, or the reason why there is none: a site, a compaction, an unknown context."""
    wrong = {site.step for site in sites if site.verdict not in _HARMLESS}
    for step in trace.steps:
        if step.index in wrong:
            yield Made(dropped="error_site")
        else:
            yield _imitated(trace, step, "taken/1")


def _imitated(trace: Trace, step: Step, rule: str) -> Made:
    action = learnable(step.action)
    taken = next(candidate for candidate in step.candidates if candidate.chosen)
    if not step.can_be_learnt:
        return Made(dropped="context")
    if corrections_of(step):
        return Made(dropped="corrected")
    if taken.stop_reason in CUT_OFF:
        return Made(dropped="cut_off")
    if not action.blocks:
        return Made(dropped="empty")
    source = Source(rule, _WHY[rule], (taken.model,) if taken.model else ())
    where = provenance(trace, step, source)
    return Made(Record(trace.context(step), action, step.request.tools, provenance=where))
