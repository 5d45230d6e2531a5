"""A streamed answer, put together again: the response as it would have come in one piece.

Streaming is off unless a teacher asks for it; some servers and proxies cut connections on which nothing comes for long.
What a stream says is read only when it is whole: one that ends without a stop reason was cut. Usage comes at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.teachers.providers.failures import CallFailed

Body = dict[str, Any]
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def joined_completion(chunks: Sequence[object]) -> Body:
    """A chat completion from its chunks; of several answers that come side by side the one of index 0.

    Raises:
        CallFailed: it ends before its end (truncated), or is no stream of chunks (invalid_reply).
    """
    message: Body = {"role": "assistant", "content": None}
    calls: list[Body] = []
    logprobs: list[Any] = []
    whole: Body = {"model": None, "usage": None}
    finish = error = None
    wanted = _place(first_choice([choice for chunk in _dicts(chunks) for choice in _choices(chunk)]) or {})
    for chunk in _dicts(chunks):
        whole["model"] = whole["model"] or chunk.get("model")
        whole["usage"] = chunk.get("usage") or whole["usage"]
        choice: Body = next((one for one in _choices(chunk) if _place(one) == wanted), {})
        delta = choice.get("delta") or {}
        for key in _TEXTS:
            if isinstance(delta.get(key), str):
                message[key] = (message.get(key) or "") + delta[key]
        for part in delta.get("tool_calls") or ():
            _join_call(calls, part)
        if isinstance(delta.get("function_call"), dict):  # the old form: one call, without place or id
            _join_call(calls, {"function": delta["function_call"]})
        logprobs += (choice.get("logprobs") or {}).get("content") or ()
        finish = choice.get("finish_reason") or finish
        error = choice.get("error") or error
    _require_end(finish, chunks)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish, **({"error": error} if error else {})}
    return {**whole, "choices": [{**choice, "logprobs": {"content": logprobs}} if logprobs else choice]}


def first_choice(choices: object) -> Body | None:
    """Of several answers the one of the lowest index, which need not stand first; None where there is no answer."""
    return min((choice for choice in _listed(choices) if isinstance(choice, dict)), key=_place, default=None)


def _choices(chunk: Body) -> list[Any]:
    return _listed(chunk.get("choices"))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _place(choice: Body) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def joined_message(events: Sequence[object]) -> Body:
    """A message of the Messages API from its events; see `joined_completion` for errors."""
    whole: Body = {"type": "message", "content": []}
    blocks: dict[int, Body] = {}
    for event in _dicts(events):
        kind, place = event.get("type"), event.get("index", 0)
        if kind == "message_start":
            whole |= event.get("message") or {}
        elif kind == "content_block_start":
            blocks[place] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta" and place in blocks:
            _join_block(blocks[place], event.get("delta") or {})
        elif kind == "message_delta":
            whole |= {key: value for key, value in (event.get("delta") or {}).items() if value is not None}
            whole["usage"] = {**(whole.get("usage") or {}), **(event.get("usage") or {})}
    _require_end(whole.get("stop_reason"), events)
    return {**whole, "content": [blocks[place] for place in sorted(blocks)]}


def joined_chat(parts: Sequence[object]) -> Body:
    """A chat response of Ollama from its parts; see `joined_completion` for errors."""
    said, thought, calls, logprobs = "", "", list[Any](), list[Any]()
    whole: Body = {}
    for part in _dicts(parts):
        message = part.get("message") or {}
        said += message.get("content") or ""
        thought += message.get("thinking") or ""
        calls += message.get("tool_calls") or ()
        logprobs += part.get("logprobs") or ()
        whole |= part
    _require_end(whole.get("done"), parts)
    joined: Body = {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
    joined |= {"thinking": thought} if thought else {}
    return {**whole, "message": joined, **({"logprobs": logprobs} if logprobs else {})}


def _join_call(calls: list[Body], part: Any) -> None:
    """Add a piece of a call. A server that does not count its calls, or gives all one place, gives each its own id.

    Some give every piece of a call a new id: a call begins where a tool is named with it.
    """
    if not isinstance(part, dict):
        return
    place, name, function = part.get("index"), part.get("id"), part.get("function") or {}
    if place is not None:
        known = next((call for call in reversed(calls) if call["index"] == place), None)
        if known is not None and function.get("name") and None not in (name, known["id"]) and name != known["id"]:
            known = None
    else:
        known = calls[-1] if calls and name in (None, calls[-1]["id"]) else None
    if known is None:
        known = {"index": place, "id": name, "function": {"name": "", "arguments": ""}}
        calls.append(known)
    given = function.get("arguments") or ""
    known["function"]["name"] = known["function"]["name"] or function.get("name") or ""
    known["function"]["arguments"] += given if isinstance(given, str) else plain_json(given)


def _join_block(block: Body, delta: Body) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        before = block["input"] if isinstance(block.get("input"), str) else ""  # it starts as an empty object
        block["input"] = before + (delta.get("partial_json") or "")
    elif kind in ("text_delta", "thinking_delta", "signature_delta"):
        name = kind.removesuffix("_delta")
        block[name] = (block.get(name) or "") + (delta.get(name) or "")


def _dicts(parts: Sequence[object]) -> list[Body]:
    found = [part for part in parts if isinstance(part, dict)]
    if len(found) < len(parts):
        raise CallFailed("invalid_reply", f"something else than a stream: {str(parts[:1])[:200]}")
    return found


def _require_end(end: object, parts: Sequence[object]) -> None:
    if not end:
        raise CallFailed("truncated", f"the stream ended after {len(parts)} parts, without its end")
