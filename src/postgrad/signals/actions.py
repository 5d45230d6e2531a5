"""The normal form of an action: when do two actions say the same?

An action with tool calls is its calls: tool name, and arguments by the meaning of JSON (order of keys, spacing, escapes
and ``1`` or ``1.0`` do not count). An argument that has its schema's default is as good as left out. A shell line
counts by its words (`shell_words`); what an agent says about it in a further argument does not. Nor do words around
calls, or the order of calls that go out together, unless one of them may change what another finds. An action without
calls is its text with single spaces; whether two texts *mean* the same is for `text_judges` to say. Not covered: equal
paths in other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Text, Tool, ToolCall
from postgrad.signals.shell.commands import command_of, kind_of
from postgrad.signals.shell.words import normal_line

_CHANGING = ("shell", "code", "edit", "wait")  # sorts of tools whose calls have an order
_REMARKS = {
    "shell": ("description", "explanation", "justification", "thought", "reason", "security_risk"),
    "read": ("explanation",),
    "search": ("explanation",),
}
"""Arguments in which an agent says why it makes a call; they change nothing."""
_DEEPEST = 20  # levels of a schema that are looked at for defaults


def normal_form(action: Message, tools: Sequence[Tool] = ()) -> str:
    """A string that is equal for equal actions; `tools` are those offered, for their schemas' defaults."""
    if not action.tool_calls:
        return " ".join(action.text.split())
    schemas = {tool.name: tool.parameters for tool in tools}
    calls = [canonical_json(normal_call(call, schemas.get(call.name))) for call in action.tool_calls]
    ordered = any(kind_of(call) in _CHANGING for call in action.tool_calls)
    return "\n".join(calls if ordered else sorted(calls))


def normal_call(call: ToolCall, schema: Mapping[str, Any] | None = None) -> list[Any]:
    """Name and normal arguments; arguments that do not parse count by their raw string."""
    if call.arguments is None:
        return [call.name, {"": call.arguments_raw.strip()}]
    arguments = _without_defaults(_plain_numbers(call.arguments), schema or {})
    kind = kind_of(call)
    line = command_of(call) if kind == "shell" else None
    for key, value in call.arguments.items():
        if line is not None and command_of(ToolCall("", call.name, "", {key: value})) == line:
            arguments[key] = {"shell": normal_line(line)}
        elif key in _REMARKS.get(kind, ()):
            arguments.pop(key, None)
    return [call.name, arguments]


def same_action(one: Message, other: Message, tools: Sequence[Tool] = ()) -> bool:
    """Whether two actions have the same normal form."""
    return normal_form(one, tools) == normal_form(other, tools)


def learnable(action: Message) -> Message:
    """The part of an action to learn: visible text and calls. Reasoning of another model is not imitated."""
    return Message("assistant", tuple(block for block in action.blocks if isinstance(block, Text | ToolCall)))


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return value


def _without_defaults(value: Any, schema: Any, depth: int = 0) -> Any:
    """`value` without the members that say what their schema says anyway."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return value
    if isinstance(value, list):
        return [_without_defaults(item, schema.get("items"), depth + 1) for item in value]
    known = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(known, dict):
        return value
    inner = {key: _without_defaults(item, known.get(key), depth + 1) for key, item in value.items()}
    return {key: item for key, item in inner.items() if not _is_default(item, known.get(key), depth)}


def _is_default(value: Any, schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or "default" not in schema:
        return False
    default = _without_defaults(_plain_numbers(schema["default"]), schema, depth + 1)
    return canonical_json(value) == canonical_json(default)  # not `==`, for which True is 1
