"""Messages in the form of the Anthropic Messages API, made from the chat-completions form (`wire`).

What `wire` has put right stays right: every call has its result, names and arguments are fit to send. What differs
here: system text stands apart, results are blocks of a user's turn and come first in it, turns of one role are one,
ids hold only letters, digits, `_` and `-` (calls are counted), and no text is empty.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from postgrad.core.actor import Ask
from postgrad.core.message import Tool
from postgrad.teachers.wire import Form, ToolNames, wire_messages, wire_tools

Block = dict[str, Any]
_MARK = {"type": "ephemeral"}
_NOTHING = "(no text)"


def anthropic_messages(ask: Ask, names: ToolNames) -> tuple[str, list[dict[str, Any]]]:
    """System text and `messages` of a request. System words after the first turn are said by the user."""
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for message in wire_messages(ask, names):
        if message["role"] == "system" and not turns:
            system.append(message["content"])
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [_text(_NOTHING)]})
        blocks = _blocks(message, ids)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return "\n\n".join(system), turns or [{"role": "user", "content": [_text(_NOTHING)]}]


def anthropic_tools(tools: Sequence[Tool], names: ToolNames) -> list[dict[str, Any]]:
    """The `tools` of a request. The API wants a schema of type object."""
    functions = (tool["function"] for tool in wire_tools(tools, names))
    return [
        {
            "name": function["name"],
            "description": function["description"],
            "input_schema": {**function["parameters"], "type": "object"},
        }
        for function in functions
    ]


def _alone(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What one message of a trace becomes: a text block of the system, or a turn."""
    ids: dict[str, str] = {}
    system = [_text(message["content"]) for message in sent if message["role"] == "system"]
    blocks = [block for message in sent if message["role"] != "system" for block in _blocks(message, ids)]
    role = "assistant" if any(message["role"] == "assistant" for message in sent) else "user"
    return [*system, {"role": role, "content": blocks}] if blocks else system


ANTHROPIC = Form(_alone, anthropic_tools)


def beginning(ask: Ask, messages: int) -> Ask:
    """`ask` as it was `messages` messages long."""
    return Ask(ask.messages[:messages], ask.tools)


def mark_breakpoints(body: dict[str, Any], *, kept: Sequence[dict[str, Any]], hinted: bool) -> None:
    """Mark where the prompt cache should look and keep: the end of `kept` turns of an earlier request, and of this one.

    A hint is in the last turn and will not come again, so then the turn before the last is the end.
    """
    before = body.get("system") or body.get("tools")
    if before:
        _mark(before, len(before) - 1)
    turns = body["messages"]
    if 0 < len(kept) <= len(turns):
        _mark(turns[len(kept) - 1]["content"], len(kept[-1]["content"]) - 1)
    end = -3 if hinted else -1
    if len(turns) >= -end:
        _mark(turns[end]["content"], len(turns[end]["content"]) - 1)


def _mark(blocks: list[Block], place: int) -> None:
    if place < len(blocks):
        blocks[place] = {**blocks[place], "cache_control": _MARK}


def _blocks(message: dict[str, Any], ids: dict[str, str]) -> list[Block]:
    if message["role"] == "tool":
        used = ids.get(message["tool_call_id"], "call_0")
        content = message["content"] or _NOTHING
        return [{"type": "tool_result", "tool_use_id": used, "content": content}]
    text = message["content"] or ""
    blocks = [_text(text)] if text.strip() else []
    for call in message.get("tool_calls") or ():
        ids[call["id"]] = f"call_{len(ids)}"
        function = call["function"]
        given = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": ids[call["id"]], "name": function["name"], "input": given})
    return blocks or [_text(_NOTHING)]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
