"""Streamed answers folded to the form that a plain one has: Anthropic's events, Responses' events, Gemini's chunks.

Chat completions are folded by `openai_chat.stream`. A stream that stops early is folded as far as it goes: it has no
reason to stop (chat, Messages), or the status "incomplete" without details (Responses). Arguments stay the string that
was sent. Logs are read with these folds, and the recorder writes with them.

Sources: platform.claude.com/docs, "Streaming messages"; platform.openai.com/docs, "Streaming API responses".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.traces.formats.api_log.logged import unfolded
from postgrad.traces.formats.openai_chat import stream
from postgrad.traces.formats.openai_chat.stream import chunks_of, is_stream
from postgrad.traces.formats.shapes.plain import mapping, mappings, string

Object = dict[str, Any]

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_MOST_PARTS = 1000  # an index beyond it is a fault of the log


def folded(response: object) -> Any:
    """A response, with a stream (its text, or its list of events) made whole; everything else as it is."""
    response = unfolded(response)
    if isinstance(response, str) and is_stream(response.replace("\r\n", "\n")):
        response = chunks_of(response.replace("\r\n", "\n"))
    if not isinstance(response, list):
        return response
    events = mappings(response)
    kinds = {string(event.get("type")) for event in events}
    if "message_start" in kinds or kinds & {"content_block_delta", "message_delta"}:
        return anthropic(events)
    if any(kind.startswith("response.") for kind in kinds):
        return responses(events)
    if any("candidates" in event for event in events):
        return gemini(events)
    if any("choices" in event for event in events):
        return stream.fold(events)
    return ollama(events) if any("message" in event and "done" in event for event in events) else response


def anthropic(events: Sequence[Object]) -> Object:
    """A message: blocks by index, arguments as the string that was sent, usage of the last event that has it."""
    message: Object = {}
    blocks: dict[int, Object] = {}
    for event in events:
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                message = dict(event["message"])
            case "content_block_start" if isinstance(event.get("content_block"), dict):
                blocks[_index(event)] = dict(event["content_block"])
            case "content_block_delta" if isinstance(event.get("delta"), dict):
                _grow(blocks.setdefault(_index(event), {}), event["delta"])
            case "message_delta":
                message |= mapping(event.get("delta"))
                usage = {**mapping(message.get("usage")), **mapping(event.get("usage"))}
                message |= {"usage": usage} if usage else {}
            case "error":
                message["error"] = event.get("error")
    if not (message.keys() - {"error"} or blocks):
        return message
    said = [_closed(block) for _, block in sorted(blocks.items())]
    return {"type": "message", "role": "assistant", "stop_reason": None, "usage": {}, **message, "content": said}


def _grow(block: Object, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block: texts are joined, a citation is one more, a signature stands for itself."""
    for key, value in delta.items():
        if key == "type":
            continue
        if key == "citation":
            block["citations"] = [*(block.get("citations") or []), value]
        elif key != "signature" and isinstance(value, str):
            block[key] = string(block.get(key)) + value
        else:
            block[key] = value


def _closed(block: Object) -> Object:
    """Arguments come in pieces of a string, after an empty object; a block that was cut before its start is a text."""
    pieces = block.pop("partial_json", None)
    whole = block if "type" in block else {"type": "text" if pieces is None else "tool_use", **block}
    return whole if pieces is None else {**whole, "input": pieces}


def responses(events: Sequence[Object]) -> Object:
    """The answer. The last event brings it whole; some servers leave its output out, and a cut stream has no such end.

    Then items that were done count as they are, and of the others what their deltas say.
    """
    response: Object = {}
    items: dict[int, Object] = {}
    ended = False
    for event in events:
        kind = string(event.get("type"))
        if isinstance(event.get("response"), dict):
            response |= event["response"]
            ended = kind in _ENDS
        elif kind in ("response.output_item.added", "response.output_item.done"):
            items[_index(event, "output_index")] = dict(mapping(event.get("item")))
        elif kind == "error":
            response["error"] = {key: value for key, value in event.items() if key in ("code", "message", "param")}
        elif isinstance(event.get("delta"), str):
            _extend(items.setdefault(_index(event, "output_index"), {}), kind, event)
    if not response.get("output"):
        response["output"] = [item for _, item in sorted(items.items()) if item]
    if ended or not (response["output"] or "id" in response):
        return response
    return {"object": "response", **response, "status": "incomplete"}


def _extend(item: Object, kind: str, event: Mapping[str, Any]) -> None:
    """Add a delta to an item that has no end yet; the item that comes with the end replaces it."""
    delta = event["delta"]
    if kind in ("response.function_call_arguments.delta", "response.mcp_call_arguments.delta"):
        item["arguments"] = string(item.get("arguments")) + delta
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = string(item.get("input")) + delta
    elif kind in ("response.output_text.delta", "response.refusal.delta"):
        item |= {"type": "message", "role": "assistant"} if "type" not in item else {}
        name, key = ("output_text", "text") if "text" in kind else ("refusal", "refusal")
        _part(item, "content", _index(event, "content_index"), name, key)[key] += delta
    elif kind == "response.reasoning_summary_text.delta":
        item |= {"type": "reasoning"} if "type" not in item else {}
        _part(item, "summary", _index(event, "summary_index"), "summary_text", "text")["text"] += delta


def _part(item: Object, field: str, index: int, name: str, key: str) -> Object:
    """The part at `index` of an item's list, made where it is not there yet."""
    parts = item[field] = [dict(part) for part in mappings(item.get(field))]
    while len(parts) <= index:
        parts.append({"type": name, key: ""})
    part: Object = parts[index]
    part[key] = string(part.get(key))
    return part


def _index(event: Mapping[str, Any], key: str = "index") -> int:
    index = event.get(key)
    return index if isinstance(index, int) and 0 <= index < _MOST_PARTS else 0


def gemini(events: Sequence[Object]) -> Object:
    """Parts in order; texts that follow each other are one."""
    parts: list[Object] = []
    whole: Object = {}
    finish = None
    for event in events:
        whole |= {key: value for key, value in event.items() if key != "candidates"}
        candidate = next(iter(mappings(event.get("candidates"))), {})
        finish = candidate.get("finishReason") or finish
        for part in mappings(mapping(candidate.get("content")).get("parts")):
            joins = parts and part.keys() == parts[-1].keys() == {"text"}
            if joins:
                parts[-1] = {"text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    return {**whole, "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}]}


def ollama(events: Sequence[Object]) -> Object:
    """Pieces of one message, the last of them with `done`."""
    messages = [mapping(event.get("message")) for event in events]
    calls = [call for message in messages for call in mappings(message.get("tool_calls"))]
    message = {"role": "assistant", "content": "".join(string(message.get("content")) for message in messages)}
    thought = "".join(string(message.get("thinking")) for message in messages)
    return {
        **(events[-1] if events else {}),
        "message": {
            **message,
            **({"thinking": thought} if thought else {}),
            **({"tool_calls": calls} if calls else {}),
        },
    }
