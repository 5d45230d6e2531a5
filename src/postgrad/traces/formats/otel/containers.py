"""`raw_spans(value)`: the spans and log records in a piece of JSON, whatever it came out of.

    OTLP, Tempo      {"resourceSpans" | "batches": [{"resource", "scopeSpans" | "instrumentationLibrarySpans": [...]}]}
    OTLP logs        {"resourceLogs": [{"resource", "scopeLogs": [{"logRecords": [...]}]}]}
    Jaeger           {"data": [{"traceID", "spans": [{"spanID", "references", "tags", "logs"}], "processes"}]}
    SDK, console     {"name", "context": {"trace_id", "span_id"}, "parent_id" | "parent", "attributes", "events"}
    JavaScript SDK   {"name", "spanContext": {"traceId", "spanId"}, "parentSpanId" | "parentSpanContext", "startTime"}
    Phoenix          the SDK's form with "span_kind" and "status_code"; as table rows with "context.span_id",
    "attributes.…" bare             an object of attributes

Ids are made equal over containers: hexadecimal, without "0x"; OTLP's base64 and the SDK's integers are turned into it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from postgrad.traces.formats.shapes.plain import first, mapping, mappings, seconds, string

RESOURCES = ("resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs")
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "ilSpans", "scopeLogs", "scope_logs")
_OWN = ("gen_ai.", "llm.", "openinference.", "ai.operationId", "traceloop.", "gcp.vertex.agent.")
_HEX = re.compile(r"(0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})\Z")


@dataclass
class RawSpan:
    """A span before its attributes are understood. Times are in seconds since 1970."""

    record: int
    id: str = ""
    trace: str = ""
    parent: str = ""
    name: str = ""
    start: float = 0.0
    end: float = 0.0
    time: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: bool = False
    message: str = ""
    scope: str = ""
    resource: dict[str, Any] = field(default_factory=dict)
    is_log: bool = False
    body: Any = None
    annotations: list[dict[str, Any]] = field(default_factory=list)


def raw_spans(value: object, record: int) -> Iterator[RawSpan]:
    """All spans and log records in `value`, in order; nothing for JSON of another kind."""
    if isinstance(value, list):
        for item in value:
            yield from raw_spans(item, record)
        return
    if not isinstance(value, dict):
        return
    found = [key for key in RESOURCES if isinstance(value.get(key), list)]
    for key in found:
        for resource in mappings(value[key]):
            yield from raw_spans(resource, record)
    if not found:
        yield from _inner(value, record)


def _inner(value: dict[str, Any], record: int) -> Iterator[RawSpan]:
    scopes = next((value[key] for key in SCOPES if isinstance(value.get(key), list)), None)
    if scopes is not None:
        resource = attributes(mapping(value.get("resource")).get("attributes"))
        for scope in mappings(scopes):
            name = string(mapping(first(scope, "scope", "instrumentationLibrary")).get("name"))
            for span in mappings(scope.get("spans")):
                yield _otlp(span, record, name, resource)
            for log in mappings(first(scope, "logRecords", "log_records")):
                yield _log(log, record, name, resource)
    elif isinstance(value.get("processes"), dict) and isinstance(value.get("spans"), list):
        for item in mappings(value["spans"]):
            yield _jaeger(item, record, value["processes"])
    elif (
        isinstance(spans := first(value, "spans", "data", "trace", "result"), list | dict) and "attributes" not in value
    ):
        yield from raw_spans(spans, record)
    elif "spanID" in value and "operationName" in value:
        yield _jaeger(value, record, {})
    elif "startTimeUnixNano" in value and isinstance(value.get("attributes", []), list):
        yield _otlp(value, record, "", {})
    elif (bare := _sdk(value, record)) is not None:
        yield bare


def attributes(value: object) -> dict[str, Any]:
    """Attributes as an object, from OTLP's or Jaeger's list of keys and values or from an object."""
    if isinstance(value, dict):
        return dict(value)
    return {string(item.get("key")): _any(item.get("value")) for item in mappings(value)}


def _any(value: object) -> Any:
    """OTLP's AnyValue; what is none stays as it is (Jaeger)."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    (kind, inner), *_ = value.items()
    name = kind.replace("_", "").lower()
    if name == "intvalue" and isinstance(inner, str) and inner.lstrip("-").isdigit():
        return int(inner)
    if name in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue", "intvalue"):
        return inner
    if name == "arrayvalue":
        listed = mapping(inner).get("values")
        return [_any(item) for item in listed] if isinstance(listed, list) else []
    return attributes(mapping(inner).get("values", [])) if name == "kvlistvalue" else value


def _id(value: object, *, digits: int = 16) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value & (1 << 4 * digits) - 1:0{digits}x}"
    if not isinstance(value, str) or not value:
        return ""
    if found := _HEX.match(value):
        return found[2].lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value
    return raw.hex() if len(raw) in (8, 16) else value


def _otlp(span: Mapping[str, Any], record: int, scope: str, resource: dict[str, Any]) -> RawSpan:
    status = mapping(span.get("status"))
    start = first(span, "startTimeUnixNano", "start_time_unix_nano")
    return RawSpan(
        record,
        _id(first(span, "spanId", "span_id")),
        _id(first(span, "traceId", "trace_id"), digits=32),
        _id(first(span, "parentSpanId", "parent_span_id")),
        string(span.get("name")),
        seconds(start) or 0.0,
        seconds(first(span, "endTimeUnixNano", "end_time_unix_nano")) or 0.0,
        start,
        attributes(span.get("attributes")),
        [(string(e.get("name")), attributes(e.get("attributes"))) for e in mappings(span.get("events"))],
        status.get("code") in (2, "2", "STATUS_CODE_ERROR", "ERROR"),
        string(status.get("message")),
        scope,
        resource,
    )


def _log(log: Mapping[str, Any], record: int, scope: str, resource: dict[str, Any]) -> RawSpan:
    own = attributes(log.get("attributes"))
    body = _any(log.get("body"))
    name = first(log, "eventName", "event_name") or first(own, "event.name") or (body if isinstance(body, str) else "")
    time = first(log, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano")
    return RawSpan(
        record,
        _id(first(log, "spanId", "span_id")),
        _id(first(log, "traceId", "trace_id"), digits=32),
        name=string(name),
        start=seconds(time) or seconds(own.get("event.timestamp")) or 0.0,
        time=time or own.get("event.timestamp"),
        attributes=own,
        scope=scope,
        resource=resource,
        is_log=True,
        body=body,
    )


def _jaeger(span: Mapping[str, Any], record: int, processes: Mapping[str, Any]) -> RawSpan:
    """Times are in microseconds; the parent is the reference CHILD_OF."""
    tags = attributes(span.get("tags"))
    parents = [r for r in mappings(span.get("references")) if r.get("refType") == "CHILD_OF"]
    process = mapping(processes.get(string(span.get("processID"))))
    start, duration = span.get("startTime"), span.get("duration")
    begin = seconds(start) or 0.0
    fields = [attributes(log.get("fields")) for log in mappings(span.get("logs"))]
    return RawSpan(
        record,
        _id(span.get("spanID")),
        _id(span.get("traceID"), digits=32),
        _id(parents[0].get("spanID")) if parents else _id(span.get("parentSpanID")),
        string(span.get("operationName")),
        begin,
        begin + (duration / 1e6 if isinstance(duration, int | float) else 0.0),
        start,
        tags,
        [(string(first(event, "event", "name", "message")), event) for event in fields],
        tags.get("otel.status_code") == "ERROR" or tags.get("error") in (True, "true"),
        string(tags.get("otel.status_description")),
        string(first(tags, "otel.scope.name", "otel.library.name")),
        {"service.name": process.get("serviceName"), **attributes(process.get("tags"))},
    )


def _sdk(value: Mapping[str, Any], record: int) -> RawSpan | None:
    """A span as an SDK or Phoenix prints it, or bare attributes."""
    if "context.span_id" in value:
        value = _unfolded(value)
    own = value.get("attributes")
    if not isinstance(own, dict):
        bare = any(key.startswith(_OWN) for key in value)
        return RawSpan(record, name=string(value.get("name")), attributes=dict(value)) if bare else None
    context = mapping(first(value, "context", "spanContext", "span_context"))
    parent = first(value, "parent_id", "parentId", "parentSpanId", "parent_span_id", "parent", "parentSpanContext")
    if isinstance(parent, dict):
        parent = first(parent, "span_id", "spanId")
    status = value.get("status")
    code = first(mapping(status), "status_code", "code") if isinstance(status, dict) else value.get("status_code")
    start = first(value, "start_time", "startTime", "start_timestamp", "start_time_unix_nano", "start_time_ns")
    own_id, trace = first(value, "span_id", "spanId", "id"), first(value, "trace_id", "traceId")
    return RawSpan(
        record,
        _id(first(context, "span_id", "spanId") or own_id),
        _id(first(context, "trace_id", "traceId") or trace, digits=32),
        _id(parent),
        string(first(value, "name", "span_name")),
        seconds(start) or 0.0,
        seconds(first(value, "end_time", "endTime", "end_timestamp", "end_time_unix_nano", "end_time_ns")) or 0.0,
        start,
        {**own, **_span_kind(value)},
        [(string(e.get("name")), attributes(e.get("attributes"))) for e in mappings(value.get("events"))],
        str(code).rsplit(".", 1)[-1].rsplit("_", 1)[-1].lower() in ("error", "2"),
        string(first(mapping(status), "description", "message") or value.get("status_message")),
        string(mapping(first(value, "instrumentationScope", "instrumentation_scope", "scope")).get("name")),
        attributes(mapping(value.get("resource")).get("attributes")),
        annotations=mappings(first(value, "annotations", "span_annotations")),
    )


def _span_kind(value: Mapping[str, Any]) -> dict[str, Any]:
    """Phoenix lifts OpenInference's kind out of the attributes."""
    kind = value.get("span_kind")
    return {"openinference.span.kind": kind} if isinstance(kind, str) and kind else {}


def _unfolded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of Phoenix's table of spans as the span that it was."""
    prefix = "attributes."
    own = {key.removeprefix(prefix): item for key, item in row.items() if key.startswith(prefix) and item is not None}
    context = {"span_id": row.get("context.span_id"), "trace_id": row.get("context.trace_id")}
    rest = {key: item for key, item in row.items() if not key.startswith((prefix, "context."))}
    return {**rest, "context": context, "attributes": own}
