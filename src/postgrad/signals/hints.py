"""Hints: one or two sentences that would have prevented a mistake, shown before the action.

A template hint is made from the error site alone: the tools offered, the schema, the environment's own words. It never
holds the answer. `gold_hint` does, and is a function of its own so that a report can name it. Hinted, the same
weights are the teacher of the unhinted student (SDPO, OPSD). Not covered: hints written by a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Tool, ToolCall
from postgrad.core.trace import Step, Trace
from postgrad.signals.faults import Fault, call_fault, first_words, text_fault
from postgrad.signals.sites import LEARNABLE, Site

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
_ACTION_KINDS = frozenset({"wrong_value", "wrong_tool", "wrong_count", "no_call", "unwanted_call"})
_JSON_RULE = (
    "Write the arguments as one JSON object: double quotes around every name and every text, no comment, no comma "
    "after the last item, every bracket closed."
)

_FAILURE = re.compile(
    r"^(.*(\berror\b|\bfail(ed|ure|ures)?\b|\bassert|traceback)|\s*1\) )", re.IGNORECASE | re.MULTILINE
)


def template_hint(site: Site, trace: Trace) -> str | None:
    """The hint for `site`, or None where nothing true can be said without the answer."""
    if site.verdict not in LEARNABLE:
        return None
    step = next(step for step in trace.steps if step.index == site.step)
    call = _call_of(site, trace)
    if site.kind in ("reject", "interrupt"):
        return f"The user's view of this: {first_words(site.text)}"
    fault = _fault(site, step, call)
    if site.rule.startswith("verifier/") and (fault is None or site.kind in _ACTION_KINDS):
        return _verified(site.kind, step)
    if fault is not None and fault.kind in _BY_FAULT:
        return _repeated(_BY_FAULT[fault.kind](fault, step.request.tools, call), site)
    return _repeated(_environment_words(site, call), site)


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
    return text_fault(site.text[:2000])


def _verified(kind: str, step: Step) -> str | None:
    sentence = _VERIFIED.get(kind)
    if sentence is not None and kind in ("no_call", "wrong_tool") and step.request.tools:
        return f"{sentence} {_offer(step.request.tools)}"
    return sentence


def _offer(tools: Sequence[Tool]) -> str:
    return f"The tools are: {', '.join(tool.name for tool in tools)}."


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


def _malformed_json(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return _JSON_RULE


def _unknown_tool(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    name = fault.name or (call.name if call else "")
    return f"There is no tool named {name}. {_offer(tools)}" if tools else f"There is no tool named {name}."


def _missing_argument(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    schema = f"; its schema is {canonical_json(fault.expected)}" if fault.expected else ""
    return f"Give every required argument: {fault.detail}{schema}."


def _unexpected_argument(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    tool = next((tool for tool in tools if call is not None and tool.name == call.name), None)
    names = ", ".join((tool.parameters.get("properties") or {}) if tool else ())
    known = f" Its arguments are: {names}." if names else ""
    return f"Use only the arguments that the tool has: {fault.detail}.{known}"


def _wrong_type(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    if "enum" in fault.expected:
        return f"{fault.name} must be one of {canonical_json(fault.expected['enum'])}."
    wanted = fault.expected.get("type")
    return f"{fault.name} must be of type {wanted}: {fault.detail}." if wanted else f"{fault.detail}."


def _edit_not_found(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return (
        "The text to replace must stand in the file exactly as given, spaces and line breaks included and without "
        "line numbers. Read that part of the file again before the edit."
    )


def _edit_not_unique(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return "The text to replace stands in the file more than once: give more lines around it, or replace all."


def _file_not_read(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return "The file has not been read since it last changed: read it before writing to it."


def _missing_file(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return f"That path does not exist: list the folder or search for the file first. ({fault.detail})"


def _too_large(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return f"The content is too large to take whole: ask for a part of it, or search in it. ({fault.detail})"


_Template = Callable[[Fault, Sequence[Tool], ToolCall | None], str]
_BY_FAULT: dict[str, _Template] = {
    "malformed_json": _malformed_json,
    "unknown_tool": _unknown_tool,
    "missing_argument": _missing_argument,
    "unexpected_argument": _unexpected_argument,
    "wrong_type": _wrong_type,
    "edit_not_found": _edit_not_found,
    "edit_not_unique": _edit_not_unique,
    "file_not_read": _file_not_read,
    "missing_file": _missing_file,
    "too_large": _too_large,
}
