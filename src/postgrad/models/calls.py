"""Tool calls as text, in the Hermes form, and back.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

JSON is written with the separators of ``json.dumps`` (", " and ": "), here and in the grammar. What does not parse is
kept: as a call with `parse_error`, the block's text whole in `arguments_raw`, and the name as far as it can be read. A
JSON object that looks like a call but stands outside the tags is text, with a note.

This is the form of all models whose template writes no calls of its own; the others' forms are in `call_forms`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from postgrad.core.message import Block, Message, Opaque, Text, Tool, ToolCall
from postgrad.models.signatures import signature

OPEN, CLOSE = "<tool_call>\n", "\n</tool_call>"
PARSE_NOTE = "parse_note"

_BLOCK = re.compile(r"<tool_call>(.*?)(</tool_call>|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*')


def dumps(value: object) -> str:
    """JSON text as it stands in prompts and calls; text of all languages kept."""
    return json.dumps(value, ensure_ascii=False)


def tools_text(tools: Sequence[Tool], *, example: str = f"{OPEN}{{...}}{CLOSE}") -> str:
    """The tools for a system message, as signatures, and a call. Short on purpose: every token costs in every step."""
    lines = "\n".join(signature(tool) for tool in tools)
    return f"Tools:\n{lines}\nAnswer with {example}, or in words if no tool fits."


def tool_object(tool: Tool) -> dict[str, Any]:
    """Name, description and parameters of a tool as plain data."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def call_text(call: ToolCall) -> str:
    """One call as the model writes it. A malformed call comes back as the text it was read from."""
    if call.arguments is not None:
        return OPEN + dumps({"name": call.name, "arguments": call.arguments}) + CLOSE
    if not call.name or _NAME.search(call.arguments_raw):
        return OPEN + call.arguments_raw + CLOSE
    return f'{OPEN}{{"name": {dumps(call.name)}, "arguments": {call.arguments_raw}}}{CLOSE}'


def action_text(message: Message) -> str:
    """Text and calls of an assistant message, in order, a line break between; reasoning and media are left out."""
    pieces = []
    for block in message.blocks:
        if isinstance(block, Text):
            pieces.append(block.text)
        elif isinstance(block, ToolCall):
            pieces.append(call_text(block))
    return "\n".join(pieces)


def parse_action(text: str, *, call_prefix: str = "call") -> Message:
    """Read an assistant message from what the model wrote; never fails.

    Calls are named ``{call_prefix}_0``, ``_1``, ... in order. Text around them is kept without the blank space that
    touches the tags.
    """
    blocks: list[Block] = []
    position = calls = 0
    for match in _BLOCK.finditer(text):
        _add_text(blocks, text[position : match.start()].strip())
        closed = bool(match.group(2))
        blocks.append(_parse_call(match.group(1).strip("\n"), id=f"{call_prefix}_{calls}", closed=closed))
        position, calls = match.end(), calls + 1
    if not calls:
        _add_text(blocks, text)
        if _bare_call(text):
            blocks.append(Opaque(PARSE_NOTE, "a JSON object like a call stands outside <tool_call> tags: it is text"))
        return Message("assistant", tuple(blocks))
    _add_text(blocks, text[position:].strip())
    return Message("assistant", tuple(blocks))


def _add_text(blocks: list[Block], text: str) -> None:
    if text:
        blocks.append(Text(text))


def _parse_call(body: str, *, id: str, closed: bool) -> ToolCall:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        return ToolCall(id, _readable_name(body), body, None, f"not JSON: {error}")
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall(id, "", body, None, "not an object with a name")
    name = value["name"]
    if not isinstance(value.get("arguments"), dict):
        return ToolCall(id, name, body, None, "no arguments object")
    if not closed:
        return ToolCall(id, name, body, None, "no </tool_call> after the call")
    if set(value) != {"name", "arguments"}:
        extra = ", ".join(sorted(set(value) - {"name", "arguments"}))
        return ToolCall(id, name, body, None, f"unexpected keys beside name and arguments: {extra}")
    return ToolCall.from_raw(id=id, name=name, raw=raw_arguments(body, value["arguments"]))


def raw_arguments(body: str, arguments: dict[str, Any]) -> str:
    """A call's arguments as the model wrote them, cut from the text of the call."""
    for match in _ARGUMENTS.finditer(body):
        try:
            value, end = json.JSONDecoder().raw_decode(body, match.end())
        except ValueError:
            continue
        if value == arguments:
            return body[match.end() : end]
    return dumps(arguments)


def _readable_name(body: str) -> str:
    match = _NAME.search(body)
    if match is None:
        return ""
    try:
        return str(json.loads(match.group(1)))
    except ValueError:
        return ""


def _bare_call(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "name" in value
