"""Hints from the error site alone: one or two sentences that would have prevented a mistake, shown before the action.

They are made from the tools offered, the schema and the environment's own words, and never hold the answer. `gold_hint`
does, and is a function of its own so that a report can name it. Hinted, the same weights are the teacher of the
unhinted student (SDPO, OPSD). Dearer layers: `hint_layers`.
"""

from __future__ import annotations

import re

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, ToolCall
from postgrad.core.trace import Step, Trace
from postgrad.signals.error_sites.sites import LEARNABLE, Site
from postgrad.signals.hints.templates import fault_hint, offer
from postgrad.signals.words.fault_texts import first_words, text_fault
from postgrad.signals.words.faults import Fault, call_fault

_VERIFIED: dict[str, str] = {
    "wrong_value": "Copy every argument value exactly as the request states it; do not round, translate or invent one.",
    "wrong_tool": "Another of the offered tools fits this request: compare each tool's description with what is asked.",
    "wrong_count": "Make one call for each thing that is asked, and no more.",
    "no_call": "Do not answer in words: call one of the tools.",
    "missing_argument": "Give every argument that the tool requires and every one that the request states.",
    "unexpected_argument": "Use only the arguments that the tool has.",
    "wrong_type": "Give every argument in the type that the tool's schema states.",
    "unwanted_call": "None of the tools fits this request: answer in words and call nothing.",
}
_BY_USER = {
    "reject": "The user's view of this",
    "interrupt": "The user's view of this",
    "correction": "The user's view of this",
    "undo": "The user would take this back and say",
    "user_edit": "The user would change this before accepting it",
}
_OF_ANY_TOOL = frozenset({"missing_file", "too_large", "unknown_tool"})  # other words mean other things in a program
_RUNS = frozenset({"test_failed", "check_failed", "repro_failed", "hook_block"})  # their words are about the work
_ACTION_KINDS = frozenset({"wrong_value", "wrong_tool", "wrong_count", "no_call", "unwanted_call"})

_FAILURE = re.compile(
    r"^(.*(\berror\b|\bfail(ed|ure|ures)?\b|\bassert|traceback)|\s*1\) )", re.IGNORECASE | re.MULTILINE
)


def template_hint(site: Site, trace: Trace) -> str | None:
    """The hint of the two cheapest layers: the template, else the environment's words. It never holds the answer."""
    return kind_hint(site, trace) or environment_hint(site, trace)


def kind_hint(site: Site, trace: Trace) -> str | None:
    """The template for the kind of mistake at `site`, None where there is none."""
    if site.verdict not in LEARNABLE:
        return None
    step = next(step for step in trace.steps if step.index == site.step)
    call = _call_of(site, trace)
    if site.kind in _BY_USER:
        words = first_words(site.text)
        return f"{_BY_USER[site.kind]}: {words}" if words else None
    fault = _fault(site, step, call)
    if site.rule.startswith("verifier/") and (fault is None or site.kind in _ACTION_KINDS):
        return _verified(site.kind, step)
    if fault is not None:
        return _repeated(fault_hint(fault, step.request.tools, call), site)
    return None


def environment_hint(site: Site, trace: Trace) -> str | None:
    """The environment's own words about the mistake at `site`, None where it said nothing (or a verifier did)."""
    if site.verdict not in LEARNABLE or site.rule.startswith("verifier/") or site.kind in _BY_USER:
        return None
    return _repeated(_environment_words(site, _call_of(site, trace)), site)


def gold_hint(reference: Message) -> str:
    """The right action itself, for teachers that are told the answer; reports call it "gold"."""
    calls = [f"{call.name}({canonical_json(call.arguments or {})})" for call in reference.tool_calls]
    if not calls:
        words = reference.text.strip()
        return f"The right answer is: {words}" if words else "The right answer calls no tool."
    return f"The right {'call is' if len(calls) == 1 else 'calls are'} {', '.join(calls)}."


def _call_of(site: Site, trace: Trace) -> ToolCall | None:
    calls = (call for step in trace.steps for call in step.action.tool_calls)
    return next((call for call in calls if call.id == site.call), None)


def _fault(site: Site, step: Step, call: ToolCall | None) -> Fault | None:
    """The call's own fault against its schema, else the fault that the result names."""
    calls = [call] if call is not None else list(step.action.tool_calls)
    own = (call_fault(one, step.request.tools) for one in calls)
    found = next((fault for fault in own if fault is not None), None)
    if found is not None or site.rule.startswith("verifier/"):  # a verifier's words may hold the answer
        return found
    fault = None if site.kind in _RUNS else text_fault(site.text[:2000])
    return None if fault is not None and site.kind == "tool_error" and fault.kind not in _OF_ANY_TOOL else fault


def _verified(kind: str, step: Step) -> str | None:
    sentence = _VERIFIED.get(kind)
    if sentence is not None and kind in ("no_call", "wrong_tool") and step.request.tools:
        return f"{sentence} {offer(step.request.tools)}"
    return sentence


def _repeated(hint: str | None, site: Site) -> str | None:
    if hint is None or site.repeat_of is None or site.kind in ("test_failed", "check_failed"):
        return hint
    return f"This very call has failed before in this session; do not make it again unchanged. {hint}"


def _environment_words(site: Site, call: ToolCall | None) -> str | None:
    words = first_words(site.text)
    if not words:
        return None
    if site.kind in ("test_failed", "check_failed"):
        return f"After this change the checks fail with: {first_words(_from_first_failure(site.text))}"
    if site.kind == "hook_block":
        return f"A rule of this environment will block the call: {words}"
    return f"The call {call.name + ' ' if call else ''}would fail; the environment says: {words}"


def _from_first_failure(text: str) -> str:
    """A test run talks a lot before it says what failed."""
    found = _FAILURE.search(text)
    return text[found.start() :] if found else text
