"""One row of a chat-completions log as an `Exchange`: request, answers, and postgrad's own metadata.

Three forms are read: ``{"request": {...}, "response": ...}`` (postgrad's capture is a superset of it),
``{"kwargs": {...}, "response": ...}`` and ``{"messages": [...], ..., "response": ...}``. A response is a completion,
a list of stream chunks, the raw text of an event stream, a bare message or a bare text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.message import Message, Tool, ToolResult
from postgrad.core.trace import Candidate, Feedback
from postgrad.traces.formats.openai_chat.messages import read_messages, read_tools
from postgrad.traces.formats.openai_chat.stream import chunks_of, fold, is_stream

# What a row of a log holds beside sampling parameters, in the form that has no request of its own.
_NOT_PARAMS = frozenset(
    {
        *("messages", "tools", "functions", "response", "request", "kwargs", "metadata", "error", "feedback", "status"),
        *("time", "timestamp", "latency", "duration", "duration_ms", "id", "trace_id", "session_id"),
        *("headers", "extra_headers", "default_headers", "api_key"),
    }
)
_STATUSES = ("ok", "error", "rejected", "interrupted", "cascade", "pending")


@dataclass(frozen=True)
class Exchange:
    """A request and its answers. `candidates` is empty when the call failed; `error` then says how.

    `unrecorded`: only the answer was logged, so nothing is known of the request.
    """

    record: int
    messages: list[Message]
    tools: tuple[Tool, ...]
    params: dict[str, Any]
    candidates: list[Candidate]
    time: str | None
    error: str = ""
    cut: bool = False
    own: Mapping[str, Any] = field(default_factory=dict)
    unrecorded: bool = False

    @property
    def trace(self) -> str | None:
        """The trace that postgrad wrote this exchange for."""
        value = self.own.get("trace")
        return value if isinstance(value, str) else None

    @property
    def feedback(self) -> tuple[Feedback, ...]:
        """Judgements written beside the exchange."""
        return tuple(
            Feedback(
                str(item.get("kind", "")),
                _number(item.get("value")),
                str(item.get("text", "")),
                str(item.get("source", "")),
            )
            for item in _dicts(self.own.get("feedback"))
        )

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Results of this answer's calls, written beside it; the call ids are the provider's."""
        return tuple(_result(item) for item in _dicts(self.own.get("results")))


def request_of(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request in a row, None if the row is no exchange."""
    if "response" not in value and "error" not in value:
        return None
    for key in ("request", "kwargs"):
        inner = _opened(value.get(key))
        body = inner.get("body") if isinstance(inner, dict) and isinstance(inner.get("body"), dict) else inner
        if isinstance(body, dict) and isinstance(body.get("messages"), list):
            return body
    return dict(value) if isinstance(value.get("messages"), list) else None


def read_exchange(number: int, value: Mapping[str, Any]) -> Exchange | None:
    """Read a row, None if it is no exchange. Never fails: the file is foreign."""
    request = request_of(value)
    if request is None:
        return None
    response = _completion(value.get("response"))
    raw = list(request["messages"])
    candidates = [
        candidate
        for choice in _dicts(response.get("choices"))
        if (candidate := _candidate(choice, response, raw, number)) is not None
    ]
    error = value.get("error") or response.get("error")
    return Exchange(
        number,
        read_messages(raw, record=number),
        read_tools(request),
        {key: item for key, item in request.items() if key not in _NOT_PARAMS},
        candidates,
        _time(value, response),
        error="" if candidates else str(error or "the response has no answer"),
        cut=any(candidate.stop_reason is None for candidate in candidates),
        own=own_words(value),
    )


def own_words(value: Mapping[str, Any]) -> dict[str, Any]:
    """What postgrad wrote beside a call, and the `environment` in which its recorder stood; empty in others' logs."""
    metadata = value.get("metadata")
    own = metadata.get("postgrad") if isinstance(metadata, dict) else None
    if not isinstance(own, dict):
        return {}
    environment = value.get("environment")
    return {**own, "environment": environment} if isinstance(environment, dict) and environment else own


def _completion(response: object) -> dict[str, Any]:
    """Any of the response forms as a completion."""
    response = _opened(response)
    if isinstance(response, str):
        if is_stream(response):
            return fold(chunks_of(response))
        return {"choices": [{"message": {"role": "assistant", "content": response}, "finish_reason": "stop"}]}
    if isinstance(response, list):
        return fold(_dicts(response))
    if not isinstance(response, dict):
        return {}
    body = response.get("body")
    if "choices" not in response and isinstance(body, dict | list | str):
        return _completion(body)
    if response.get("role") == "assistant":
        return {"choices": [{"message": response, "finish_reason": "stop"}]}
    return response


def _opened(value: object) -> Any:
    """Some loggers keep a body as its JSON text; a text that is no JSON object is a text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    whole = isinstance(inner, dict) and not too_deep(inner) and inner.keys() & {"messages", "choices", "error"}
    return inner if whole else value


def _candidate(choice: Mapping[str, Any], response: Mapping[str, Any], raw: list[Any], number: int) -> Candidate | None:
    """One choice. It is read behind its request, so that its call ids are unique in the conversation."""
    answer = choice.get("message")
    if not isinstance(answer, dict):
        return None
    message = read_messages([*raw, {**answer, "role": "assistant"}], record=number)[-1]
    own = choice.get("postgrad")
    own = own if isinstance(own, dict) else {}
    usage = response.get("usage")
    return Candidate(
        message,
        model=_text((own if "model" in own else response).get("model")),
        stop_reason=_text(choice.get("finish_reason")),
        usage=usage if isinstance(usage, dict) else {},
        teacher=_text(own.get("teacher")),
    )


def _result(item: Mapping[str, Any]) -> ToolResult:
    flag, status = item.get("is_error"), item.get("status")
    return ToolResult(
        str(item.get("tool_call_id", "")),
        str(item.get("content", "")),
        flag if isinstance(flag, bool) else None,
        status if status in _STATUSES else "error" if flag is True else "ok",
    )


def _time(value: Mapping[str, Any], response: Mapping[str, Any]) -> str | None:
    """The row's time as written, else the response's `created` (seconds since 1970) in ISO form, UTC."""
    stated = _text(value.get("time")) or _text(value.get("timestamp"))
    created = response.get("created")
    if stated or isinstance(created, bool) or not isinstance(created, int | float) or not 0 < created < 1e11:
        return stated
    return datetime.fromtimestamp(created, UTC).isoformat()


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
