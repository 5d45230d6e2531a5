"""`Logged`: one request with its response, out of whatever envelope it was written in.

pairs            {"request" | "kwargs", "response"}, {"messages", ..., "response"}, {"request_body", "response_body"}
claude-tap       {"request": {"method", "path", "headers", "body"}, "response": {"status", "body", "sse_events"}}
claude-trace     {"request": {"url", "body"}, "response": {"status_code", "body" | "body_raw"}, "logged_at"}
HAR              an entry with "startedDateTime"
VCR              an interaction: {"request": {"uri", "body"}, "response": {"body": {"string"}}}
mock servers     {"method", "path", "status", "body", "response"}
batch files      {"custom_id", "body" | "params"} and {"custom_id", "response" | "result"}, joined by `reader`
LiteLLM          {"call_type", "messages", "response", "model_parameters", "status"}
stored answers   {"object": "chat.completion" | "response", ...}, with or without "messages"
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from postgrad.traces.formats.shapes.plain import first, mapping, mappings, moment, opened, string, text

_CHUNK = "chat.completion.chunk"
_STORED = ("chat.completion", "response", "message", "text_completion")
_PAIRS = (
    *(("request", "response"), ("kwargs", "response"), ("request_body", "response_body"), ("req", "resp")),
    *(("reqPayload", "respPayload"), ("request", "error"), ("kwargs", "error")),
)
_RESPONSE = frozenset({"choices", "error", "output", "candidates", "messages", "body", "stop_reason", "type", "done"})
_TRANSPORT = frozenset({"method", "url", "uri", "path", "headers", "postData"})


@dataclass(frozen=True)
class Logged:
    """A request and its response as JSON; `request` None: it was not recorded. `transport`: HTTP was recorded."""

    request: dict[str, Any] | None
    response: Any
    path: str = ""
    time: str | None = None
    error: str = ""
    custom_id: str = ""
    transport: bool = False
    whole: Mapping[str, Any] = field(default_factory=dict)


def logged(value: object) -> Logged | None:
    """The exchange in one record, None if it holds none."""
    if not isinstance(value, dict):
        return None
    time = _time(value)
    if isinstance(value.get("custom_id"), str):
        return _batch(value, value["custom_id"], time)
    if isinstance(value.get("call_type"), str) and "messages" in value and "response" in value:
        return _litellm(value, time)
    for asked, answered in _PAIRS:
        if asked in value and answered in value:
            return _pair(value, value[asked], value[answered], time)
    if isinstance(value.get("method"), str) and "status" in value and "response" in value:
        body = opened(first(value, "body", "requestBody"))
        path = string(first(value, "path", "url"))
        return Logged(
            _object(body), value["response"], path, time, _error(value["status"], value), transport=True, whole=value
        )
    if isinstance(value.get("messages"), list) and ("response" in value or "error" in value):
        return Logged(dict(value), value.get("response"), time=time, error=string(value.get("error")), whole=value)
    if value.get("object") in _STORED or (value.get("type") == "message" and "stop_reason" in value):
        asked = "messages" if isinstance(value.get("messages"), list) else "input"
        request = {asked: value[asked]} if isinstance(value.get(asked), list | str) else None
        return Logged(request, value, time=time, whole=value)
    return None


def is_chunk(value: object) -> bool:
    """Whether a row is one chunk of a streamed chat completion."""
    return isinstance(value, dict) and value.get("object") == _CHUNK and isinstance(value.get("choices"), list)


def _pair(value: dict[str, Any], asked: object, answered: object, time: str | None) -> Logged | None:
    request = opened(asked)
    if not isinstance(request, dict):
        return None
    inner = opened(_body(request))
    over_http = bool(_TRANSPORT & request.keys()) and "messages" not in request and "input" not in request
    body = _object(inner) if inner is not None else None if over_http else request
    response = unfolded(answered)
    status = first(mapping(response), "status", "status_code", "statusCode")
    path = string(first(request, "path", "url", "uri"))
    error = first(value, "error", "error_message")
    time = time or moment(first(request, "timestamp", "time"))
    return Logged(
        body,
        _answer(response),
        path,
        time,
        string(error) or _error(status, mapping(response)),
        transport=over_http,
        whole=value,
    )


def _body(request: Mapping[str, Any]) -> Any:
    """The body of an HTTP request: JSON, its text, a HAR's `postData`, or a cassette's bytes."""
    if isinstance(post := request.get("postData"), dict):
        return first(post, "text", "json")
    body = request.get("body")
    if isinstance(body, dict) and body.keys() <= {"string", "encoding", "base64_string"}:
        return body_text(first(body, "string", "base64_string"), coded="base64_string" in body)
    return body_text(body) if isinstance(body, bytes) else body


def _answer(response: object) -> Any:
    """The body of an HTTP response, else the response itself."""
    if not isinstance(response, dict):
        return response
    if isinstance(events := response.get("sse_events"), list) and events:
        return [opened(first(event, "data", "event")) if _wraps(event) else event for event in mappings(events)]
    content = response.get("content")
    if isinstance(content, dict) and ("text" in content or "mimeType" in content):
        return body_text(content.get("text"), coded=content.get("encoding") == "base64")
    if "choices" in response or "output" in response or response.get("type") == "message" or "candidates" in response:
        return response
    body = first(response, "body", "body_raw", "bodyRaw", "parsed_body")
    if isinstance(body, dict) and body.keys() <= {"string", "encoding", "base64_string"}:
        return body_text(first(body, "string", "base64_string"), coded="base64_string" in body)
    return body_text(body) if body is not None else response


def unfolded(response: object) -> Any:
    """A response that was kept as its JSON text; an answer that happens to be JSON is a text."""
    inner = opened(response)
    if isinstance(response, str) and not (isinstance(inner, dict) and inner.keys() & _RESPONSE):
        return (
            inner if isinstance(inner, list) and any(mapping(item).keys() & _RESPONSE for item in inner) else response
        )
    return inner


def _wraps(event: Mapping[str, Any]) -> bool:
    return isinstance(opened(event.get("data")), dict)


def body_text(value: object, *, coded: bool = False) -> Any:
    """A body as text: cassettes keep bytes, also compressed ones; HAR files base64."""
    if coded and isinstance(value, str):
        try:
            value = base64.b64decode(value)
        except (binascii.Error, ValueError):
            return value
    if not isinstance(value, bytes):
        return value
    if value[:2] == b"\x1f\x8b":
        try:
            value = gzip.decompress(value)
        except (OSError, EOFError, zlib.error):
            return None
    return value.decode("utf-8", "surrogateescape")


def _batch(value: dict[str, Any], id: str, time: str | None) -> Logged | None:
    asked = first(value, "body", "params")
    if isinstance(asked, dict) and "response" not in value:
        path = string(value.get("url")) or ("/v1/messages" if "params" in value else "")
        return Logged(asked, None, path, time, custom_id=id, whole=value)
    response, result = value.get("response"), value.get("result")
    if isinstance(result, dict):
        kind = string(result.get("type"))
        error = (
            ""
            if kind == "succeeded"
            else string(mapping(mapping(result.get("error")).get("error")).get("message")) or kind
        )
        return Logged(None, result.get("message"), time=time, error=error, custom_id=id, whole=value)
    if isinstance(response, dict) or value.get("error"):
        status = mapping(response).get("status_code")
        error = string(mapping(value.get("error")).get("message")) or _error(status, mapping(response))
        return Logged(None, mapping(response).get("body"), time=time, error=error, custom_id=id, whole=value)
    return None


def _litellm(value: dict[str, Any], time: str | None) -> Logged:
    """Messages and response are empty objects where their logging is off."""
    params = mapping(opened(value.get("model_parameters")))
    messages = opened(value.get("messages"))
    request = {"model": value.get("model"), **params, "messages": messages}
    if value["call_type"] in ("responses", "aresponses") and not isinstance(messages, list):
        request = {"model": value.get("model"), **params, "input": messages}
    failed = value.get("status") == "failure"
    error = text(value.get("error_str")) or string(mapping(value.get("error_information")).get("error_message"))
    response = opened(value.get("response"))
    return Logged(
        request if messages else {**request, "messages": None},
        response or None,
        time=time,
        error=(error or "failure") if failed else "",
        whole=value,
    )


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _error(status: object, value: Mapping[str, Any]) -> str:
    code = status if isinstance(status, int) else mapping(status).get("code")
    if not isinstance(code, int) or isinstance(code, bool) or code < 400:
        return ""
    body = mapping(opened(_answer(dict(value))))
    told = first(mapping(body.get("error")), "message") or body.get("error")
    return f"HTTP {code}: {told}" if isinstance(told, str) else f"HTTP {code}"


def _time(value: Mapping[str, Any]) -> str | None:
    stated = first(value, "time", "timestamp", "startedDateTime", "startTime", "logged_at", "recorded_at", "created_at")
    return moment(stated)
