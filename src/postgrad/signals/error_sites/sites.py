"""Error sites: the step that made a wrong action, with the evidence that it was wrong.

Eleven rules in order, first match wins; each site names the rule and its version:

     1  (no site)        a call without a result, unless the call cannot have been right
     2  cascade          failed because another call of the same response did
     3  user_decision    refused or stopped: a correction only if the user then speaks about the work
     4  hook             blocked by a hook or a permission rule
     5  invalid_call     unknown tool, broken arguments, an edit that does not apply
     6  test_failed      a failed test run or check, if an edit lies before it and it was not meant to fail
     7  command          any other failure, minus searches, probes and what the environment lacks
     8  silent_failure   rules 5 to 7 where no flag tells, by the result's own words
     9  repeat           the same call failed before: an excuse holds once
    10  correction       the user objects to a finished answer, takes it back, or edits it
    11  outcome          the end of the whole run: no site of its own, a number on each site

A verifier's word on a single step is a site too (`verifier`). Every failed result gets a site with a verdict, so that a
reader can check the judgement; `real` and `user_correction` are the ones to learn from.
"""

from __future__ import annotations

import msgspec

from postgrad.core.message import ToolCall
from postgrad.core.trace import Feedback, Step, Trace
from postgrad.signals.endings import run_outcome
from postgrad.signals.error_sites.aftermath import reconsider
from postgrad.signals.error_sites.check_runs import judge_run, reproduces, shows_bug
from postgrad.signals.error_sites.corrections import user_edit
from postgrad.signals.error_sites.decisions import follow_up, is_refusal, verdict_on_refusal
from postgrad.signals.error_sites.edits import breaks_build, edit_at_fault
from postgrad.signals.error_sites.event_sites import event_sites
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.recoveries import find_recovery
from postgrad.signals.error_sites.repairs import find_repaired
from postgrad.signals.error_sites.repeats import mark_repeats
from postgrad.signals.error_sites.rules import Finding, judge
from postgrad.signals.error_sites.site import LEARNABLE, Site
from postgrad.signals.error_sites.unchanged import without_effect
from postgrad.signals.words.faults import call_fault

__all__ = ["LEARNABLE", "Site", "find_sites"]

MALFORMED_KINDS = frozenset({"malformed", "malformed_json", "malformed_call", "parse_error", "invalid_json"})


def find_sites(trace: Trace) -> list[Site]:
    """All sites of `trace`, in the order of the evidence."""
    history = History(trace)
    found: list[Site] = []
    for step in trace.steps:
        sites = _call_sites(history, step)
        if not sites:
            sites = _repaired(history, step)
        if not any(site.kind == "invalid_call" for site in sites):
            sites += _verifier_sites(trace, step)
        sites += event_sites(history, step, sites)
        if not any(site.kind == "invalid_call" for site in sites):
            sites += _unreadable(trace, step)
        if not any(site.kind in ("reject", "interrupt", "undo") for site in sites):
            sites += _follow_ups(history, step)
        found += sites
    outcome = run_outcome(trace)
    sites = mark_repeats(trace, found)
    return sites if outcome is None else [msgspec.structs.replace(site, outcome=outcome) for site in sites]


def _call_sites(history: History, step: Step) -> list[Site]:
    sites: list[Site] = []
    refused = False
    for call, evidence in history.of(step):
        if evidence is None or evidence.result.status == "pending":
            sites += _malformed(history, step, call)
        elif is_refusal(evidence):
            if not refused:  # several refused parallel calls are one decision
                sites.append(_refusal(history, step, evidence))
            refused = True
        elif evidence.kind == "wait" and evidence.outcome.code not in (None, 0):
            sites += _background_run(history, step, evidence)
        elif not history.failed(evidence):
            sites += _edited_by_user(history, step, evidence) or _without_effect(history, step, evidence)
        elif refused:
            sites.append(_site(history, step, evidence, Finding("cascade", "cascade", "cascade/2")))
        else:
            finding = judge(evidence)
            sites += [] if finding is None else [_judged(history, step, evidence, finding)]
    return sites


def _background_run(history: History, step: Step, poll: Evidence) -> list[Site]:
    """A run that failed while it was waited for: the call that started it is to blame, not the one that asked."""
    origin = history.started_by(step, poll)
    if origin is None:
        return []
    started, call = origin
    evidence = Evidence(call, poll.result, tools=started.request.tools, session_names=history.names)
    finding = judge(evidence)
    if finding is None:
        return []
    site = _judged(history, started, evidence, finding)
    return [msgspec.structs.replace(site, record=_result_record(history, step, poll))]


def _malformed(history: History, step: Step, call: ToolCall) -> list[Site]:
    """A call without a result that cannot have been right; a result that is fine would have cleared it."""
    fault = call_fault(call, step.request.tools)
    if fault is None or fault.kind not in ("malformed_json", "unknown_tool"):
        return []
    trace = history.trace
    return [Site(trace.id, step.index, "invalid_call", "real", "invalid_call/2", _record(step), fault.detail, call.id)]


def _judged(history: History, step: Step, evidence: Evidence, finding: Finding) -> Site:
    if finding.verdict == "env" and finding.kind == "check_failed" and breaks_build(history, evidence, step=step.index):
        finding = msgspec.structs.replace(finding, verdict="real")
    site = _site(history, step, evidence, finding)
    if finding.verdict == "real" and finding.kind in ("test_failed", "check_failed", "tool_error"):
        site = _blamed(history, step, evidence, site)
    site = reconsider(history, step, evidence, site)
    return msgspec.structs.replace(site, recovery_step=find_recovery(history, step, evidence.call))


def _blamed(history: History, step: Step, evidence: Evidence, site: Site) -> Site:
    """A failed run is the fault of what was edited before it, and may be meant to fail."""
    command = site.kind == "tool_error"
    if not command or (evidence.line is not None and reproduces(evidence.line)):
        verdict, blamed = judge_run(history, evidence, step=step.index)
        kind = "repro_failed" if command else site.kind
        return msgspec.structs.replace(site, kind=kind, verdict=verdict, step=blamed)
    if shows_bug(history, evidence, step):
        return msgspec.structs.replace(site, kind="repro_failed", verdict="expected")
    edited = edit_at_fault(history, evidence, step=step.index)
    return site if edited is None else msgspec.structs.replace(site, kind="check_failed", step=edited)


def _site(history: History, step: Step, evidence: Evidence, finding: Finding) -> Site:
    return Site(
        trace=history.trace.id,
        step=step.index,
        kind=finding.kind,
        verdict=finding.verdict,
        rule=finding.rule,
        record=_result_record(history, step, evidence),
        text=evidence.text,
        call=evidence.call.id,
    )


def _result_record(history: History, step: Step, evidence: Evidence) -> int:
    return history.trace.result_records.get(evidence.call.id, _record(step))


def _record(step: Step) -> int:
    return max(step.records, default=-1)


def _refusal(history: History, step: Step, evidence: Evidence) -> Site:
    record = _result_record(history, step, evidence)
    verdict, words = verdict_on_refusal(history, step, evidence, record=record)
    trace = history.trace
    return Site(trace.id, step.index, "reject", verdict, "user_decision/2", record, words, evidence.call.id)


def _edited_by_user(history: History, step: Step, evidence: Evidence) -> list[Site]:
    """The user accepted an edit, but not as it was: the best correction there is."""
    words = user_edit(evidence.text) if evidence.kind == "edit" else ""
    finding = Finding("user_edit", "user_correction", "correction/3")
    return [msgspec.structs.replace(_site(history, step, evidence, finding), text=words)] if words else []


def _without_effect(history: History, step: Step, evidence: Evidence) -> list[Site]:
    """An edit that changed nothing, which no flag and no complaint tells."""
    if not without_effect(history, evidence):
        return []
    return [_site(history, step, evidence, Finding("no_effect", "real", "silent_failure/3"))]


def _repaired(history: History, step: Step) -> list[Site]:
    """A mistake that only the next steps show, by making the same thing again."""
    found = find_repaired(history, step)
    if found is None:
        return []
    site = _site(history, step, found.shown_by, Finding("repaired", "real", "silent_failure/3"))
    return [msgspec.structs.replace(site, step=found.step)]


def _follow_ups(history: History, step: Step) -> list[Site]:
    found = follow_up(history, step)
    if found is None:
        return []
    words, record = found
    return [Site(history.trace.id, step.index, "correction", "user_correction", "correction/3", record, words)]


def _verifier_sites(trace: Trace, step: Step) -> list[Site]:
    return [
        Site(trace.id, step.index, _verified_kind(said), "real", "verifier/1", _record(step), said.text)
        for said in step.feedback
        if said.kind == "verifier" and said.value is not None and said.value < 1
    ][:1]


def _unreadable(trace: Trace, step: Step) -> list[Site]:
    """The application could not read the answer, and says so on the step alone."""
    return [
        Site(trace.id, step.index, "invalid_call", "real", "invalid_call/2", _record(step), said.text)
        for said in step.feedback
        if said.kind in MALFORMED_KINDS
    ][:1]


def _verified_kind(said: Feedback) -> str:
    """The error kind stands first in the feedback's text: "wrong_value: unit is not in the request"."""
    kind = said.text.split(":", 1)[0].strip()
    if kind in MALFORMED_KINDS:
        return "invalid_call"
    return kind if kind.replace("_", "").isalpha() else "wrong_action"
