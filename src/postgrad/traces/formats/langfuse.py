"""Langfuse: traces of observations, as its API, its interface and its exports give them.

    {"trace": {...}, "observations": [...]}, {"id", ..., "observations", "scores"}, {"data": [...]}, a list or JSON
    lines of observations or of traces, a table (CSV), and the ingestion batches of the SDKs ({"batch": [{"type",
    "body"}]})

A step is a GENERATION that is a call of its own (`spans.calls`). Input and output are any JSON, often as a text;
what OTel tracers said beside them is under `metadata.attributes`. Scores are feedback. Media stay the references
that they are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.message import Tool
from postgrad.core.trace import Feedback
from postgrad.traces.formats.otel import genai, openinference
from postgrad.traces.formats.otel.tree import Attributes
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import (
    first,
    mapping,
    mappings,
    moment,
    number,
    opened,
    seconds,
    settings,
    string,
    text,
    written,
)
from postgrad.traces.formats.shapes.tools import is_tool, tools
from postgrad.traces.formats.shapes.turns import turns
from postgrad.traces.formats.spans.export import Export, lists_among, opening
from postgrad.traces.formats.spans.span import LLMCall, Span, SpanKind, ToolRun
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_KINDS: dict[str, SpanKind] = {"GENERATION": "llm", "TOOL": "tool", "AGENT": "agent"}
_TYPES = frozenset(
    {*_KINDS, *("SPAN", "EVENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")},
)
_BATCH = ("generation-create", "generation-update", "span-create", "span-update", "event-create", "observation-create")
_LISTS = ("observations", "scores", "trace.observations", "trace.scores", "data", "batch")
_TOKENS = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}
_TOKENS |= {"promptTokens": "input_tokens", "completionTokens": "output_tokens", "totalTokens": "total_tokens"}


@dataclass(frozen=True)
class Langfuse:
    """Reader of Langfuse traces and observations."""

    format: str = "langfuse"

    def recognises(self, head: Head) -> bool:
        """An observation with Langfuse's types and identifiers."""
        line = head.text.partition("\n")[0]
        if {"id", "type", "input", "output"} <= set(columns := next(csv.reader([line]), [])):
            return bool({"traceId", "trace_id"} & set(columns))
        return any(_is_observation(body) for value in opening(head, _LISTS) for body in _bodies(value))

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        export = Export(path, lists_among(_LISTS), _LISTS, table=True)
        found = [(item.number, body) for item in export.items() for body in _bodies(item.value)]
        spans = [_span(record, body) for record, body in found if _is_observation(body)]
        by_id = {span.id: span for span in spans}
        uses: dict[int, str] = {}
        for record, body in found:
            target = _target(body, by_id, spans) if not _is_observation(body) and _is_score(body) else None
            if target is not None:
                target.feedback += (_score(body),)
                uses[record] = "feedback"
        return export.result(self.format, spans, uses=uses)


def _bodies(value: object) -> Iterator[dict[str, Any]]:
    """The observations and scores in a row, a trace, or an event of an ingestion batch."""
    if not isinstance(value, dict):
        return
    body = value.get("body")
    if isinstance(body, dict) and isinstance(value.get("type"), str):
        kind = value["type"].partition("-")[0].upper()
        yield {"type": "SCORE" if kind == "SCORE" else kind, **body}
        return
    inner = [*mappings(value.get("observations")), *mappings(value.get("scores")), *mappings(value.get("batch"))]
    inner += mappings(mapping(value.get("trace")).get("observations"))
    inner += mappings(value.get("data")) if "type" not in value else []
    for item in inner:
        yield from _bodies(item)
    if not inner:
        yield value


def _is_observation(value: Mapping[str, Any]) -> bool:
    named = string(value.get("type")) in _TYPES and isinstance(value.get("id"), str)
    return (
        named
        and bool({"traceId", "trace_id"} & value.keys())
        and bool(
            {"startTime", "start_time"} & value.keys()
            | {key for key in ("endTime", "end_time", "output") if key in value}
        )
    )


def _is_score(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and bool({"traceId", "trace_id"} & value.keys()) and "value" in value


def _span(record: int, value: Mapping[str, Any]) -> Span:
    meta = opened(value.get("metadata"))
    own = Attributes(mapping(opened(mapping(meta).get("attributes"))))
    failed = value.get("level") == "ERROR"
    message = string(first(value, "statusMessage", "status_message"))
    start = first(value, "startTime", "start_time")
    span = Span(
        str(value["id"]),
        record,
        string(first(value, "traceId", "trace_id")),
        string(first(value, "parentObservationId", "parent_observation_id")),
        string(value.get("name")),
        _KINDS.get(string(value.get("type")), "other"),
        seconds(start) or 0.0,
        seconds(first(value, "endTime", "end_time")) or 0.0,
        moment(start),
        error=(message or "error") if failed else "",
        agent=own.text("gen_ai.agent.name", "agent_name", "agent.name"),
        scope=string(mapping(mapping(meta).get("scope")).get("name")),
    )
    if span.kind == "llm":
        span.call = _call(value, own)
        if not (span.call.content or span.call.usage or span.error):
            span.kind, span.call = "other", None  # a mark that something began or ended
    elif span.kind in ("tool", "other"):
        span.tool = _tool(span, value, own)
    return span


def _call(value: Mapping[str, Any], own: Attributes) -> LLMCall:
    given, taken = opened(value.get("input")), opened(value.get("output"))
    params = mapping(opened(first(value, "modelParameters", "model_parameters")))
    context = turns(given) if given is not None else genai.context(own, ())
    answer = answers(taken) if taken is not None else genai.answer(own, ())
    usage = mapping(opened(first(value, "usageDetails", "usage_details"))) or mapping(opened(value.get("usage")))
    tokens = {_TOKENS.get(key, key): count for key, count in usage.items() if number(count) is not None}
    instructions = mapping(taken).get("instructions")
    if isinstance(instructions, str) and context is not None and mapping(taken).get("object") == "response":
        context = [*turns(instructions, role="system"), *context]
    call = LLMCall(
        context,
        answer,
        _offered(given, taken, params, own),
        {key: opened(item) for key, item in settings(params, data=("tools",)).items()},
        text(first(value, "model", "providedModelName", "provided_model_name")),
        tokens or genai.usage(own),
        own.text("gen_ai.response.id") or text(mapping(taken).get("id")),
        genai.finish(own),
    )
    call.structured(genai.structured(own))
    return call


def _offered(given: object, taken: object, params: Mapping[str, Any], own: Attributes) -> tuple[Tool, ...]:
    """The tools on offer, from wherever a framework left them; some callbacks list them among the messages."""
    config = mapping(mapping(given).get("config"))
    listed = [
        item["content"] for item in mappings(given) if item.get("role") == "tool" and is_tool(item.get("content"))
    ]
    for value in (
        mapping(given).get("tools"),
        config.get("tools"),
        mapping(taken).get("tools"),
        params.get("tools"),
        listed,
    ):
        if found := tools(value):
            return found
    return genai.offered(own, ()) or openinference.offered(own)


def _tool(span: Span, value: Mapping[str, Any], own: Attributes) -> ToolRun:
    said = opened(value.get("output"))
    flag = said.get("isError") if isinstance(said, dict) else None
    output = said if isinstance(said, str) else value.get("output")
    if output is None and span.error:
        output = span.error
    return ToolRun(
        own.text("gen_ai.tool.name", "tool.name", "ai.toolCall.name") or span.name,
        own.text("gen_ai.tool.call.id", "ai.toolCall.id") or "",
        written(value.get("input")),
        written(output) if output is not None else None,
        True if span.error else flag if isinstance(flag, bool) else None,
    )


def _target(score: Mapping[str, Any], by_id: Mapping[str, Span], spans: list[Span]) -> Span | None:
    """The observation that a score is about; a score of a whole trace goes to the last call in it."""
    named = by_id.get(string(first(score, "observationId", "observation_id")))
    if named is not None and named.kind == "llm":
        return named
    trace = first(score, "traceId", "trace_id")
    calls = [span for span in spans if span.kind == "llm" and span.trace == trace]
    return max(calls, key=lambda span: span.start, default=None)


def _score(value: Mapping[str, Any]) -> Feedback:
    words = [string(first(value, "stringValue", "string_value")), string(value.get("comment"))]
    said = value.get("value")
    words[0] = words[0] or (said if isinstance(said, str) and number(said) is None else "")
    return Feedback(
        string(value.get("name")), number(said), ": ".join(w for w in words if w), string(value.get("source"))
    )
