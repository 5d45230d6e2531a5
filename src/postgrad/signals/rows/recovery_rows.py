"""Rows from what the same run did better later; no teacher is asked.

``recovery/1``: chosen = the first later call of the same tool on the same target that succeeded, rejected = the call
that failed, in the context of the failure. The recovery may use what the student saw in between, so it is only taken
where one call failed by its own form or by its command. ``fixed/1``: the recovering call as a row to imitate, in its
own context, which holds the failed call and what the environment said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from postgrad.core.message import Message, ToolCall
from postgrad.core.record import Record
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import same_action
from postgrad.signals.error_sites.recoveries import recovering_call
from postgrad.signals.error_sites.sites import Site
from postgrad.signals.rows.made import Made, Source, pair_at, provenance
from postgrad.signals.words.fault_texts import first_words
from postgrad.teachers.validity import invalid_reason

_RECOVERABLE = ("invalid_call", "tool_error")


def build_recoveries(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """A pair per site of `trace` that the same run recovered from, or the reason why not."""
    for site in sites:
        if site.verdict == "real" and site.kind in _RECOVERABLE:
            found = recovery_of(trace, site)
            yield Made(dropped=found) if isinstance(found, str) else _pair(trace, site, *found)


def build_fixed(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """A row per site of `trace` that the same run recovered from: the call that worked, after the one that failed."""
    done: set[int] = set()
    for site in sites:
        if site.verdict != "real" or site.kind not in _RECOVERABLE:
            continue
        found = recovery_of(trace, site)
        if isinstance(found, str):
            yield Made(dropped=found)
        elif found[1].index in done:
            yield Made(dropped="duplicate")
        else:
            done.add(found[1].index)
            yield _fixed(trace, site, *found)


def recovery_of(trace: Trace, site: Site) -> tuple[Step, Step, ToolCall, ToolCall] | str:
    """The failed step, the one that recovered, the failed call and the better one; or why there is no such thing."""
    if site.recovery_step is None:
        return "not_recovered"
    if site.repeat_of is not None:
        return "repeated_mistake"
    steps = {step.index: step for step in trace.steps}
    failed, later = steps[site.step], steps[site.recovery_step]
    call = next((call for call in failed.action.tool_calls if call.id == site.call), None)
    if call is None or len(failed.action.tool_calls) > 1:
        return "parallel_calls"
    better = recovering_call(later, call)
    if better is None:  # the later run of a background call
        return "not_recovered"
    one, other = Message("assistant", (better,)), Message("assistant", (call,))
    return "same_call_worked_later" if same_action(one, other, failed.request.tools) else (failed, later, call, better)


def _pair(trace: Trace, site: Site, failed: Step, later: Step, call: ToolCall, better: ToolCall) -> Made:
    why = f"it failed: {first_words(site.text, limit=200)}; step {later.index} did it right"
    return pair_at(
        trace,
        failed,
        chosen=Message("assistant", (better,)),
        rejected=Message("assistant", (call,)),
        source=Source("recovery/1", why),
    )


def _fixed(trace: Trace, site: Site, failed: Step, later: Step, call: ToolCall, better: ToolCall) -> Made:
    action = Message("assistant", (better,))
    if not later.can_be_learnt or not _holds(trace, later, call):
        return Made(dropped="context")
    unfit = invalid_reason(action, later.request.tools)
    if unfit is not None:
        return Made(dropped=unfit)
    source = Source("fixed/1", f"step {failed.index} failed: {first_words(site.text, limit=200)}")
    return Made(Record(trace.context(later), action, later.request.tools, provenance=provenance(trace, later, source)))


def _holds(trace: Trace, later: Step, call: ToolCall) -> bool:
    """Whether the context still shows the failed call: a compaction may have taken it out."""
    return any(said.id == call.id for message in trace.context(later) for said in message.tool_calls)
