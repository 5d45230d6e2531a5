"""Chat-completions messages to postgrad's and back, with nothing guessed.

Reading: `content` may be null, a string or parts; arguments may be a string (kept byte for byte), an object, empty,
or broken; `function_call` is the old form of one call. Ids are made unique within one list of messages, always in
the same way, so equal beginnings give equal messages. Writing gives the same fields back; the order of text and
calls within one message is fixed by the format (reasoning, text, calls).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args

import msgspec

from postgrad.core.canonical import struct_id
from postgrad.core.message import Block, Media, Message, Opaque, Reasoning, Role, Text, Tool, ToolCall, ToolResult
from postgrad.traces.pool import CallIds

_ROLES = frozenset(get_args(Role))
_REASONING = ("reasoning_content", "reasoning")


def read_messages(raw: Iterable[object], *, record: int) -> list[Message]:
    """The messages of a request (and its response). Anything that is no message becomes an opaque user block."""
    ids = CallIds()
    return [_message(item, ids, place, record) for place, item in enumerate(raw)]


def read_tools(request: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The tools offered, also in the old `functions` form. Entries without a name are left out."""
    wrapped = [tool.get("function", tool) for tool in _dicts(request.get("tools"))]
    functions = wrapped + _dicts(request.get("functions"))
    return tuple(
        Tool(function["name"], _string(function.get("description")), _dict(function.get("parameters")))
        for function in functions
        if isinstance(function, dict) and isinstance(function.get("name"), str)
    )


def _message(item: object, ids: CallIds, place: int, record: int) -> Message:
    if not isinstance(item, dict):
        return Message("user", (Opaque("value", item),), (record,))
    role = "tool" if item.get("role") == "function" else _string(item.get("role"))
    if role not in _ROLES:
        return Message("user", (Opaque(f"role {role}", item),), (record,))
    if role == "tool":
        return Message("tool", _result(item, ids, place), (record,))
    blocks = [*_reasoning(item), *_parts(item.get("content"))]
    if isinstance(item.get("refusal"), str):
        blocks.append(Opaque("refusal", item["refusal"]))
    blocks += [ids.unique(call, place=place) for call in _calls(item)]
    return Message(cast(Role, role), tuple(blocks), (record,))


def _result(item: Mapping[str, Any], ids: CallIds, place: int) -> tuple[Block, ...]:
    provider_id = _string(item.get("tool_call_id") or item.get("name"))
    call = ids.answered(provider_id, place=place) or provider_id
    blocks = _parts(item.get("content"))
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    other = tuple(block for block in blocks if not isinstance(block, Text))
    return (ToolResult(call, text, provider_id=provider_id if call != provider_id else None), *other)


def _reasoning(item: Mapping[str, Any]) -> list[Block]:
    text = next((item[key] for key in _REASONING if isinstance(item.get(key), str) and item[key]), None)
    blocks: list[Block] = [Reasoning(text)] if text else []
    details = item.get("reasoning_details")
    return blocks + ([Opaque("reasoning_details", details)] if details else [])


def _parts(content: object) -> list[Block]:
    if content is None or content == "":
        return []
    items = content if isinstance(content, list) else [content]
    return [_part(item) for item in items]


def _part(item: object) -> Block:
    if isinstance(item, str):
        return Text(item)
    if not isinstance(item, dict):
        return Opaque("value", item)
    if item.get("type") in ("text", "input_text", "output_text") and isinstance(item.get("text"), str):
        return Text(item["text"])
    if item.get("type") == "image_url" and isinstance(url := _dict(item.get("image_url")).get("url"), str):
        return _image(url, item)
    return Opaque(_string(item.get("type")) or "?", item)


def _image(url: str, item: object) -> Block:
    """A data URL becomes its hash (the bytes stay in the raw layer); any other address is kept."""
    if not url.startswith("data:"):
        return Media("image/*", "", url)
    header, _, data = url[5:].partition(",")
    try:
        content = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return Opaque("image_url", item)
    return Media(header.split(";")[0] or "image/*", hashlib.sha256(content).hexdigest())


def _calls(item: Mapping[str, Any]) -> list[ToolCall]:
    calls = []
    for raw in _dicts(item.get("tool_calls")):
        custom = raw.get("custom")
        if isinstance(custom, dict):
            name, text = _string(custom.get("name")), _string(custom.get("input"))
            calls.append(ToolCall(_string(raw.get("id")), name, text, None, "free text by design"))
        else:
            calls.append(_call(_string(raw.get("id")), _dict(raw.get("function"))))
    if isinstance(item.get("function_call"), dict):
        function = item["function_call"]
        calls.append(_call(_string(function.get("name")), function))
    return calls


def _call(id: str, function: Mapping[str, Any]) -> ToolCall:
    value = function.get("arguments")
    raw = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return ToolCall.from_raw(id=id, name=_string(function.get("name")), raw=raw)


def link_key(message: Message) -> str:
    """What makes two messages the same for linking calls to conversations.

    Clients resend an answer without its reasoning, with other ids, with arguments written anew, trimmed or null for
    "": none of that makes it another answer.
    """
    calls = [[c.name, c.arguments if c.arguments is not None else c.arguments_raw] for c in message.tool_calls]
    results = [result.text for result in message.tool_results]
    other = [msgspec.to_builtins(block) for block in message.blocks if isinstance(block, Media)]
    text = message.text.strip() if message.role == "assistant" else message.text
    return struct_id([message.role, text, calls, results, other])


def write_message(message: Message) -> list[dict[str, Any]]:
    """The chat-completions form; a tool message with several results becomes several messages."""
    if message.role == "tool":
        return [_write_result(result) for result in message.tool_results]
    written: dict[str, Any] = {"role": message.role, "content": _write_content(message.blocks)}
    reasoning = "".join(block.text for block in message.blocks if isinstance(block, Reasoning))
    if reasoning:
        written["reasoning_content"] = reasoning
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.provider_id or call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_raw},
            }
            for call in message.tool_calls
        ]
    return [written]


def _write_result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.provider_id or result.call_id, "content": result.text}


def _write_content(blocks: Sequence[Block]) -> str | list[Any] | None:
    """A string for text alone, null for nothing, parts as soon as there is more."""
    shown = [block for block in blocks if isinstance(block, Text | Media | Opaque)]
    if not shown:
        return None
    if len(shown) == 1 and isinstance(shown[0], Text):
        return shown[0].text
    return [_write_part(block) for block in shown]


def _write_part(block: Block) -> Any:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Media):
        return {"type": "image_url", "image_url": {"url": block.uri or f"sha256:{block.sha256}"}}
    assert isinstance(block, Opaque)
    return block.raw if isinstance(block.raw, dict) else {"type": block.type, "value": block.raw}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
