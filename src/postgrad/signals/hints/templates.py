"""Template hints by the kind of fault: what would have prevented it, said from the tools offered and the schema alone.

Sixteen kinds, those of `faults.FaultKind`. A template holds no value of the right answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from postgrad.core.canonical import plain_json
from postgrad.core.message import Tool, ToolCall
from postgrad.signals.words.faults import Fault, FaultKind

_JSON_RULE = (
    "Write the arguments as one JSON object: double quotes around every name and every text, no comment, no comma "
    "after the last item, every bracket closed."
)


def fault_hint(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    """The hint for a fault; `call` is None where the call itself is not in the log."""
    return TEMPLATES[fault.kind](fault, tools, call)


def offer(tools: Sequence[Tool]) -> str:
    """The names of the tools, as a sentence."""
    return f"The tools are: {', '.join(tool.name for tool in tools)}."


def _malformed_json(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return _JSON_RULE


def _unknown_tool(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    name = fault.name or (call.name if call else "")
    return f"There is no tool named {name}. {offer(tools)}" if tools else f"There is no tool named {name}."


def _missing_argument(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    schema = f"; its schema is {plain_json(fault.expected)}" if fault.expected else ""
    return f"Give every required argument: {fault.detail}{schema}."


def _unexpected_argument(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    tool = next((tool for tool in tools if call is not None and tool.name == call.name), None)
    names = ", ".join((tool.parameters.get("properties") or {}) if tool else ())
    known = f" Its arguments are: {names}." if names else ""
    return f"Use only the arguments that the tool has: {fault.detail}.{known}"


def _wrong_type(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    if "enum" in fault.expected:
        return f"{fault.name} must be one of {plain_json(fault.expected['enum'])}."
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


def _empty_patch(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return "A patch must hold at least one hunk with the lines to take out (-) and to put in (+)."


def _patch_mismatch(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return (
        "The lines of the patch that are not new must stand in the file exactly as given: read that part of the file "
        "again and copy them, with a few lines around the change."
    )


def _bad_edit(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return f"The edit would break the file's syntax; mind indentation and brackets. ({fault.detail})"


def _no_change(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return "The edit would change nothing: the new text must differ from the old one. Look whether it is done already."


def _bad_range(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return f"The lines asked for are not in the file: find out how long it is first. ({fault.detail})"


def _bad_value(fault: Fault, tools: Sequence[Tool], call: ToolCall | None) -> str:
    return f"A value is not one of those that the tool takes: look them up before the call. ({fault.detail})"


Template = Callable[[Fault, Sequence[Tool], ToolCall | None], str]
TEMPLATES: dict[FaultKind, Template] = {
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
    "empty_patch": _empty_patch,
    "patch_mismatch": _patch_mismatch,
    "bad_edit": _bad_edit,
    "no_change": _no_change,
    "bad_range": _bad_range,
    "bad_value": _bad_value,
}
"""Fault kind -> template."""
