"""Rows from what users said was better: corrections, edits of edits, and what was done after a refusal.

- ``correction/1``: a human gave the right action (`human`); it is preferred to the one served.
- ``edit/1``: the user changed an edit before accepting it; the call with the changes is preferred to the one proposed.
- ``redo/1``: the user refused a call and said why, and the next call of the tool was accepted; it is preferred to the
  refused one. It may use what the user said, which the context of the refused call does not hold: its weight is a half.

The same as rows to imitate: ``corrected/1`` and, where there is a reason, ``refined/1``: the verdict triple (proposal,
reason, refined action) with the proposal and the reason in the context, so that what is learnt is to use a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from postgrad.core.message import Message, Text, ToolResult
from postgrad.core.record import Record
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import learnable, same_action
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.sites import Site
from postgrad.signals.rows.human import corrections_of
from postgrad.signals.rows.made import Made, Source, pair_at, provenance
from postgrad.signals.rows.user_edits import edited_call
from postgrad.teachers.validity import invalid_reason

_REFUSALS = ("reject", "interrupt")
_HALF = 0.5
USER = "user"


class Better(msgspec.Struct, frozen=True):
    """What a user preferred at a step: the better action, the worse one, by which rule, why, and how much it counts."""

    step: Step
    better: Message
    worse: Message
    source: Source
    weight: float = 1.0


def build_corrections(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """A pair for everything that a user put right in `trace`, or the reason why there is none."""
    for found in preferred_by_users(trace, sites):
        if isinstance(found, str):
            yield Made(dropped=found)
        else:
            yield pair_at(
                trace,
                found.step,
                chosen=found.better,
                rejected=found.worse,
                source=found.source,
                weight=found.weight,
            )


def build_corrected(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """The same as rows to imitate, in the context of the action that was corrected."""
    for found in preferred_by_users(trace, sites):
        if isinstance(found, str):
            yield Made(dropped=found)
        elif found.source.rule != "redo/1":  # it was said with more in the context
            yield _row(trace, found, trace.context(found.step), "corrected/1")


def build_refined(trace: Trace, sites: Iterable[Site]) -> Iterator[Made]:
    """Verdict triples as rows: the context, the proposal, the reason why not, and the refined action to learn."""
    for found in preferred_by_users(trace, sites):
        if isinstance(found, str):
            yield Made(dropped=found)
        elif not found.source.why:
            yield Made(dropped="no_reason")
        else:
            messages = (*trace.context(found.step), learnable(found.worse), *_objection(found))
            yield _row(trace, found, messages, "refined/1")


def preferred_by_users(trace: Trace, sites: Iterable[Site]) -> Iterator[Better | str]:
    """Everything that a user put right, or why a place of that kind gives nothing."""
    for step in trace.steps:
        for said in corrections_of(step):
            source = Source("correction/1", said.why, (said.who,))
            yield _differing(step, learnable(said.action), learnable(said.corrected), source)
    history = History(trace)
    steps = {step.index: step for step in trace.steps}
    for site in sites:
        if site.verdict != "user_correction":
            continue
        if site.kind == "user_edit":
            yield _edited(steps[site.step], site)
        elif site.kind in _REFUSALS:
            yield _redone(history, steps[site.step], site)


def _edited(step: Step, site: Site) -> Better | str:
    call = next((call for call in step.action.tool_calls if call.id == site.call), None)
    if call is None or len(step.action.tool_calls) > 1:
        return "parallel_calls"
    edited = edited_call(call, site.text)
    if edited is None:
        return "edit_not_applicable"
    source = Source("edit/1", "the user changed it before accepting it", (USER,))
    return _differing(step, Message("assistant", (edited,)), Message("assistant", (call,)), source)


def _redone(history: History, step: Step, site: Site) -> Better | str:
    following = history.following(step)
    if following is None or not following.action.tool_calls or not step.action.tool_calls:
        return "not_redone"
    if not {call.name for call in step.action.tool_calls} & {call.name for call in following.action.tool_calls}:
        return "redone_otherwise"
    if not all(found is not None and history.succeeded(found) for _, found in history.of(following)):
        return "redone_without_success"
    source = Source("redo/1", site.text, (USER,))
    return _differing(step, learnable(following.action), learnable(step.action), source, weight=_HALF)


def _differing(step: Step, better: Message, worse: Message, source: Source, *, weight: float = 1.0) -> Better | str:
    if same_action(better, worse, step.request.tools):
        return "same_action"
    return Better(step, better, worse, source, weight)


def _objection(found: Better) -> tuple[Message, ...]:
    """The reason as the environment would give it: a refused call is answered, words are said by the user."""
    calls = found.worse.tool_calls
    if not calls:
        return (Message("user", (Text(found.source.why),)),)
    said = [found.source.why] + ["Not run."] * (len(calls) - 1)
    results = (ToolResult(call.id, text, True, "rejected") for call, text in zip(calls, said, strict=True))
    return tuple(Message("tool", (result,)) for result in results)


def _row(trace: Trace, found: Better, messages: tuple[Message, ...], rule: str) -> Made:
    if not found.step.can_be_learnt:
        return Made(dropped="context")
    tools = found.step.request.tools
    unfit = invalid_reason(found.better, tools)
    if unfit is not None:
        return Made(dropped=unfit)
    where = provenance(trace, found.step, msgspec.structs.replace(found.source, rule=rule))
    return Made(Record(messages, found.better, tools, provenance=where))
