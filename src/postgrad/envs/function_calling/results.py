"""What the tools answer: an error that says what is wrong, or a made-up but steady result.

A call that fits its schema gets a result even if its values are wrong: a real tool would not know either, and the
verifier's feedback tells. Results are derived from the call's content, so a replay sees the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.core.canonical import canonical_json, content_id
from postgrad.core.errors import MissingDependency
from postgrad.core.message import Message, Tool, ToolCall, ToolResult


def respond(tools: Sequence[Tool], message: Message) -> tuple[ToolResult, ...]:
    """One result per call of `message`, in order.

    Raises:
        MissingDependency: jsonschema is not installed.
    """
    offered = {tool.name: tool for tool in tools}
    return tuple(_result(call, offered) for call in message.tool_calls)


def _result(call: ToolCall, offered: dict[str, Tool]) -> ToolResult:
    fault = _fault(call, offered)
    if fault:
        return ToolResult(call.id, f"Error: {fault}", is_error=True, status="error", provider_id=call.provider_id)
    digits = int(content_id([call.name, call.arguments], length=8), 16)
    payload = {"status": "ok", "id": f"{call.name}-{digits % 100_000:05d}", "result": round(digits % 10_000 / 10, 1)}
    return ToolResult(call.id, canonical_json(payload), is_error=False, provider_id=call.provider_id)


def _fault(call: ToolCall, offered: dict[str, Tool]) -> str | None:
    if call.arguments is None:
        return f"the arguments are not a JSON object ({call.parse_error}): {call.arguments_raw[:200]}"
    if call.name not in offered:
        return f"unknown tool {call.name!r}. Available tools: {', '.join(offered) or 'none'}."
    return _schema_fault(offered[call.name].parameters, call.arguments)


def _schema_fault(schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise MissingDependency("jsonschema", extra="data") from None
    # a closed object: an argument that the tool does not have is a fault here as in the grader
    closed = {"type": "object", **schema, "additionalProperties": False}
    faults = sorted(Draft202012Validator(closed).iter_errors(arguments), key=lambda fault: fault.json_path)
    places = [fault.json_path.removeprefix("$").lstrip(".") or "arguments" for fault in faults]
    return " ".join(f"{at}: {fault.message}." for at, fault in zip(places, faults, strict=True)) or None
