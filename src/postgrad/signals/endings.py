"""Rule 11: how the whole run ended. No site of its own; a number by which sites can be weighed.

A mistake in a run that still succeeded was recovered, so its recovery is a hint that is known to be true.
"""

from __future__ import annotations

from postgrad.core.trace import Trace

_RUN_KINDS = ("reward", "score", "outcome", "resolved", "run")


def run_outcome(trace: Trace) -> float | None:
    """The last run-level score, cut to 0..1; None where the source has none. A verifier's word on a step is none."""
    values = [
        said.value
        for step in trace.steps
        for said in step.feedback
        if said.kind in _RUN_KINDS and said.value is not None
    ]
    return min(1.0, max(0.0, values[-1])) if values else None
