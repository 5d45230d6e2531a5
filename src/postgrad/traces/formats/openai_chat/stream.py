"""A streamed chat completion folded to the form that a plain one has.

Deltas are joined by choice and by the call's index. Some servers send every call with index 0: a new id under a
known index starts a new call; some repeat the id in every chunk: the same id goes on. Usage is in the last chunk,
which may have no choices. A stream without a finish reason was cut; the fold then has `finish_reason` null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def is_stream(text: str) -> bool:
    """Whether a text is a raw event stream: it starts with a field or a comment of one and has data."""
    first = text.lstrip()
    return first.startswith("data:") or (first.startswith((":", "event:", "id:", "retry:")) and bool(chunks_of(first)))


def chunks_of(text: str) -> list[dict[str, Any]]:
    """The chunks of a raw event stream (``data: {...}`` lines); broken ones are left out."""
    chunks = []
    for line in text.split("\n"):
        if not line.startswith("data:") or line[5:].strip() == "[DONE]":
            continue
        try:
            value = json.loads(line[5:])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            chunks.append(value)
    return chunks


def fold(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One completion: id and model of the first chunk that has them, the last usage, choices by index."""
    whole: dict[str, Any] = {}
    choices: dict[int, _Choice] = {}
    for chunk in chunks:
        for key in ("id", "model", "created"):
            if chunk.get(key) is not None:
                whole.setdefault(key, chunk[key])
        if chunk.get("usage"):
            whole["usage"] = chunk["usage"]
        if chunk.get("error"):
            whole["error"] = chunk["error"]
        for choice in _dicts(chunk.get("choices")):
            choices.setdefault(_index(choice), _Choice()).add(choice)
    whole["choices"] = [choice.folded(index) for index, choice in sorted(choices.items())]
    return whole


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _written(arguments: object) -> str:
    """A piece of an argument string; some servers send the whole object instead."""
    if isinstance(arguments, str) or arguments is None:
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False)


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0


class _Choice:
    """One choice while its deltas come in."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: list[dict[str, Any]] = []
        self._current: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None

    def add(self, choice: Mapping[str, Any]) -> None:
        """Take in one chunk's part."""
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return
        for key in _TEXTS:
            if isinstance(delta.get(key), str):
                self._texts.setdefault(key, []).append(delta[key])
        for part in _dicts(delta.get("tool_calls")):
            self._add_call(part)
        if isinstance(delta.get("function_call"), dict):
            self._add_call({"index": -1, "function": delta["function_call"]})

    def _add_call(self, part: Mapping[str, Any]) -> None:
        index, name = _index(part), part.get("id")
        call = self._current.get(index)
        if call is None or (name and call["id"] and name != call["id"]):
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._current[index] = call
            self._calls.append(call)
        call["id"] = name or call["id"]
        function = part.get("function")
        if isinstance(function, dict):
            call["function"]["name"] = function.get("name") or call["function"]["name"]
            call["function"]["arguments"] += _written(function.get("arguments"))

    def folded(self, index: int) -> dict[str, Any]:
        """The choice of a plain completion."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {key: "".join(parts) for key, parts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = self._calls
        return {"index": index, "message": message, "finish_reason": self._finish}
