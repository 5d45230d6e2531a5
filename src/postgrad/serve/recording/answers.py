"""A streamed answer folded to the object that the same call gives without streaming.

Folding keeps what an answer says and drops how it was cut into pieces; only then can a secret be found that was split
over two events. A cut stream folds to what had come: no stop reason (Messages, chat) or status "incomplete"
(Responses); the arguments of a call that was cut stay the text that they are.

Sources: platform.claude.com/docs, "Streaming messages"; platform.openai.com/docs, "Streaming API responses".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from postgrad.serve.recording.upstreams import Api
from postgrad.traces.formats.openai_chat.stream import chunks_of, fold

Object = dict[str, Any]


def fold_chat(text: str) -> Object:
    """Chunks of chat completions."""
    return {"object": "chat.completion", **fold(chunks_of(text))}


def fold_messages(text: str) -> Object:
    """Events of Anthropic's Messages API."""
    message: Object = {}
    blocks: dict[int, Object] = {}
    for event in chunks_of(text):
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                message = dict(event["message"])
            case "content_block_start" if isinstance(event.get("content_block"), dict):
                blocks[_index(event)] = dict(event["content_block"])
            case "content_block_delta" if isinstance(event.get("delta"), dict):
                _grow(blocks.setdefault(_index(event), {}), event["delta"])
            case "message_delta":
                message |= event["delta"] if isinstance(event.get("delta"), dict) else {}
                usage = {**_dict(message.get("usage")), **_dict(event.get("usage"))}
                message |= {"usage": usage} if usage else {}
            case "error":
                message["error"] = event.get("error")
    if message.keys() - {"error"} or blocks:
        message["content"] = [_closed(block) for _, block in sorted(blocks.items())]
    return message


def _grow(block: Object, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block: texts are joined, a citation is one more, a signature stands for itself."""
    for key, value in delta.items():
        if key == "type":
            continue
        if key == "citation":
            block["citations"] = [*(block.get("citations") or []), value]
        elif key != "signature" and isinstance(value, str):
            block[key] = (block.get(key) or "") + value
        else:
            block[key] = value


def _closed(block: Object) -> Object:
    """A block with its input read; the pieces of an input that was cut, or is no JSON, stay a text."""
    if "partial_json" not in block:
        return block
    raw = block.pop("partial_json")
    try:
        return {**block, "input": json.loads(raw)} if raw else block
    except (ValueError, RecursionError):
        return {**block, "input": raw}


def fold_responses(text: str) -> Object:
    """Events of OpenAI's Responses API. The last event brings the whole answer; some servers leave its output out."""
    response: Object = {}
    items: dict[int, Object] = {}
    ended = False
    for event in chunks_of(text):
        kind = str(event.get("type", ""))
        if isinstance(event.get("response"), dict):
            response |= event["response"]
            ended = kind in ("response.completed", "response.incomplete", "response.failed")
        elif kind in ("response.output_item.added", "response.output_item.done"):
            items[_index(event, "output_index")] = dict(_dict(event.get("item")))
        elif kind == "error":
            response["error"] = {key: value for key, value in event.items() if key in ("code", "message", "param")}
        elif isinstance(event.get("delta"), str):
            _extend(items.setdefault(_index(event, "output_index"), {}), kind, event)
    if not response.get("output"):
        response["output"] = [item for _, item in sorted(items.items())]
    return response if ended or not (response["output"] or "id" in response) else {**response, "status": "incomplete"}


def _extend(item: Object, kind: str, event: Mapping[str, Any]) -> None:
    """Add a delta to an item that has no end yet; the item that comes with the end replaces it."""
    delta = event["delta"]
    if kind in ("response.function_call_arguments.delta", "response.mcp_call_arguments.delta"):
        item["arguments"] = item.get("arguments", "") + delta
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = item.get("input", "") + delta
    elif kind in ("response.output_text.delta", "response.refusal.delta"):
        name, key = ("output_text", "text") if "text" in kind else ("refusal", "refusal")
        _part(item, "content", _index(event, "content_index"), name, key)[key] += delta
    elif kind == "response.reasoning_summary_text.delta":
        _part(item, "summary", _index(event, "summary_index"), "summary_text", "text")["text"] += delta


def _part(item: Object, field: str, index: int, name: str, key: str) -> Object:
    """The part at `index` of an item's list, made where it is not there yet."""
    parts = item[field] = list(item.get(field) or [])
    while len(parts) <= index:
        parts.append({"type": name, key: ""})
    part: Object = parts[index]
    return part


def _index(event: Mapping[str, Any], key: str = "index") -> int:
    index = event.get(key)
    return index if isinstance(index, int) and 0 <= index < 1000 else 0


def _dict(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def has_ended(text: str) -> bool:
    """Whether a stream has said that it is at its end. Some clients close the connection at this word."""
    last = text.rstrip().rpartition("\n\n")[2].rpartition("\r\n\r\n")[2]
    ends = ("[DONE]", '"message_stop"', '"response.completed"', '"response.incomplete"', '"response.failed"')
    return any(end in last for end in ends)


FOLDS: Mapping[Api, Callable[[str], Object]] = {
    "openai_chat": fold_chat,
    "openai_responses": fold_responses,
    "anthropic_messages": fold_messages,
}
"""How each API's stream is folded."""
