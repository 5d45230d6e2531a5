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
_HEARD = ("user", "tool")  # roles whose words a hint may follow in one message


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
        for one in wire_alone(message, names):
            sent += following(one, open_calls)
    sent += unanswered(open_calls)
    return hinted(sent, ask.hint)


def wire_alone(message: Message, names: ToolNames) -> list[dict[str, Any]]:
    """What one message becomes where every result has its call: results first, then what is said."""
    sent = [_tool_message(result.call_id, result.text) for result in message.tool_results]
    text = _text(message.blocks)
    if message.role == "assistant":
        return [*sent, _assistant(text, message.tool_calls, names)]
    return [*sent, {"role": _role(message), "content": text}] if text else sent


def following(one: dict[str, Any], open_calls: list[str]) -> list[dict[str, Any]]:
    """What is sent where `one` follows: nothing for a result without a call, notes before what leaves calls behind.

    `open_calls`, the ids of calls that have no result yet, is changed to those after it.
    """
    if one["role"] != "tool":
        notes = unanswered(open_calls)
        open_calls[:] = [call["id"] for call in one.get("tool_calls", ())]
        return [*notes, one]
    if one["tool_call_id"] not in open_calls:
        return []
    open_calls.remove(one["tool_call_id"])
    return [one]


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


def unanswered(open_calls: Sequence[str]) -> list[dict[str, Any]]:
    """A note in place of each result that never came."""
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


def hinted(sent: list[dict[str, Any]], hint: str | None) -> list[dict[str, Any]]:
    """`sent` with the hint after the last words."""
    if hint is None:
        return sent
    if not sent or sent[-1]["role"] not in _HEARD:
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


def json_bytes(value: Any) -> int:
    """Bytes of `value` in a request: JSON in UTF-8 without escapes and blanks, as the official clients write it."""
    return len(json.dumps(sendable(value), ensure_ascii=False, separators=(",", ":")).encode())


class Part(NamedTuple):
    """One message of the chat-completions form, and the bytes of JSON that an API makes of it, taken alone."""

    chat: dict[str, Any]
    bytes: int


class Called(NamedTuple):
    """A call that is written: its id, its tool's name as sent, and how many calls were written before it."""

    id: str
    name: str
    number: int


class Written(NamedTuple):
    """The beginning of a request: what its messages add to a body without any, and what decides how it goes on.

    Attributes:
        bytes: of JSON.
        last: what was written last.
        begun: whether anyone but the system has spoken.
        calls: how many were written.
        open: those of them that have no result yet.
    """

    bytes: int = 0
    last: Part | None = None
    begun: bool = False
    calls: int = 0
    open: tuple[Called, ...] = ()


class Form(NamedTuple):
    """How an API writes messages, made from those of this form, and tools: what decides their size.

    Attributes:
        part: a message of this form, weighed alone.
        grown: bytes that a part adds after what is written; where it is a result, of the call given.
        tools: the `tools` of a request.
        marks: bytes of what is put into a request for a prompt cache, by how many messages the last one had too.
    """

    part: Callable[[dict[str, Any]], Part]
    grown: Callable[[Written, Part, Called | None], int]
    tools: Callable[[Sequence[Tool], ToolNames], list[dict[str, Any]]]
    marks: Callable[[Ask, int], int] = lambda ask, shared: 0

    def alone(self, message: Message) -> tuple[Part, ...]:
        """A message of a trace, in parts. Names are made fit to send one by one: two may become one here."""
        return tuple(self.part(one) for one in wire_alone(message, ToolNames([])))

    def after(self, before: Written, part: Part) -> Written:
        """One part more, with what is sent before it; a result without a call adds nothing."""
        for one in following(part.chat, [call.id for call in before.open]):
            before = self._add(before, part if one is part.chat else self.part(one))
        return before

    def whole(self, before: Written, hint: str | None) -> int:
        """Bytes of the messages of a request that ends here."""
        for one in unanswered([call.id for call in before.open]):
            before = self._add(before, self.part(one))
        if hint is None:
            return before.bytes
        if before.last is not None and before.last.chat["role"] in _HEARD:
            (end,) = hinted([before.last.chat], hint)
            return before.bytes + self.part(end).bytes - before.last.bytes
        (end,) = hinted([], hint)
        return self._add(before, self.part(end)).bytes

    def _add(self, before: Written, part: Part) -> Written:
        answered = next((call for call in before.open if call.id == part.chat.get("tool_call_id")), None)
        calls = part.chat.get("tool_calls", ())
        made = [Called(one["id"], one["function"]["name"], before.calls + at) for at, one in enumerate(calls)]
        return Written(
            before.bytes + self.grown(before, part, answered),
            part,
            before.begun or part.chat["role"] != "system",
            before.calls + len(made),
            (*(call for call in before.open if call is not answered), *made),
        )


def next_in_list(before: Written, part: Part, call: Called | None) -> int:
    """Of an API whose messages are a plain list: a part, and the comma before it."""
    return part.bytes + bool(before.bytes)


CHAT = Form(lambda one: Part(one, json_bytes(one)), next_in_list, wire_tools)
"""Of the chat-completions API itself."""
