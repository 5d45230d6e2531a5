"""Is an action fit to be learnt? Its calls parse, name an offered tool, and satisfy the tool's JSON schema.

Where a trace does not say which tools were offered, only the JSON is judged. A code is short, so that drops can be
counted by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from postgrad.core.errors import MissingDependency
from postgrad.core.message import Message, Tool, ToolCall

CUT_OFF = ("length", "max_tokens", "model_context_window_exceeded", "content_filter", "refusal", "pause_turn")
"""Stop reasons of an action that a limit or a filter cut; learnt, it would teach to stop in the middle."""
Invalid = Literal["empty", "malformed_json", "unknown_tool", "against_schema", "unusable_schema"]


def invalid_reason(action: Message, tools: Sequence[Tool]) -> Invalid | None:
    """Why `action` is unfit, or None.

    Raises:
        MissingDependency: jsonschema is not installed and a call must be checked against a schema.
    """
    if not action.tool_calls:
        return None if action.text.strip() else "empty"
    by_name = {tool.name: tool for tool in tools}
    reasons = (_call_reason(call, by_name) for call in action.tool_calls)
    return next((reason for reason in reasons if reason is not None), None)


def _call_reason(call: ToolCall, tools: dict[str, Tool]) -> Invalid | None:
    if call.arguments is None:
        return "malformed_json"
    if not tools:
        return None
    tool = tools.get(call.name)
    return "unknown_tool" if tool is None else _against(tool.parameters, call.arguments)


def _against(schema: dict[str, Any], arguments: dict[str, Any]) -> Invalid | None:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError, UnknownType
        from referencing.exceptions import Unresolvable
    except ImportError:
        raise MissingDependency("jsonschema", extra="data") from None
    try:
        Draft202012Validator.check_schema(schema)
        return None if Draft202012Validator(schema).is_valid(arguments) else "against_schema"
    except (SchemaError, UnknownType, Unresolvable):
        return "unusable_schema"  # the tool's author's mistake: nothing can be said about the arguments
