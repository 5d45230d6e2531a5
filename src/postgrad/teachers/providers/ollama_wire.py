"""Messages and tools as Ollama's official client sends them, made from the chat-completions form (`wire`).

The client writes a request through models of its own: it leaves out what is empty (a result's `tool_name` too, where it
is) and all keys of a tool's schema that it does not know (`default`, `additionalProperties`, `anyOf`). So the same
models are used here, and a request weighs what will be sent; unions of types are written the way it keeps. Where the
client is not installed, or does not take a tool, what would be given to it is weighed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from postgrad.core.actor import Ask
from postgrad.core.message import Tool
from postgrad.teachers.providers.wire import (
    Called,
    Form,
    Part,
    ToolNames,
    Written,
    json_bytes,
    next_in_list,
    sendable,
    wire_messages,
    wire_tools,
)


def ollama_messages(ask: Ask, names: ToolNames) -> list[dict[str, Any]]:
    """The `messages` of a request."""
    return [_as_sent("Message", _message(message)) for message in _named(wire_messages(ask, names))]


def ollama_tools(tools: Sequence[Tool], names: ToolNames) -> list[dict[str, Any]]:
    """The `tools` of a request."""
    return [_as_sent("Tool", _plain_types(tool)) for tool in wire_tools(tools, names)]


def _part(chat: dict[str, Any]) -> Part:
    return Part(chat, json_bytes(_as_sent("Message", _message(chat))))


def _grown(before: Written, part: Part, call: Called | None) -> int:
    """Beside a result stands its tool's name."""
    named = len(',"tool_name":') + json_bytes(call.name) if call else 0
    return next_in_list(before, part, call) + named


OLLAMA = Form(_part, _grown, ollama_tools)


def _as_sent(model: str, value: dict[str, Any]) -> dict[str, Any]:
    """`value` through the client's `model`, as its `chat` does it."""
    value = {key: sendable(item) for key, item in value.items() if item}
    with suppress(ImportError, ValueError):
        import ollama

        sent: dict[str, Any] = getattr(ollama, model).model_validate(value).model_dump(exclude_none=True)
        return sent
    return value


def _named(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results by their tool's name, which is how Ollama tells them apart."""
    names = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()}
    return [m if m["role"] != "tool" else {**m, "tool_name": names.get(m["tool_call_id"], "")} for m in messages]


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """Arguments are objects here, and messages have no call ids."""
    sent = {"role": message["role"], "content": message["content"] or ""}
    if "tool_name" in message:
        sent["tool_name"] = message["tool_name"]
    if message.get("tool_calls"):
        calls = [call["function"] for call in message["tool_calls"]]
        sent["tool_calls"] = [
            {"function": {"name": call["name"], "arguments": json.loads(call["arguments"])}} for call in calls
        ]
    return sent


def _plain_types(tool: dict[str, Any]) -> dict[str, Any]:
    """`anyOf` of plain types as a list of types: the client drops the one and keeps the other."""
    function = tool["function"]
    properties = function["parameters"].get("properties")
    if not isinstance(properties, dict):
        return tool
    plain = {name: _plain_type(schema) for name, schema in properties.items()}
    return {**tool, "function": {**function, "parameters": {**function["parameters"], "properties": plain}}}


def _plain_type(schema: Any) -> Any:
    union = (schema.get("anyOf") or schema.get("oneOf")) if isinstance(schema, dict) else None
    if not isinstance(union, list) or "type" in schema:
        return schema
    kinds = [part.get("type") for part in union if isinstance(part, dict)]
    return {**schema, "type": [kind for kind in kinds if isinstance(kind, str)]} if all(kinds) else schema
