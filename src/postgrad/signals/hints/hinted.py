"""Rows for hinted self-distillation: the student's own action with the hint that would have prevented it.

The hint is set before the action, in the context of the step that made the mistake, and the same weights with the hint
are the teacher. A mistake made again and again gives at most two rows, so that one habit does not fill the set. With a
gate (`effect`) a row is only kept where its hint was measured to do any good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.core.trace import Trace
from postgrad.signals.actions import learnable
from postgrad.signals.error_sites.sites import LEARNABLE, Site
from postgrad.signals.hints.layers import OWN_EVIDENCE, Hints
from postgrad.signals.rows.made import Made, Source, provenance

ROWS_PER_MISTAKE = 2
Gate = Callable[[Record, Message | None], str | None]
"""``gate(row, better)``: why the row's hint does no good, None where it does; `better`: the better action, if known."""


def build_hinted(
    trace: Trace, sites: Iterable[Site], hints: Hints = OWN_EVIDENCE, *, gate: Gate | None = None
) -> Iterator[Made]:
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
        if not step.can_be_learnt:
            yield Made(dropped="context")
        elif groups[group] > ROWS_PER_MISTAKE:
            yield Made(dropped="repeated_mistake")
        elif (hint := hints.find(site, trace)) is None:
            yield Made(dropped="no_hint")
        elif not action.blocks:
            yield Made(dropped="empty")
        else:
            where = provenance(trace, step, Source(site.rule, f"{site.kind}; hint: {hint.layer}"))
            row = Record(trace.context(step), action, step.request.tools, hint=hint.text, provenance=where)
            useless = gate(row, hints.better(site, trace)) if gate is not None else None
            yield Made(row) if useless is None else Made(dropped=useless)
