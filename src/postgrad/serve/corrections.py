"""Corrections of served answers: what a human says an answer should have been, written beside the exchange.

A correction is a line of its own in the file that holds the exchange: the same request, with the corrected message as
the answer of a teacher named ``human`` (or ``human:ada``), and its reason as feedback. `ingest` reads the line as a
further candidate of that step, and `build` makes a pair of it (``correction/1``). The served answer stays as it is. Of
several answers to one request the line names the one that is meant by standing before the correction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import canonical_json
from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.message import Message, Tool
from postgrad.core.trace import Step, Trace
from postgrad.serve.log import append_line
from postgrad.signals.actions import same_action
from postgrad.signals.rows.human import CORRECTED, CORRECTIONS, FEEDBACK, StoredCorrection, human_name
from postgrad.teachers.validity import invalid_reason
from postgrad.traces.capture import exchange
from postgrad.traces.formats.openai_chat.messages import read_messages, read_tools

_UNFIT = {
    "empty": "it says nothing and calls nothing",
    "malformed_json": "the arguments of a call are not a JSON object",
    "unknown_tool": "it calls a tool that the request did not offer",
    "against_schema": "the arguments of a call do not fit the tool's schema",
    "unusable_schema": "the schema of a tool that it calls is broken",
}


@dataclass(frozen=True)
class Correction:
    """The answer of that `id` should have been `message` (chat-completions form); `reason` and `by` may be empty."""

    id: str
    message: Mapping[str, Any]
    reason: str = ""
    by: str = ""


@dataclass(frozen=True)
class _Exchange:
    """A captured exchange: where it stands, and how many answers its request got."""

    path: Path
    request: Mapping[str, Any]
    answer: Mapping[str, Any]
    own: Mapping[str, Any]
    answers: int


def correct(captures: Path, correction: Correction) -> dict[str, Any]:
    """Write a correction down, on the disk when this returns.

    Args:
        captures: a file of exchanges, or a folder of them.
        correction: the correction.

    Returns:
        ``object``, ``id`` of the answer, ``by`` (the human's name as a teacher) and ``captured``, the file.

    Raises:
        DataError: no such answer, or the correction cannot be learnt: it is the served answer, or no fit action.
        OutsideFailure: the file cannot be written.
    """
    found = _find(captures, correction.id)
    message = _completed(correction.message)
    served, corrected = _read(found, found.answer), _read(found, message)
    _require_lesson(served, corrected, read_tools(found.request))
    who = human_name(correction.by)
    _append(found.path, _line(found, message, who, correction.reason))
    return {"object": "correction", "id": correction.id, "by": who, "captured": str(found.path)}


def correct_step(store: Path, trace: Trace, step: Step, correction: Correction, *, time: str) -> dict[str, Any]:
    """Write a correction of a step of a store down, beside its traces; `time` is when it was made.

    Raises:
        DataError: the correction cannot be learnt.
        OutsideFailure: the file cannot be written.
    """
    action = read_messages([_completed(correction.message)], record=0)[0]
    _require_lesson(step.action, action, step.request.tools)
    who, path = human_name(correction.by), store / CORRECTIONS
    line = StoredCorrection(trace.id, step.index, Message("assistant", action.blocks), who, correction.reason, time)
    _append(path, msgspec.to_builtins(line))
    return {"object": "correction", "id": f"{trace.id}/{step.index}", "by": who, "captured": str(path)}


def _require_lesson(served: Message, corrected: Message, tools: Sequence[Tool]) -> None:
    unfit = invalid_reason(corrected, tools)
    if unfit is not None:
        raise DataError("the corrected message cannot be learnt", got=_UNFIT[unfit])
    if same_action(served, corrected, tools):
        raise DataError("the correction says what the served answer said", expected="another action")


def _append(path: Path, line: Any) -> None:
    try:
        append_line(path, (canonical_json(line) + "\n").encode())
    except OSError as error:
        raise OutsideFailure(f"cannot write {path}: {error.strerror or error}") from error


def _line(found: _Exchange, message: Mapping[str, Any], who: str, reason: str) -> dict[str, Any]:
    choices = [(found.answer, CORRECTED)] if found.answers > 1 else []
    choices.append((message, who))
    response = {
        "object": "chat.completion",
        "choices": [
            {"index": place, "message": said, "finish_reason": "stop", "postgrad": {"teacher": teacher}}
            for place, (said, teacher) in enumerate(choices)
        ],
    }
    feedback = [{"kind": FEEDBACK, "value": None, "text": reason, "source": who}] if reason else []
    return exchange(found.request, response, trace=found.own.get("trace"), own={"feedback": feedback})


def _find(captures: Path, id: str) -> _Exchange:
    """The exchange whose answer has that id, the newest files first."""
    files = sorted(captures.glob("*.jsonl"), reverse=True) if captures.is_dir() else [captures]
    for path in files:
        for value in _lines_with(path, id):
            response = value["response"]
            if response.get("id") == id:
                message = _message_of(response)
                if message is None:
                    raise DataError("the exchange has no answer to correct", got=id)
                own = (value.get("metadata") or {}).get("postgrad") or {}
                return _Exchange(path, value["request"], message, own, _answers(path, value["request"]))
    raise DataError(
        "no answer with this id was captured",
        got=id,
        expected=f"the id of a chat completion in {captures}",
    )


def _answers(path: Path, request: Mapping[str, Any]) -> int:
    """How many answers that were served the file holds to these very messages."""
    wanted = canonical_json(request.get("messages"))
    same = (value for value in _exchanges(path, b"") if canonical_json(value["request"].get("messages")) == wanted)
    return sum("id" in value["response"] for value in same)


def _lines_with(path: Path, id: str) -> Iterator[dict[str, Any]]:
    return _exchanges(path, json.dumps(id, ensure_ascii=False).encode("utf-8", "replace"))


def _exchanges(path: Path, holding: bytes) -> Iterator[dict[str, Any]]:
    """The exchanges of a file whose line holds these bytes; torn lines and lines of other forms are passed over."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", expected="a folder of captured exchanges") from None
    with stream:
        for line in stream:
            if holding not in line:
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            parts = (value.get("request"), value.get("response")) if isinstance(value, dict) else ()
            if parts and all(isinstance(part, dict) for part in parts):
                yield value


def _message_of(response: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else None


def _completed(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with what a client may leave out: role, ids of calls, arguments as text.

    Raises:
        DataError: it is no message of an assistant.
    """
    known = {"role", "content", "tool_calls", "reasoning_content", "refusal", "name"}
    if message.get("role", "assistant") != "assistant" or not known.issuperset(message):
        expected = "a message of the assistant: content, tool_calls"
        raise DataError("the corrected message is none of an assistant", got=", ".join(message), expected=expected)
    content, calls = message.get("content"), message.get("tool_calls") or []
    if not (content is None or isinstance(content, str | list)) or not isinstance(calls, list):
        raise DataError("the corrected message has no readable content", got=canonical_json(dict(message))[:200])
    done: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        done["tool_calls"] = [_call(call, place) for place, call in enumerate(calls)]
    return done


def _call(call: object, place: int) -> dict[str, Any]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        expected = '{"function": {"name": NAME, "arguments": {...}}}'
        raise DataError("a call of the corrected message has no name", got=f"call {place}", expected=expected)
    given = function.get("arguments", {})
    arguments = given if isinstance(given, str) else canonical_json(given)
    return {
        "id": str(call.get("id") or f"call_corrected_{place}"),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _read(found: _Exchange, message: Mapping[str, Any]) -> Message:
    """A message as `ingest` will read it."""
    messages: Sequence[object] = [*(found.request.get("messages") or ()), {**message, "role": "assistant"}]
    return read_messages(messages, record=0)[-1]
