"""MLflow traces: {"info", "data": {"spans"}} (one, a list, or JSON lines), of versions 2 and 3.

Spans are OTel's, with ids in hexadecimal or base64; what MLflow says about them is in attributes named `mlflow.*`,
whose values are JSON texts. A step is a span of the type CHAT_MODEL or LLM. Assessments are feedback; an expectation in
them is the answer that was wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.trace import Feedback
from postgrad.traces.formats.otel.containers import RawSpan, raw_spans
from postgrad.traces.formats.otel.understand import understood
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import (
    first,
    mapping,
    mappings,
    moment,
    number,
    opened,
    settings,
    string,
    text,
    written,
)
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import turns
from postgrad.traces.formats.spans.export import Export, opening
from postgrad.traces.formats.spans.span import LLMCall, Span, SpanKind, ToolRun
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_KINDS: dict[str, SpanKind] = {"CHAT_MODEL": "llm", "LLM": "llm", "TOOL": "tool", "AGENT": "agent"}
_LISTS = ("data.spans", "spans")
_DATA = frozenset(
    {"messages", "tools", "functions", "input", "prompt", "prompts", "contents", "system", "instructions"}
)


@dataclass(frozen=True)
class MLflow:
    """Reader of MLflow traces."""

    format: str = "mlflow"

    def recognises(self, head: Head) -> bool:
        """A trace with spans that have MLflow's attributes."""
        return any(_is_ours(raw) for value in opening(head, _LISTS) for raw, _ in _raw(value, 0))

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        export = Export(path, _places, _LISTS)
        about = mapping(mapping(export.envelope).get("info"))
        found: list[tuple[RawSpan, dict[str, Any]]] = []
        for item in export.items():
            own = _raw(item.value, item.number)
            found += ((raw, about) for raw in raw_spans(item.value, item.number)) if item.place else own
        spans = [_span(raw, info) for raw, info in found]
        _assess(spans, {string(_trace_id(info)): info for _, info in found})
        return export.result(self.format, spans, app="mlflow")


def _places(document: object) -> list[str]:
    """The list of traces, or of the spans of one trace."""
    if isinstance(document, list):
        return [""]
    inside = mapping(mapping(document).get("data")).get("spans")
    lists = {"data.spans": inside, "spans": mapping(document).get("spans")}
    return [place for place, value in lists.items() if isinstance(value, list)]


def _raw(value: object, record: int) -> Iterator[tuple[RawSpan, dict[str, Any]]]:
    """The spans of a trace with what is known about the trace; they may be texts of JSON."""
    if not isinstance(value, dict):
        return
    info = mapping(first(value, "info", "trace_info")) or {
        key: value[key] for key in ("trace_id", "assessments") if key in value
    }
    spans = first(mapping(opened(value.get("data"))), "spans") or opened(value.get("spans"))
    for item in spans if isinstance(spans, list) else []:
        for raw in raw_spans(opened(item), record):
            yield raw, info


def _is_ours(raw: RawSpan) -> bool:
    return any(key.startswith("mlflow.") for key in raw.attributes)


def _trace_id(info: Mapping[str, Any]) -> Any:
    return first(info, "trace_id", "request_id")


def _span(raw: RawSpan, info: Mapping[str, Any]) -> Span:
    """What `mlflow.*` says; where a span has the conventions' attributes as well, they fill the gaps."""
    own = {key: _said(value) for key, value in raw.attributes.items() if key.startswith("mlflow.")}
    span = understood(raw)
    span.trace = string(_trace_id(info)) or string(own.get("mlflow.traceRequestId")) or span.trace
    span.kind = _KINDS.get(string(own.get("mlflow.spanType")), span.kind if span.kind != "llm" else "other")
    span.time = span.time or moment(raw.time)
    given, taken = own.get("mlflow.spanInputs"), own.get("mlflow.spanOutputs")
    known, span.call = span.call, None
    if span.kind == "llm":
        span.call = _call(own, given, taken)
        if known is not None:
            span.call.fill(known)
    elif span.kind == "tool":
        span.tool = _tool(span, given, taken)
    return span


def _said(value: object) -> Any:
    """Attributes are texts of JSON, a bare string as well."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return value if too_deep(found) else opened(found)


def _call(own: Mapping[str, Any], given: object, taken: object) -> LLMCall:
    inputs = mapping(given)
    invocation = mapping(opened(own.get("mlflow.invocation_params")))
    said = own.get("mlflow.chat.messages")
    context = turns(given) if given is not None else turns(said)[:-1] if said is not None else None
    return LLMCall(
        context,
        answers(taken),
        tools(own.get("mlflow.chat.tools")) or tools(inputs.get("tools")) or tools(invocation.get("tools")),
        settings({**invocation, **inputs}, data=_DATA),
        text(own.get("mlflow.llm.model")) or text(mapping(taken).get("model")) or text(inputs.get("model")),
        mapping(own.get("mlflow.chat.tokenUsage")) or mapping(mapping(taken).get("usage")),
        text(mapping(taken).get("id")),
    )


def _tool(span: Span, given: object, taken: object) -> ToolRun:
    """A tool's output may be a tool message of LangChain, or the tool's own value."""
    output = mapping(taken).get("content") if "tool_call_id" in mapping(taken) else taken
    key = string(mapping(taken).get("tool_call_id")) or string(mapping(given).get("id"))
    shown = written(output) if output is not None else span.error or None
    flag = True if span.error or mapping(taken).get("status") == "error" else None
    return ToolRun(span.name, key, written(given), shown, flag)


def _assess(spans: list[Span], infos: Mapping[str, Mapping[str, Any]]) -> None:
    """Give every assessment to the call that it names, else to the last one of its trace."""
    for trace, info in infos.items():
        calls = sorted((s for s in spans if s.kind == "llm" and s.trace == trace), key=lambda span: span.start)
        for item in mappings(info.get("assessments")):
            named = [span for span in calls if span.id and span.id == item.get("span_id")]
            for span in (named or calls)[-1:]:
                span.feedback += (_feedback(item),)


def _feedback(item: Mapping[str, Any]) -> Feedback:
    kind = "expectation" if item.get("expectation") is not None else string(first(item, "assessment_name", "name"))
    value = mapping(first(item, "feedback", "expectation")).get("value")
    score = float(value) if isinstance(value, bool) else number(value)
    words = [written(value) if score is None else "", string(item.get("rationale"))]
    source = string(mapping(item.get("source")).get("source_type"))
    return Feedback(kind, score, "\n".join(word for word in words if word), source)
