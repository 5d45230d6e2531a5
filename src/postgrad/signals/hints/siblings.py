"""Sibling success: what another attempt at the same thing did, that came out well.

A sibling is never the run itself (SDPO's rule for demonstrations). Where it stood before the very same context, the
hint tells its action there; else the tools that it used, in order.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable
from postgrad.signals.attempts import context_key, group_of, step_outcome
from postgrad.signals.endings import run_outcome

SUCCESS = 1.0
_LONGEST_PATH = 12  # tools of a run that are named


class _Success(msgspec.Struct, frozen=True):
    trace: str
    action: Message | None = None
    path: tuple[str, ...] = ()


class Siblings:
    """The successful attempts among `traces`, by what they are attempts at."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        self._actions: dict[str, list[_Success]] = {}
        self._paths: dict[str, list[_Success]] = {}
        for trace in traces:
            if not trace.for_evaluation and trace.steps:
                self._take(trace)

    def action(self, trace: Trace, step: Step) -> Message | None:
        """What a successful sibling did in the context of `step`."""
        found = self._actions.get(context_key(trace, step), ())
        return next((one.action for one in found if one.trace != trace.id), None)

    def path(self, trace: Trace) -> tuple[str, ...]:
        """The names of the tools that a successful sibling of `trace` called, () if there is none."""
        found = self._paths.get(group_of(trace), ())
        return next((one.path for one in found if one.trace != trace.id), ())

    def _take(self, trace: Trace) -> None:
        end = run_outcome(trace)
        for step in trace.steps:
            if step_outcome(step, end) == SUCCESS:
                known = self._actions.setdefault(context_key(trace, step), [])
                if len(known) < 2:  # one of two is another run's
                    known.append(_Success(trace.id, learnable(step.action)))
        if end == SUCCESS:
            names = [call.name for step in trace.steps for call in step.action.tool_calls]
            known = self._paths.setdefault(group_of(trace), [])
            if names and len(known) < 2:
                known.append(_Success(trace.id, path=tuple(names[:_LONGEST_PATH])))
