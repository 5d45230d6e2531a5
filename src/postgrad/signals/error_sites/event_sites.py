"""Sites that no result shows, only an event beside the steps: stops, hooks, faults that the application reports.

One happening is often told twice, by a result and by an event; a step whose results tell it already gets no second
site. The step before the event is to blame: the call itself is not in the log.
"""

from __future__ import annotations

import re

from postgrad.core.trace import Event, Step
from postgrad.signals.error_sites.decisions import STOPS, next_words, verdict_on_words
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.rules import Verdict
from postgrad.signals.error_sites.silent import failed_summary
from postgrad.signals.error_sites.site import Site
from postgrad.signals.shell.programs import is_check, is_test_run, only_reads
from postgrad.signals.words.failed_runs import CRASH
from postgrad.signals.words.fault_texts import text_fault
from postgrad.signals.words.wordings import BUSY_OR_LIMITED, NETWORK_DOWN, TIMED_OUT

FAULTS = ("agent_error", "tool_failure", "format_error", "requery", "malformed_call")
_RUN_ENDED = re.compile(
    r"maximum (iteration|number of)|max(imum)? (budget|steps|turns)|budget (exceeded|exhausted)|context (window"
    r"|length)|litellm|llm (call|provider|error)"
    r"|api (error|key)|stuck in a loop|runtime (is not|closed|error)|sandbox (failed|closed|died)|container",
    re.IGNORECASE,
)


def event_sites(history: History, step: Step, told: list[Site]) -> list[Site]:
    """The sites of the events between `step` and the next, beyond what `told` (the step's own sites) says."""
    kinds = {site.kind for site in told}
    sites = [] if "reject" in kinds else _stops(history, step)
    events = history.events_after(step)
    if "hook_block" not in kinds:
        sites += [_site(history, step, event, "hook_block", "real", "hook/2") for event in events if _is_hook(event)][
            :1
        ]
    sites += _undone(history, step)
    sites += _runs(history, step)
    told_calls = {site.call for site in told}
    sites += [
        _site(history, step, event, "tool_error", "env", "command/4") for event in events if _is_timeout(event, step)
    ]
    return sites + [_fault(history, step, event) for event in events if _is_fault(event, told_calls)]


def _stops(history: History, step: Step) -> list[Site]:
    """A stop while the model worked, where no refused call stands for it; several in a row are one."""
    stop = next((event for event in history.events_after(step) if event.kind in STOPS), None)
    if stop is None:
        return []
    verdict, words = verdict_on_words(next_words(history, step, after=stop.record))
    return [Site(history.trace.id, step.index, "interrupt", verdict, "user_decision/2", stop.record, words)]


def _undone(history: History, step: Step) -> list[Site]:
    """The user took the work back; what they say then tells why."""
    undo = next((event for event in history.events_after(step) if _is_undo(event)), None)
    if undo is None:
        return []
    verdict, words = verdict_on_words(next_words(history, step, after=undo.record))
    return [Site(history.trace.id, step.index, "undo", verdict, "correction/3", undo.record, words)]


def _runs(history: History, step: Step) -> list[Site]:
    """Linters and commands that application and user ran themselves, after an edit of the model's was applied."""
    edited = any(event.kind == "edit_applied" and event.before_step <= step.index + 1 for event in history.trace.events)
    told = [(event, _failed_run(event)) for event in history.events_after(step)] if edited else []
    return [_site(history, step, event, kind, "real", "test_failed/3") for event, kind in told if kind]


def _failed_run(event: Event) -> str:
    """What sort of run failed, "" for any other event."""
    if event.kind == "check_failed":
        return event.kind
    if event.kind != "command_output":
        return ""
    asked = str(event.data.get("command", ""))
    line = "pytest" if asked.startswith("/test") else asked.removeprefix("/run").removeprefix("!").strip()
    if is_test_run(line) or is_check(line):
        return ("test_failed" if is_test_run(line) else "check_failed") if failed_summary(line, event.text) else ""
    return "tool_error" if not only_reads(line) and CRASH.search(event.text) is not None else ""


def _is_undo(event: Event) -> bool:
    return event.kind == "undo" or (event.kind == "command" and "/undo" in event.text.split())


def _is_timeout(event: Event, step: Step) -> bool:
    """The application tells in its own words, and in place of a result, that the call took too long."""
    waits = len(step.action.tool_calls) > len(step.results)
    return waits and event.kind in ("app_text", "observation") and TIMED_OUT.search(event.text[:400]) is not None


def _is_hook(event: Event) -> bool:
    return bool(event.text) and (event.kind == "hook" or "hook_blocking_error" in event.text[:400])


def _is_fault(event: Event, told_calls: set[str | None]) -> bool:
    flagged, call = event.kind in FAULTS or event.data.get("is_error") is True, event.data.get("call")
    return flagged and not (isinstance(call, str) and call in told_calls)


def _fault(history: History, step: Step, event: Event) -> Site:
    """A malformed call where the words say so, a failed one else; the end of the run's means is nobody's mistake."""
    if text_fault(event.text[:2000]) is not None or event.kind in ("format_error", "requery", "malformed_call"):
        return _site(history, step, event, "invalid_call", "real", "invalid_call/2")
    outside = any(
        pattern.search(event.text[:2000]) for pattern in (_RUN_ENDED, BUSY_OR_LIMITED, NETWORK_DOWN, TIMED_OUT)
    )
    return _site(history, step, event, "tool_error", "env" if outside else "real", "command/4")


def _site(history: History, step: Step, event: Event, kind: str, verdict: Verdict, rule: str) -> Site:
    return Site(history.trace.id, step.index, kind, verdict, rule, event.record, event.text)
