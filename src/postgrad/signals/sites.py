"""Error sites: the step that made a wrong action, with the evidence that it was wrong.

Rules in order, first match wins: no result, no site; cascades belong to their root call; a user's refusal or stop is
a correction only if the user then says something about the work; hooks; malformed calls; test runs; failed commands
minus searches, probes and the environment's faults; a verifier's score below 1. A mistake made twice carries
`repeat_of`. Every failed result gets a site with a verdict, so that a reader can check the judgement; `real` and
`user_correction` are the ones to learn from. A test run or check that failed behind a pipe is found by its words.
Not covered: other failures that a success hides, corrections without a stop, the outcome of a whole run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Text, ToolCall, ToolResult
from postgrad.core.trace import Event, Feedback, Step, Trace
from postgrad.signals.actions import normal_call
from postgrad.signals.commands import command_of
from postgrad.signals.faults import call_fault
from postgrad.signals.recoveries import find_recovery
from postgrad.signals.rules import (
    RULES,
    Evidence,
    Finding,
    Verdict,
    clean,
    failed_in_words,
    has_failed,
    is_refusal,
    is_wait,
)
from postgrad.signals.test_runs import judge_run

LEARNABLE: tuple[Verdict, ...] = ("real", "user_correction")
MALFORMED_KINDS = frozenset({"malformed", "malformed_json", "malformed_call", "parse_error", "invalid_json"})
# Texts in the user's role that the application wrote: stop markers, <task-notification>, <environment_context>, ...
_UNTYPED = re.compile(
    r"\A\s*(\[request interrupted|<([a-z]+[-_])+[a-z]+>|caveat:|this session is being continued)", re.IGNORECASE
)
# A local command (`/model`, `/mcp`): the user stopped the model to do something else.
_LOCAL_COMMAND = re.compile(r"\A\s*(<(command-name|command-message|local-command-stdout)>|/[a-z][\w:-]*(\s|\Z))")


class Site(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place where an action was wrong, or looked wrong.

    Attributes:
        trace: id of the trace.
        step: index of the step whose action is to blame.
        kind: tool_error, invalid_call, test_failed, hook_block, reject, interrupt, or a verifier's error kind.
        verdict: whose fault it is; see `LEARNABLE`.
        rule: name and version of the rule that decided.
        record: raw record number of the evidence, -1 where the source has none.
        text: the evidence; for a user correction the user's words.
        call: id of the call, None where the action as a whole was wrong.
        repeat_of: step of the first site with the same call and the same kind.
        recovery_step: first later step at which the same tool succeeded on the same target.
    """

    trace: str
    step: int
    kind: str
    verdict: Verdict
    rule: str
    record: int = -1
    text: str = ""
    call: str | None = None
    repeat_of: int | None = None
    recovery_step: int | None = None


def find_sites(trace: Trace) -> list[Site]:
    """All sites of `trace`, in the order of the evidence."""
    found: list[Site] = []
    for step in trace.steps:
        sites = _call_sites(trace, step)
        if not any(site.kind == "invalid_call" for site in sites):
            sites += _verifier_sites(trace, step)
        if not any(site.kind == "reject" for site in sites):
            sites += _interrupt_sites(trace, step)
        found += sites
    return _mark_repeats(trace, found)


def _call_sites(trace: Trace, step: Step) -> list[Site]:
    results = {result.call_id: result for result in step.results}
    sites: list[Site] = []
    refused = False
    for call in step.action.tool_calls:
        result = results.get(call.id)
        if result is None or result.status == "pending":
            sites += _malformed(trace, step, call, result)
        elif not has_failed(call, result):
            sites += _hidden_failure(trace, step, call, result)
        elif is_refusal(result):
            if not refused:  # several refused parallel calls are one decision
                sites.append(_refusal(trace, step, call))
            refused = True
        elif refused:
            sites.append(_site(trace, step, call, result, Finding("cascade", "cascade", "cascade/1")))
        else:
            sites += _failure(trace, step, call, result)
    return sites


def _malformed(trace: Trace, step: Step, call: ToolCall, result: ToolResult | None) -> list[Site]:
    """A call without a result that cannot have been right; a result that is fine would have cleared it."""
    fault = call_fault(call, step.request.tools)
    if fault is None or fault.kind not in ("malformed_json", "unknown_tool"):
        return []
    site = _site(trace, step, call, result, Finding("invalid_call", "real", "invalid_call/1"))
    return [msgspec.structs.replace(site, text=fault.detail)]


def _failure(trace: Trace, step: Step, call: ToolCall, result: ToolResult) -> list[Site]:
    evidence = Evidence(call, result, step.request.tools, clean(result.text))
    finding = next((said for rule in RULES if (said := rule(evidence)) is not None), None)
    return [] if finding is None else [_judged(trace, step, call, result, finding)]


def _hidden_failure(trace: Trace, step: Step, call: ToolCall, result: ToolResult) -> list[Site]:
    """A test run that fails behind a pipe counts as success for the source."""
    line = command_of(call)
    finding = None if line is None else failed_in_words(line, clean(result.text))
    return [] if finding is None else [_judged(trace, step, call, result, finding)]


def _judged(trace: Trace, step: Step, call: ToolCall, result: ToolResult, finding: Finding) -> Site:
    site = _site(trace, step, call, result, finding)
    line = command_of(call)
    if finding.kind in ("test_failed", "check_failed") and line is not None:
        verdict, blamed = judge_run(trace, step=step.index, line=line, text=clean(result.text))
        site = msgspec.structs.replace(site, verdict=verdict, step=blamed)
    return msgspec.structs.replace(site, recovery_step=find_recovery(trace, step, call))


def _site(trace: Trace, step: Step, call: ToolCall, result: ToolResult | None, finding: Finding) -> Site:
    record = trace.result_records.get(call.id) if result is not None else None
    return Site(
        trace=trace.id,
        step=step.index,
        kind=finding.kind,
        verdict=finding.verdict,
        rule=finding.rule,
        record=_record_of(step) if record is None else record,
        text=clean(result.text) if result is not None else "",
        call=call.id,
    )


def _record_of(step: Step) -> int:
    return max(step.records, default=-1)


def _refusal(trace: Trace, step: Step, call: ToolCall) -> Site:
    record = trace.result_records.get(call.id, _record_of(step))
    words = _next_words(trace, step, after=record)
    verdict: Verdict = "benign" if is_wait(call) else "user_correction" if words else "user_stop"
    return Site(trace.id, step.index, "reject", verdict, "user_decision/1", record, words, call.id)


def _interrupt_sites(trace: Trace, step: Step) -> list[Site]:
    """A stop while the model worked, where no refused call stands for it."""
    stops = [event for event in _events_after(trace, step) if event.kind == "interrupt"]
    if not stops:
        return []
    words = _next_words(trace, step, after=stops[0].record)
    verdict: Verdict = "user_correction" if words else "user_stop"
    return [Site(trace.id, step.index, "interrupt", verdict, "user_decision/1", stops[0].record, words)]


def _events_after(trace: Trace, step: Step) -> list[Event]:
    """Events between `step` and the next model step."""
    return [event for event in trace.events if event.before_step == step.index + 1]


def _next_words(trace: Trace, step: Step, *, after: int) -> str:
    """What the user typed after record `after` and before the next model step, "" if nothing."""
    events = _events_after(trace, step)
    typed = [event.text for event in events if event.kind == "user_text" and event.record > after]
    if not typed:
        typed = [text for message in _new_messages(trace, step) for text in _texts(message, after)]
    for text in typed:
        if _LOCAL_COMMAND.match(text):
            return ""
        if text.strip() and not _UNTYPED.match(text):
            return text.strip()
    return ""


def _new_messages(trace: Trace, step: Step) -> Iterable[Message]:
    following = next((other for other in trace.steps if other.index == step.index + 1), None)
    seen = set(step.request.messages)
    new = [key for key in following.request.messages if key not in seen] if following else []
    return (trace.messages[key] for key in new)


def _texts(message: Message, after: int) -> list[str]:
    if message.role != "user" or (message.records and max(message.records) <= after):
        return []
    return [block.text for block in message.blocks if isinstance(block, Text)]


def _verifier_sites(trace: Trace, step: Step) -> list[Site]:
    return [
        Site(trace.id, step.index, _verified_kind(said), "real", "verifier/1", _record_of(step), said.text)
        for said in step.feedback
        if said.kind == "verifier" and said.value is not None and said.value < 1
    ][:1]


def _verified_kind(said: Feedback) -> str:
    """The error kind stands first in the feedback's text: "wrong_value: unit is not in the request"."""
    kind = said.text.split(":", 1)[0].strip()
    if kind in MALFORMED_KINDS:
        return "invalid_call"
    return kind if kind.replace("_", "").isalpha() else "wrong_action"


def _mark_repeats(trace: Trace, sites: list[Site]) -> list[Site]:
    """Name the first site with the same call and kind; what was excusable once is a mistake the second time."""
    calls = {call.id: call for step in trace.steps for call in step.action.tool_calls}
    first: dict[str, int] = {}
    marked = []
    for site in sites:
        call = calls.get(site.call or "")
        if call is None or site.kind in ("reject", "cascade", "no_match"):
            marked.append(site)
            continue
        key = canonical_json([_repeat_key(call), site.kind])
        if key in first:
            again: Verdict = "real" if site.verdict in ("benign", "env") else site.verdict
            site = msgspec.structs.replace(site, repeat_of=first[key], verdict=again)
        first.setdefault(key, site.step)
        marked.append(site)
    return marked


def _repeat_key(call: ToolCall) -> object:
    """A shell line counts by its words: description and time limit do not make it another command."""
    line = command_of(call)
    return [call.name, " ".join(line.split())] if line is not None else normal_call(call)
