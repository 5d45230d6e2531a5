"""Rows for hinted self-distillation: the student's own action with the hint that would have prevented it.

The hint is set before the action, in the context of the step that made the mistake, and the same weights with the hint
are the teacher. A mistake made again and again gives at most two rows, so that one habit does not fill the set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from postgrad.core.record import Provenance, Record
from postgrad.core.trace import Trace
from postgrad.signals.actions import learnable
from postgrad.signals.hints import template_hint
from postgrad.signals.preferences import Made
from postgrad.signals.sites import LEARNABLE, Site

ROWS_PER_MISTAKE = 2


def build_hinted(trace: Trace, sites: Iterable[Site]) -> Iterable[Made]:
    """A row per learnable site of `trace`, or the reason why there is none."""
    steps = {step.index: step for step in trace.steps}
    groups: Counter[tuple[int, str]] = Counter()
    for site in sites:
        if site.verdict not in LEARNABLE:
            continue
        group = (site.step if site.repeat_of is None else site.repeat_of, site.kind)
        groups[group] += 1
        step = steps[site.step]
        action = learnable(step.action)
        hint = template_hint(site, trace)
        if not step.can_be_learnt:
            yield Made(dropped="context")
        elif groups[group] > ROWS_PER_MISTAKE:
            yield Made(dropped="repeated_mistake")
        elif hint is None:
            yield Made(dropped="no_hint")
        elif not action.blocks:
            yield Made(dropped="empty")
        else:
            where = Provenance(trace.id, step.index, site.rule)
            yield Made(Record(trace.context(step), action, step.request.tools, hint=hint, provenance=where))
