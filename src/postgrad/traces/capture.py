"""postgrad's own exchange form: one JSON line per model call, a superset of ``{"request", "response"}`` logs.

    {"request":  chat-completions request,
     "response": chat-completions response,
     "time":     ISO time,
     "metadata": {"postgrad": {"trace", "task_id", "kind", "fidelity", "missing", "parent",
                               "results":  [{"tool_call_id", "content", "is_error", "status"}],
                               "feedback": [{"kind", "value", "text", "source"}]}}}

A recorded line has an "environment" too: where it was recorded. Keys of "postgrad" are there only where they say
something. `exchange` makes a line's object for a served call, `lines` writes a whole trace; `openai_chat` reads both
back: steps, candidates, calls, results, feedback, task, environment. Headers and keys are never written. Not kept:
events, record numbers, thinking signatures, order of blocks within a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.core.message import ToolResult
from postgrad.core.trace import Candidate, Feedback, Step, Trace
from postgrad.traces.formats.openai_chat.messages import write_message

_DATA = frozenset({"messages", "tools", "functions"})
_DROPPED = frozenset({"headers", "extra_headers", "default_headers", "api_key", "authorization", "cookie"})
_CREDENTIALS = _DROPPED | {"x-api-key", "api-key", "proxy-authorization", "set-cookie", "token", "access_token"}


def exchange(
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    *,
    trace: str | None = None,
    time: str | None = None,
    own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The object of one captured call; `plain_json` of it is the line, which keeps the order of a tool's parameters.

    Args:
        request: the chat-completions request. Headers and keys in it are left out.
        response: the folded completion, or ``{"error": ...}`` of a failed call.
        trace: the trace that the call belongs to; None lets the reader link calls by their messages.
        time: ISO time of the call, now if None.
        own: further keys of ``metadata.postgrad``.
    """
    about = {"trace": trace, **(own or {})}
    kept = {key: value for key, value in about.items() if value not in (None, [], ())}
    return {
        "request": _without_credentials(request),
        "response": dict(response),
        "time": datetime.now(UTC).isoformat() if time is None else time,
        "metadata": {"postgrad": kept},
    }


def lines(trace: Trace) -> list[str]:
    """The lines of a trace, one per step, without line ends. Equal traces give equal lines."""
    return [plain_json(_exchange(trace, step)) for step in trace.steps]


def _without_credentials(request: Mapping[str, Any]) -> dict[str, Any]:
    """Messages and tools are data, kept as they are: a tool may well have an argument named `authorization`."""
    kept = {key: value for key, value in request.items() if key.lower() not in _DROPPED}
    return {key: value if key in _DATA else _scrubbed(value) for key, value in kept.items()}


def _scrubbed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items() if str(key).lower() not in _CREDENTIALS}
    return [_scrubbed(item) for item in value] if isinstance(value, list) else value


def _exchange(trace: Trace, step: Step) -> dict[str, Any]:
    messages = [written for message in trace.context(step) for written in write_message(message)]
    request: dict[str, Any] = {**step.request.params, "messages": messages}
    if step.request.tools:
        request["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in step.request.tools
        ]
    fidelity = step.request.fidelity
    own = {
        "task_id": trace.task_id,
        "parent": trace.parent,
        "kind": step.kind if step.kind != "main" else None,
        "fidelity": fidelity if fidelity != "exact" else None,
        "missing": list(step.request.missing),
        "results": [_result(result) for result in step.results],
        "feedback": [_feedback(item) for item in step.feedback],
    }
    # A made-up time would make equal traces unequal, so a step without a time keeps none.
    whole = exchange(request, _response(step), trace=trace.id, time=step.time or "", own=own)
    whole |= {"environment": trace.environment} if trace.environment else {}
    return {key: value for key, value in whole.items() if value != ""}


def _response(step: Step) -> dict[str, Any]:
    """All candidates as choices, the action taken first: that is how the reader knows it."""
    ordered = sorted(step.candidates, key=lambda candidate: (not candidate.chosen, candidate.teacher is not None))
    first = ordered[0]
    return {
        "object": "chat.completion",
        "model": first.model,
        "choices": [_choice(index, candidate, first) for index, candidate in enumerate(ordered)],
        "usage": first.usage,
    }


def _choice(index: int, candidate: Candidate, first: Candidate) -> dict[str, Any]:
    own: dict[str, str | None] = {"teacher": candidate.teacher} if candidate.teacher is not None else {}
    if candidate.model != first.model:
        own["model"] = candidate.model
    choice = {"index": index, "message": write_message(candidate.message)[0], "finish_reason": candidate.stop_reason}
    return {**choice, "postgrad": own} if own else choice


def _result(result: ToolResult) -> dict[str, Any]:
    written: dict[str, Any] = {
        "tool_call_id": result.provider_id or result.call_id,
        "content": result.text,
        "is_error": result.is_error,
    }
    return written if result.status == "ok" else {**written, "status": result.status}


def _feedback(item: Feedback) -> dict[str, Any]:
    return {"kind": item.kind, "value": item.value, "text": item.text, "source": item.source}
