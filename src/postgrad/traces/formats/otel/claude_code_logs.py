"""Claude Code's telemetry: its log records, session by session.

    user_prompt, api_request, api_error, tool_result, tool_decision        always; without content unless asked for
    api_request_body, api_response_body                                    with OTEL_LOG_RAW_API_BODIES: exact contexts

A step is an `api_request`. Where the bodies are logged, a request's body and a response's belong to the `api_request`
of the same request id, else to the next one. A body that was cut is no JSON any more: the step then lacks its messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from postgrad.core.trace import Feedback
from postgrad.traces.formats.api_log.streams import folded
from postgrad.traces.formats.otel.containers import RawSpan
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import first, mapping, moment, number, opened, string, text
from postgrad.traces.formats.shapes.said import Said
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import turns
from postgrad.traces.formats.spans.span import LLMCall, Span, ToolRun

_PREFIX = "claude_code."
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "cost_usd")
_BODIES = ("api_request_body", "api_response_body")


def is_session(log: RawSpan) -> bool:
    """Whether a log record is Claude Code's."""
    return log.is_log and (log.name.startswith(_PREFIX) or string(log.body).startswith(_PREFIX))


def sessions(logs: Sequence[RawSpan]) -> list[Span]:
    """The calls, tool runs and events of all sessions."""
    by_session: defaultdict[str, list[RawSpan]] = defaultdict(list)
    for log in logs:
        by_session[string(log.attributes.get("session.id"))].append(log)
    return [span for key, group in by_session.items() for span in _session(key, group)]


def _session(key: str, logs: list[RawSpan]) -> list[Span]:
    spans: list[Span] = []
    bodies: dict[str, RawSpan] = {}
    for place, log in enumerate(
        sorted(logs, key=lambda log: (log.start, number(log.attributes.get("event.sequence")) or 0))
    ):
        kind = (log.name if log.name.startswith(_PREFIX) else string(log.body)).removeprefix(_PREFIX)
        own = log.attributes
        span = Span(f"{key}#{place}", log.record, key, name=kind, start=log.start, end=log.start, time=moment(log.time))
        spans.append(span)
        if kind in _BODIES:
            bodies[kind] = log
        elif kind == "api_request":
            span.kind = "llm"
            span.call = _call(own, bodies)
            span.records = [body.record for body in bodies.values()]
            bodies = {}
        elif kind == "tool_result":
            span.kind = "tool"
            span.tool = _run(own)
        elif kind == "user_prompt":
            span.texts = (("user_text", string(own.get("prompt"))),)
        elif kind == "api_error":
            span.texts = (("api_error", string(own.get("error"))),)
            bodies = {}
        elif kind == "tool_decision":
            _decide(spans, span, own)
    return spans


def _call(own: dict[str, Any], bodies: dict[str, RawSpan]) -> LLMCall:
    """What the record counts, with the bodies that stand before it."""
    asked, answered = (opened(_body(bodies.get(kind))) for kind in _BODIES)
    request, response = mapping(asked), folded(answered)
    whole = isinstance(request.get("messages"), list)
    call = LLMCall(
        turns(request) if whole else None,
        _answers(response),
        tools(request.get("tools")),
        {key: value for key, value in request.items() if key not in ("messages", "tools", "system")},
        text(own.get("model")),
        {key: number(own[key]) for key in _TOKENS if number(own.get(key)) is not None},
        text(first(mapping(response), "id") or own.get("request_id")),
    )
    call.fidelity = "exact"
    return call


def _body(log: RawSpan | None) -> object:
    return None if log is None else log.attributes.get("body")


def _answers(response: object) -> list[Said]:
    """A body that was cut in the middle stays a text, which is no answer."""
    return answers(response) if isinstance(response, dict) else []


def _run(own: dict[str, Any]) -> ToolRun:
    success = {"true": True, "false": False}.get(str(own.get("success")).lower())
    name = string(first(own, "tool_name", "name"))
    failed = None if success is None else not success
    arguments = string(first(own, "tool_input", "tool_parameters"))
    return ToolRun(name, string(own.get("tool_use_id")), arguments, text(own.get("error")), failed)


def _decide(spans: list[Span], span: Span, own: dict[str, Any]) -> None:
    """A tool that was rejected is a judgement on the call before it."""
    decision, name = string(own.get("decision")), string(first(own, "tool_name", "name"))
    span.texts = (("approval", f"{decision}: {name}"),)
    step = next((earlier for earlier in reversed(spans) if earlier.kind == "llm"), None)
    if decision == "reject" and step is not None:
        step.feedback += (Feedback("user_reject", 0.0, name, string(own.get("source"))),)
