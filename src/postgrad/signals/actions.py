"""The normal form of an action: when do two teachers say the same thing?

An action with tool calls is its calls, in order (tool name, arguments as canonical JSON); words around the calls
do not count. An action without calls is its text with single spaces. Whole floats equal integers, as in JSON
Schema. Not covered: equal meaning in other words, defaults written out, order of parallel calls.
"""

from __future__ import annotations

from typing import Any

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Text, ToolCall

CUT_OFF = ("length", "max_tokens")
"""Stop reasons of an action that hit its limit; learnt, it would teach to stop in the middle."""


def normal_form(action: Message) -> str:
    """A string that is equal for equal actions."""
    if action.tool_calls:
        return canonical_json([normal_call(call) for call in action.tool_calls])
    return " ".join(action.text.split())


def normal_call(call: ToolCall) -> list[Any]:
    """Name and normal arguments; arguments that do not parse count by their raw string."""
    if call.arguments is None:
        return [call.name, {"": call.arguments_raw.strip()}]
    return [call.name, _plain_numbers(call.arguments)]


def same_action(one: Message, other: Message) -> bool:
    """Whether two actions have the same normal form."""
    return normal_form(one) == normal_form(other)


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
