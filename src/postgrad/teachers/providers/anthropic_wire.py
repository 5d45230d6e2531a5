"""Messages in the form of the Anthropic Messages API, made from the chat-completions form (`wire`).

What `wire` has put right stays right: every call has its result, names and arguments are fit to send. What differs
here: system text stands apart, results are blocks of a user's turn and come first in it, turns of one role are one,
ids hold only letters, digits, `_` and `-` (calls are counted), and no text is empty or blank.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
    wire_messages,
    wire_tools,
)

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
            system += [message["content"]] * _says_something(message)
            continue
        role = _speaker(message)
        if not turns and role == "assistant":
            turns.append(_nobody())
        blocks = _blocks(message, ids)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return "\n\n".join(system), turns or [_nobody()]


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


def _part(chat: dict[str, Any]) -> Part:
    """The blocks, calls counted from 0; without the brackets around them."""
    return Part(chat, json_bytes(_blocks(chat, {})) - len("[]"))


def _grown(before: Written, part: Part, call: Called | None) -> int:
    """Blocks join a turn of their role, and system text before the first turn the system's."""
    if part.chat["role"] == "system" and not before.begun:
        if not _says_something(part.chat):
            return 0
        between = len(r"\n\n") if before.bytes else len(',"system":[]') + _BLOCK
        return between + part.bytes - _BLOCK
    role, added = _speaker(part.chat), part.bytes + _digits(before, part, call)
    if before.last and before.begun and role == _speaker(before.last.chat):
        return len(",") + added
    turn = _TURN[role] + added
    if before.begun or role == "assistant":  # before the first assistant stays the turn of a body without messages
        return len(",") + turn
    return turn - _NOBODY


def _digits(before: Written, part: Part, call: Called | None) -> int:
    """Bytes of the numbers in ids, where a part alone counts from 0."""
    made = part.chat.get("tool_calls", ())
    numbers = [call.number] if call else range(before.calls, before.calls + len(made))
    return sum(len(str(number)) - len(str(alone)) for alone, number in enumerate(numbers))


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


def _marks(ask: Ask, shared: int) -> int:
    """Bytes of the marks, by the messages alone: taken for granted is that user and assistant take turns."""
    spoken = [message.role not in ("system", "developer") for message in ask.messages]
    before, turns = sum(spoken[:shared]), sum(spoken)
    hinted = before == 0 and turns > 2  # with a hint the end is mostly where the last request ended
    apart = hinted if ask.hint else turns > max(1, before)
    places = bool(ask.tools or not all(spoken)) + 1 + apart
    return places * len(',"cache_control":{"type":"ephemeral"}')


ANTHROPIC = Form(_part, _grown, anthropic_tools, _marks)


def _mark(blocks: list[Block], place: int) -> None:
    if place < len(blocks):
        blocks[place] = {**blocks[place], "cache_control": _MARK}


def _blocks(message: dict[str, Any], ids: dict[str, str]) -> list[Block]:
    if message["role"] == "tool":
        used = ids.get(message["tool_call_id"], "call_0")
        content = message["content"] or _NOTHING
        return [{"type": "tool_result", "tool_use_id": used, "content": content}]
    blocks = [_text(message["content"])] if _says_something(message) else []
    for call in message.get("tool_calls") or ():
        ids[call["id"]] = f"call_{len(ids)}"
        function = call["function"]
        given = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": ids[call["id"]], "name": function["name"], "input": given})
    return blocks or [_text(_NOTHING)]


def _says_something(message: dict[str, Any]) -> bool:
    """The API refuses text that is empty or blank."""
    return bool((message["content"] or "").strip())


def _speaker(message: dict[str, Any]) -> str:
    return "assistant" if message["role"] == "assistant" else "user"


def _nobody() -> dict[str, Any]:
    """The user's turn that the API wants where an assistant speaks first, or nobody."""
    return {"role": "user", "content": [_text(_NOTHING)]}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


_BLOCK = json_bytes(_text(""))  # bytes around a text, of a turn without blocks, and of the turn of nobody
_TURN = {role: json_bytes({"role": role, "content": []}) for role in ("user", "assistant")}
_NOBODY = json_bytes(_nobody())
