"""From a raw span to a `Span`: what kind of work it was, and what its attributes say about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.core.trace import Feedback
from postgrad.traces.formats.otel import genai, openinference
from postgrad.traces.formats.otel.containers import RawSpan
from postgrad.traces.formats.otel.tree import Attributes
from postgrad.traces.formats.shapes.plain import first, mapping, moment, number, opened, string, written
from postgrad.traces.formats.spans.span import LLMCall, Span, SpanKind, ToolRun

_OPERATIONS: dict[str, SpanKind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "call_llm", "completion", "responses"), "llm"),
    **dict.fromkeys(("generate", "message", "messages"), "llm"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
    **dict.fromkeys(("embeddings", "create_agent", "retrieval", "rerank"), "other"),
}
_OPENINFERENCE: dict[str, SpanKind] = {"LLM": "llm", "TOOL": "tool", "AGENT": "agent"}
_TRACELOOP: dict[str, SpanKind] = {"tool": "tool", "agent": "agent", "workflow": "other", "task": "other"}
_LOGS = ("gen_ai.", "claude_code.")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.args", "gcp.vertex.agent.tool_call_args", "tool_arguments")
_RESULTS = ("gen_ai.tool.call.result", "gen_ai.tool.result", "gcp.vertex.agent.tool_response", "tool_response")


def understood(raw: RawSpan, logs: Sequence[RawSpan] = ()) -> Span:
    """A span with what it says; `logs` are log records that belong to it."""
    own = Attributes(raw.attributes)
    kind = _kind(raw, own)
    events = [*raw.events, *genai.log_bodies(logs)]
    span = Span(
        raw.id,
        raw.record,
        raw.trace,
        raw.parent,
        raw.name,
        kind,
        raw.start,
        raw.end,
        moment(raw.time),
        error=_error(raw, own),
        agent=own.text("gen_ai.agent.name", "agent.name", "agent_name", "ai.telemetry.functionId"),
        scope=raw.scope,
        app=own.text("service.name") or _text(raw.resource.get("service.name")),
        feedback=tuple(_annotation(item) for item in raw.annotations) + _evaluations(events),
    )
    span.records = [log.record for log in logs]
    if kind == "llm":
        span.call = _call(own, events)
    elif kind == "tool":
        span.tool = _tool(own, raw, failed=bool(span.error))
    return span


def is_ours(raw: RawSpan) -> bool:
    """Whether a span speaks of models, tools or agents at all."""
    if raw.is_log:
        return raw.name.startswith(_LOGS) or string(raw.body).startswith(_LOGS)
    return _kind(raw, Attributes(raw.attributes)) != "other"


def is_openinference(raw: RawSpan) -> bool:
    """Whether a span is one of OpenInference's, or of the AI SDK, which it stands in for."""
    own = Attributes(raw.attributes)
    return own.having("openinference.span.kind", "ai.operationId") or own.having(
        "llm.input_messages.", "llm.output_messages."
    )


def _kind(raw: RawSpan, own: Attributes) -> SpanKind:
    operation = own.text("gen_ai.operation.name")
    vercel = own.text("ai.operationId", "operation.name") or ""
    if vercel.startswith("ai."):
        return _vercel_kind(vercel.split(" ")[0])
    if operation is not None:
        return _OPERATIONS.get(operation, "other")
    stated = own.text("openinference.span.kind")
    if stated is not None:
        return _OPENINFERENCE.get(stated.upper(), "other")
    if own.having("llm.input_messages.", "llm.output_messages.") or own.text("llm.request.type") in (
        "chat",
        "completion",
    ):
        return "llm"
    if (stated := own.text("traceloop.span.kind")) is not None:
        return _TRACELOOP.get(stated, "other")
    if own.get("gen_ai.tool.name", "gen_ai.tool.call.id") is not None:
        return "tool"
    asked = own.get("gen_ai.request.model", "gen_ai.response.model") is not None
    content = own.having("gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages")
    if asked and own.text("llm.request.type") in ("embedding", "rerank"):
        return "other"
    return "llm" if asked or content else "other"


def _vercel_kind(operation: str) -> SpanKind:
    """`ai.generateText` is the loop around the calls, which are `ai.generateText.doGenerate`."""
    if operation.endswith((".doGenerate", ".doStream")):
        return "llm"
    loops = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
    return "tool" if operation == "ai.toolCall" else "agent" if operation in loops else "other"


def _call(own: Attributes, events: list[tuple[str, dict[str, Any]]]) -> LLMCall:
    """Both conventions are asked, whichever the span says that it follows: some tracers write a mix."""
    phoenix = own.having("openinference.span.kind", "llm.input_messages.", "llm.output_messages.")
    context, answer = genai.context(own, events), genai.answer(own, events)
    if phoenix and own.get("gen_ai.input.messages") is None:
        context, answer = openinference.context(own), openinference.answer(own)
    given = genai.params(own)
    request = mapping(opened(own.get("gcp.vertex.agent.llm_request", "request_data")))
    call = LLMCall(
        context,
        answer,
        genai.offered(own, events) or openinference.offered(own),
        {**openinference.params(own), **given},
        own.text("gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id")
        or _text(request.get("model")),
        {**openinference.usage(own), **genai.usage(own)},
        own.text("gen_ai.response.id", "ai.response.id", "llm.response.id"),
        genai.finish(own),
    )
    call.structured(genai.structured(own))
    return call


def _tool(own: Attributes, raw: RawSpan, *, failed: bool) -> ToolRun:
    name = own.text("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name") or raw.name
    generic = ("ai.toolCall.args", "tool.parameters", "input.value", "input", "traceloop.entity.input")
    arguments = own.get(*_ARGUMENTS, *generic)
    result = own.get(
        *_RESULTS, "ai.toolCall.result", "gen_ai.output", "output.value", "output", "traceloop.entity.output"
    )
    told = next((body for event, body in raw.events if event == "gen_ai.tool.message"), {})
    result = first(told, "content") if result is None else result
    if result is None and failed:
        result = _error(raw, own)
    flag = opened(result).get("isError") if isinstance(opened(result), dict) else None
    return ToolRun(
        name,
        own.text("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id") or "",
        written(arguments),
        written(result) if result is not None else None,
        True if failed else flag if isinstance(flag, bool) else None,
    )


def _error(raw: RawSpan, own: Attributes) -> str:
    """What went wrong: the status, the kind of error, and the exception event."""
    told = [
        string(first(body, "exception.message", "message"))
        for name, body in raw.events
        if name == "exception" or "exception.message" in body
    ]
    kind = own.text("error.type") or ""
    if not (raw.error or kind):
        return ""
    return next(
        (words for words in (*told, raw.message, own.text("error.message", "exception.message")) if words), kind
    ) or ("error")


def _annotation(item: dict[str, Any]) -> Feedback:
    """Phoenix: a name, a label, a score and an explanation, from a human, a model or code."""
    result = mapping(item.get("result")) or item
    text = ": ".join(part for part in (string(result.get("label")), string(result.get("explanation"))) if part)
    name = string(first(item, "name", "annotation_name")) or "annotation"
    return Feedback(name, number(result.get("score")), text, string(item.get("annotator_kind")))


def _evaluations(events: list[tuple[str, dict[str, Any]]]) -> tuple[Feedback, ...]:
    return tuple(
        Feedback(
            string(body.get("gen_ai.evaluation.name")) or "evaluation",
            number(first(body, "gen_ai.evaluation.score.value", "gen_ai.evaluation.score")),
            string(first(body, "gen_ai.evaluation.explanation", "gen_ai.evaluation.score.label")),
            "gen_ai.evaluation",
        )
        for name, body in events
        if name == "gen_ai.evaluation.result"
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
