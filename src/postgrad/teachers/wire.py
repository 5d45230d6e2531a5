"""Messages in the form of the OpenAI chat-completions API, as they are sent; `replies` is the way back.

APIs refuse what traces contain: results without a call (dropped), calls without a result (answered with a note),
arguments that are no JSON (written anew where the trace knows
what they mean, else sent as an object that holds the raw text), tool names with dots (replaced and put back).
Reasoning is not sent. Media and blocks of unknown types become a short note, because their bytes stay in the trace
store. A hint is put after the last message's words, as the local renderer does.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from postgrad.core.actor import Ask
from postgrad.core.canonical import plain_json, valid_text
from postgrad.core.message import Block, Media, Message, Opaque, Text, Tool, ToolCall

NO_RESULT = "[no result was recorded]"


class ToolNames:
    """Tool names as the API allows them (letters, digits, `_`, `-`, at most 64), and the way back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sent: dict[str, str] = {}
        for name in names:
            self.sent(name)

    def sent(self, name: str) -> str:
        """The name to send for `name`."""
        if name not in self._sent:
            plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"
            taken, number, free = set(self._sent.values()), 2, plain
            while free in taken:
                free = f"{plain[:60]}_{number}"
                number += 1
            self._sent[name] = free
        return self._sent[name]

    def original(self, sent: str) -> str:
        """The name that `sent` stands for; what was never sent is returned as it is."""
        return next((name for name, other in self._sent.items() if other == sent), sent)


def wire_messages(ask: Ask, names: ToolNames) -> list[dict[str, Any]]:
    """The `messages` of a request."""
    sent: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for message in ask.messages:
        results = [result for result in message.tool_results if result.call_id in open_calls]
        for result in results:
            open_calls.remove(result.call_id)
            sent.append(_tool_message(result.call_id, result.text))
        text = _text(message.blocks)
        if message.role == "assistant":
            sent += _unanswered(open_calls)
            open_calls = [call.id for call in message.tool_calls]
            sent.append(_assistant(text, message.tool_calls, names))
        elif text:
            sent += _unanswered(open_calls)
            open_calls = []
            sent.append({"role": _role(message), "content": text})
    sent += _unanswered(open_calls)
    return _hinted(sent, ask.hint)


def wire_alone(message: Message) -> list[dict[str, Any]]:
    """What one message becomes where every result has its call: for its size."""
    sent = [_tool_message(result.call_id, result.text) for result in message.tool_results]
    text = _text(message.blocks)
    if message.role == "assistant":
        return [*sent, _assistant(text, message.tool_calls, ToolNames([]))]
    return [*sent, {"role": _role(message), "content": text}] if text else sent


def wire_tools(tools: Sequence[Tool], names: ToolNames) -> list[dict[str, Any]]:
    """The `tools` of a request."""
    empty = {"type": "object", "properties": {}}
    return [
        {
            "type": "function",
            "function": {
                "name": names.sent(tool.name),
                "description": tool.description,
                "parameters": tool.parameters or empty,
            },
        }
        for tool in tools
    ]


class Form(NamedTuple):
    """How an API writes messages, made from those of this form, and tools: what decides their size."""

    messages: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
    tools: Callable[[Sequence[Tool], ToolNames], list[dict[str, Any]]]


CHAT = Form(list, wire_tools)
"""Of the chat-completions API itself."""


def _role(message: Message) -> str:
    """`developer` is not known to most compatible servers; words beside tool results are the user's."""
    return "system" if message.role in ("system", "developer") else "user"


def _assistant(text: str, calls: Sequence[ToolCall], names: ToolNames) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        sent["tool_calls"] = [_call(call, names) for call in calls]
    elif not text:
        sent["content"] = ""
    return sent


def _call(call: ToolCall, names: ToolNames) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": names.sent(call.name), "arguments": _arguments(call)},
    }


def _arguments(call: ToolCall) -> str:
    """JSON of an object, whatever the trace holds: its own string where that is it (some agents write XML, or text)."""
    if call.arguments is None:
        return plain_json({"malformed": call.arguments_raw})
    try:
        same = json.loads(call.arguments_raw, parse_constant=_no_json) == call.arguments
    except (ValueError, RecursionError):
        same = False
    return call.arguments_raw if same else plain_json(sendable(call.arguments))


def _no_json(name: str) -> NoReturn:
    """NaN and Infinity are Python's, and refused by APIs."""
    raise ValueError(name)


def _tool_message(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _unanswered(open_calls: Sequence[str]) -> list[dict[str, Any]]:
    return [_tool_message(call_id, NO_RESULT) for call_id in open_calls]


def _text(blocks: Sequence[Block]) -> str:
    """Visible words; orphan results and reasoning are left out."""
    parts = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append(block.text)
        elif isinstance(block, Media):
            parts.append(f"[{block.mime} not shown]")
        elif isinstance(block, Opaque):
            parts.append(f"[{block.type} not shown]")
    return "\n".join(parts) if any(isinstance(b, Media | Opaque) for b in blocks) else "".join(parts)


def _hinted(sent: list[dict[str, Any]], hint: str | None) -> list[dict[str, Any]]:
    if hint is None:
        return sent
    if not sent or sent[-1]["role"] not in ("user", "tool"):
        return [*sent, {"role": "user", "content": hint}]
    return [*sent[:-1], {**sent[-1], "content": f"{sent[-1]['content']}\n\n{hint}"}]


def sendable(value: Any) -> Any:
    """`value` as JSON over UTF-8 can say it: lone surrogates replaced, and null for what is no number."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    return [sendable(item) for item in value] if isinstance(value, list) else value
