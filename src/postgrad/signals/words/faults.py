"""What is wrong with a call, seen from its tool's schema.

`call_fault` looks at the call alone and needs no result (what came back is read by `fault_texts`). A fault is of a kind
of the closed list below, which is what hints are written for. This is a plain reading of the schema (required,
properties, type, enum); the full JSON-schema check of teachers' answers is `teachers.validity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from postgrad.core.message import Tool, ToolCall

FaultKind = Literal[
    "malformed_json",
    "unknown_tool",
    "missing_argument",
    "unexpected_argument",
    "wrong_type",
    "edit_not_found",
    "edit_not_unique",
    "file_not_read",
    "missing_file",
    "too_large",
    "empty_patch",
    "patch_mismatch",
    "bad_edit",
    "no_change",
    "bad_range",
    "bad_value",
]


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of a call. `detail` is a sentence, `name` the tool or argument, `expected` its schema."""

    kind: FaultKind
    detail: str
    name: str = ""
    expected: dict[str, Any] = {}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


_FREE_TEXT = "free text by design"
"""How readers mark the call of a tool whose input is no JSON (a patch)."""


def broken_arguments(call: ToolCall) -> str | None:
    """What is wrong with arguments that were to be a JSON object and are none."""
    return None if call.parse_error == _FREE_TEXT else call.parse_error


def call_fault(call: ToolCall, tools: Sequence[Tool]) -> Fault | None:
    """The first fault of `call` by itself. With no tools known, only its JSON can be judged.

    A schema inferred from calls forbids nothing, and where one is inferred there may be tools that nobody called.
    """
    if broken_arguments(call) is not None:
        detail = f"the arguments of {call.name} are not a JSON object: {call.parse_error}"
        return Fault("malformed_json", detail, call.name)
    if not tools:
        return None
    tool = next((tool for tool in tools if tool.name == call.name), None)
    known = all(not offered.inferred for offered in tools)
    if (tool is None and not known) or (tool is not None and tool.inferred):
        return None
    if tool is None:
        return Fault("unknown_tool", f"there is no tool named {call.name}", call.name)
    return _schema_fault(call.arguments or {}, tool)


def _schema_fault(arguments: dict[str, Any], tool: Tool) -> Fault | None:
    properties = tool.parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for name in tool.parameters.get("required") or ():
        if name not in arguments:
            return Fault("missing_argument", f"{tool.name} needs the argument {name}", name, _schema(known.get(name)))
    for name, value in arguments.items():
        if name not in known:
            if known and tool.parameters.get("additionalProperties") in (None, False):
                return Fault("unexpected_argument", f"{tool.name} has no argument {name}", name)
            continue
        schema = _schema(known[name])
        if not _fits(value, schema):
            got = type(value).__name__
            return Fault("wrong_type", f"the argument {name} of {tool.name} is a {got}", name, schema)
    return None


def _schema(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _fits(value: object, schema: dict[str, Any]) -> bool:
    """Type and enum only; a type word that is not JSON Schema's is not judged."""
    if "enum" in schema and isinstance(schema["enum"], list) and value not in schema["enum"]:
        return False
    wanted = schema.get("type")
    names = [name for name in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(name, str)]
    if not names or any(name not in _TYPES for name in names):
        return True
    return any(_is(value, name) for name in names)


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])
