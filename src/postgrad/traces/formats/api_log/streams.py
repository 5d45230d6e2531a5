"""Streamed answers folded to the form that a plain one has: Anthropic's events, Responses' events, Gemini's chunks.

Chat completions are folded by `openai_chat.stream`. A stream that stops early is folded as far as it goes and has no
reason to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.traces.formats.api_log.logged import unfolded
from postgrad.traces.formats.openai_chat import stream
from postgrad.traces.formats.openai_chat.stream import chunks_of, is_stream
from postgrad.traces.formats.shapes.plain import mapping, mappings, string

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")


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


def anthropic(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A message: blocks by index, arguments as the string that was sent, usage of the last event that has it."""
    whole: dict[str, Any] = {"type": "message", "role": "assistant", "stop_reason": None, "usage": {}}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            start = mapping(event.get("message"))
            whole |= {key: value for key, value in start.items() if key not in ("content", "usage")}
            whole["usage"] = {**mapping(start.get("usage"))}
        elif kind == "content_block_start" and isinstance(index, int):
            blocks[index] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_delta" and isinstance(index, int):
            _add(blocks.setdefault(index, {"type": "text", "text": ""}), mapping(event.get("delta")))
        elif kind == "message_delta":
            whole |= {key: value for key, value in mapping(event.get("delta")).items() if value is not None}
            whole["usage"] = {**whole["usage"], **mapping(event.get("usage"))}
        elif kind == "error":
            whole["error"] = event.get("error")
    whole["content"] = [_closed(blocks[index]) for index in sorted(blocks)]
    return whole


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = string(delta.get("type"))
    if kind in _DELTAS:
        key = _DELTAS[kind]
        block[key] = string(block.get(key)) + string(delta.get(key))
    elif kind == "signature_delta":
        block["signature"] = string(block.get("signature")) + string(delta.get("signature"))
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta.get("citation")]


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """Arguments come in pieces of a string, after an empty object."""
    pieces = block.pop("partial_json", None)
    if pieces is not None:
        block["input"] = pieces
    return block


def responses(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The response in the last event; of a stream that was cut, the items that were done and the text so far."""
    for event in reversed(events):
        if event.get("type") in _ENDS and isinstance(event.get("response"), dict):
            return dict(event["response"])
    starts = (event["response"] for event in events if isinstance(event.get("response"), dict))
    started: dict[str, Any] = next(starts, {})
    done = [event["item"] for event in events if event.get("type") == "response.output_item.done" and "item" in event]
    said = "".join(string(event.get("delta")) for event in events if event.get("type") == "response.output_text.delta")
    if not done and said:
        done = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}]
    return {"object": "response", **started, "output": done, "status": None}


def gemini(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Parts in order; texts that follow each other are one."""
    parts: list[dict[str, Any]] = []
    whole: dict[str, Any] = {}
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


def ollama(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
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
