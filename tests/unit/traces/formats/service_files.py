"""One small agent run, written down the way every service and recorder writes it.

The run: the user asks for the weather in Oslo; the model calls `weather`; the tool says "Rain"; the model answers. So
every form gives two steps, one call, one result.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

TRACE, ROOT, CALL1, RUN, CALL2 = "a" * 32, "1" * 16, "2" * 16, "3" * 16, "4" * 16
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Weather in Oslo?"}
ARGUMENTS = '{"city": "Oslo"}'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Looks out", "parameters": SCHEMA}}]
ASKED: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "Rain"}
SAID = {"role": "assistant", "content": "It rains."}
NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z in nanoseconds


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Request/response logs


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "r", "object": "chat.completion", "model": "m", "choices": [choice], **more}


CHAT_REQUESTS = [
    {"model": "m", "messages": [SYSTEM, USER], "tools": TOOLS},
    {"model": "m", "messages": [SYSTEM, USER, ASKED, RESULT], "tools": TOOLS},
]
CHAT_RESPONSES = [completion(ASKED, "tool_calls"), completion(SAID)]
CHAT = [{"request": q, "response": a} for q, a in zip(CHAT_REQUESTS, CHAT_RESPONSES, strict=True)]

_TOOL_USE = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
_TOOL_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Rain"}]}
_ANTHROPIC = {
    "model": "m",
    "max_tokens": 9,
    "system": "Be brief.",
    "tools": [{"name": "weather", "input_schema": SCHEMA}],
}
ANTHROPIC_REQUESTS = [
    {**_ANTHROPIC, "messages": [USER]},
    {
        **_ANTHROPIC,
        "messages": [
            USER,
            {"role": "assistant", "content": [_TOOL_USE]},
            {"role": "user", "content": [{**_TOOL_RESULT, "is_error": False}]},
        ],
    },
]
ANTHROPIC_RESPONSES: list[dict[str, Any]] = [
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [_TOOL_USE],
        "stop_reason": "tool_use",
    },
    {
        **{"id": "m2", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"},
        "content": [{"type": "text", "text": "It rains."}],
    },
]
ANTHROPIC = [{"request": q, "response": a} for q, a in zip(ANTHROPIC_REQUESTS, ANTHROPIC_RESPONSES, strict=True)]

_FUNCTION_CALL = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS}
_RESPONSE = {"object": "response", "status": "completed", "model": "m"}
_RESPONSE_TOOLS = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
RESPONSES: list[dict[str, Any]] = [
    {
        "request": {"model": "m", "instructions": "Be brief.", "input": "Weather in Oslo?", "tools": _RESPONSE_TOOLS},
        "response": {**_RESPONSE, "id": "resp_1", "output": [_FUNCTION_CALL]},
    },
    {
        "request": {
            **{"model": "m", "instructions": "Be brief.", "tools": _RESPONSE_TOOLS, "previous_response_id": "resp_1"},
            "input": [{"type": "function_call_output", "call_id": "c1", "output": "Rain"}],
        },
        "response": {
            **{**_RESPONSE, "id": "resp_2"},
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]}
            ],
        },
    },
]

_PARAMS = {"tools": TOOLS, "temperature": 0.5}
LITELLM = [
    {
        **{"id": f"l{i}", "trace_id": "t", "call_type": "acompletion", "model": "m", "model_parameters": _PARAMS},
        **{"messages": q["messages"], "response": a, "status": "success", "startTime": 1767225600.0 + i},
    }
    for i, (q, a) in enumerate(zip(CHAT_REQUESTS, CHAT_RESPONSES, strict=True))
]


def har(requests: list[Any], responses: list[Any], url: str) -> dict[str, Any]:
    entries = [
        {
            "startedDateTime": f"2026-01-01T00:00:0{i}Z",
            "request": {"method": "POST", "url": url, "headers": [], "postData": {"text": json.dumps(asked)}},
            "response": {"status": 200, "content": {"mimeType": "application/json", "text": json.dumps(answered)}},
        }
        for i, (asked, answered) in enumerate(zip(requests, responses, strict=True))
    ]
    return {"log": {"version": "1.2", "entries": entries}}


CLAUDE_TAP = [
    {
        **{"timestamp": f"2026-01-01T00:00:0{i}Z", "request_id": f"q{i}", "turn": i, "duration_ms": 5},
        "request": {"method": "POST", "path": "/v1/messages", "headers": {"x-api-key": "***"}, "body": q},
        "response": {"status": 200, "headers": {}, "body": a, "sse_events": None},
    }
    for i, (q, a) in enumerate(zip(ANTHROPIC_REQUESTS, ANTHROPIC_RESPONSES, strict=True))
]


def anthropic_stream(message: dict[str, Any]) -> str:
    """The message as the events of a stream; arguments come in two pieces."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(message["content"]):
        start = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        if block["type"] == "tool_use":
            pieces = [ARGUMENTS[:5], ARGUMENTS[5:]]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        else:
            deltas = [{"type": "text_delta", "text": letter} for letter in block["text"]]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": {"output_tokens": 7}}
    events += [end, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


CLAUDE_TRACE = [
    {
        "request": {
            "timestamp": 1767225600.5 + i,
            "method": "POST",
            "url": "https://x/v1/messages",
            "headers": {},
            "body": q,
        },
        "response": {"timestamp": 1767225601.5, "status_code": 200, "headers": {}, "body_raw": anthropic_stream(a)},
        "logged_at": "2026-01-01T00:00:09Z",
    }
    for i, (q, a) in enumerate(zip(ANTHROPIC_REQUESTS, ANTHROPIC_RESPONSES, strict=True))
]

BATCH_INPUT = [
    {"custom_id": f"b{i}", "method": "POST", "url": "/v1/chat/completions", "body": q}
    for i, q in enumerate(CHAT_REQUESTS)
]
BATCH_OUTPUT = [
    {"id": f"o{i}", "custom_id": f"b{i}", "response": {"status_code": 200, "body": a}, "error": None}
    for i, a in enumerate(CHAT_RESPONSES)
]

MANAGED: list[dict[str, Any]] = [
    {"id": f"sevt_{i}", "processed_at": f"2026-01-01T00:00:0{i}Z", **event}
    for i, event in enumerate(
        [
            {"type": "user.message", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
            {"type": "span.model_request_start"},
            {"type": "agent.tool_use", "name": "weather", "input": {"city": "Oslo"}, "evaluated_permission": "allow"},
            {"type": "span.model_request_end", "model_usage": {"output_tokens": 7}, "is_error": False},
            {"type": "agent.tool_result", "tool_use_id": "sevt_2", "content": [{"type": "text", "text": "Rain"}]},
            {"type": "span.model_request_start"},
            {"type": "agent.message", "content": [{"type": "text", "text": "It rains."}]},
            {"type": "span.model_request_end", "model_usage": {"output_tokens": 3}, "is_error": False},
            {"type": "session.status_idle", "stop_reason": {"type": "end_turn"}},
        ]
    )
]


# Spans: (id, parent, name, start in seconds, attributes)


def genai_messages(*messages: dict[str, Any]) -> str:
    """Messages in the newest form of the GenAI conventions."""
    written: list[dict[str, Any]] = []
    for item in messages:
        if item["role"] == "tool":
            parts: list[dict[str, Any]] = [{"type": "tool_call_response", "id": "c1", "response": item["content"]}]
        elif item.get("tool_calls"):
            arguments = json.loads(item["tool_calls"][0]["function"]["arguments"])
            parts = [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": arguments}]
        else:
            parts = [{"type": "text", "content": item["content"]}]
        written.append({"role": item["role"], "parts": parts})
    return json.dumps(written)


_DEFINITIONS = json.dumps([{"type": "function", "name": "weather", "description": "Looks out", "parameters": SCHEMA}])


def _llm(given: list[dict[str, Any]], taken: dict[str, Any], tokens: int) -> dict[str, Any]:
    return {
        **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.request.temperature": 0.5},
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": genai_messages(*given),
        "gen_ai.output.messages": genai_messages(taken),
        "gen_ai.tool.definitions": _DEFINITIONS,
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.response.finish_reasons": ["stop"],
    }


_TOOL = {
    **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"},
    **{"gen_ai.tool.call.arguments": ARGUMENTS, "gen_ai.tool.call.result": "Rain"},
}
GENAI_SPANS = [
    (ROOT, "", "invoke_agent", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weatherman"}),
    (CALL1, ROOT, "chat m", 1, _llm([USER], ASKED, 10)),
    (RUN, ROOT, "execute_tool weather", 2, _TOOL),
    (CALL2, ROOT, "chat m", 3, _llm([USER, ASKED, RESULT], SAID, 20)),
]
Spans = list[tuple[str, str, str, int, dict[str, Any]]]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return {"stringValue": value}


def otlp(spans: Spans, *, error: str = "") -> dict[str, Any]:
    """OTLP in JSON; the span named `error` has failed."""
    written = [
        {
            **{"traceId": TRACE, "spanId": key, "parentSpanId": parent, "name": name, "kind": 1},
            **{"startTimeUnixNano": str(NS + start * 10**9), "endTimeUnixNano": str(NS + start * 10**9 + 5 * 10**8)},
            "attributes": [{"key": item, "value": _any(value)} for item, value in own.items()],
            "status": {"code": 2, "message": "it broke"} if key == error else {},
        }
        for key, parent, name, start, own in spans
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "app"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": written}]}]}


def tempo(spans: Spans) -> dict[str, Any]:
    """Tempo: the same under "batches", ids in base64."""
    (resource,) = otlp(spans)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    for span in scope["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode() if span[key] else ""
    return {"batches": [{"resource": resource["resource"], "instrumentationLibrarySpans": [{"spans": scope["spans"]}]}]}


def jaeger(spans: Spans) -> dict[str, Any]:
    written = [
        {
            **{"traceID": TRACE, "spanID": key, "operationName": name, "processID": "p1", "logs": []},
            "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": parent}] if parent else [],
            **{"startTime": NS // 1000 + start * 10**6, "duration": 500_000},
            "tags": [
                {"key": item, "type": "string", "value": json.dumps(value) if isinstance(value, list) else value}
                for item, value in own.items()
            ],
        }
        for key, parent, name, start, own in spans
    ]
    process = {"serviceName": "app", "tags": []}
    return {"data": [{"traceID": TRACE, "spans": written, "processes": {"p1": process}}], "total": 0}


def console(spans: Spans) -> list[dict[str, Any]]:
    """What the Python SDK's exporter to the console prints, a span an object."""
    return [
        {
            **{"name": name, "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{key}", "trace_state": "[]"}},
            **{"kind": "SpanKind.CLIENT", "parent_id": f"0x{parent}" if parent else None},
            **{"start_time": f"2026-01-01T00:00:0{start}.000000Z", "end_time": f"2026-01-01T00:00:0{start}.500000Z"},
            **{"status": {"status_code": "UNSET"}, "attributes": own, "events": [], "links": []},
            "resource": {"attributes": {"service.name": "app"}},
        }
        for key, parent, name, start, own in spans
    ]


def javascript(spans: Spans) -> list[dict[str, Any]]:
    """A span as the JavaScript SDK holds it: times are pairs of seconds and nanoseconds."""
    return [
        {
            **{"name": name, "spanContext": {"traceId": TRACE, "spanId": key}, "parentSpanId": parent or None},
            **{"startTime": [NS // 10**9 + start, 0], "endTime": [NS // 10**9 + start, 5 * 10**8]},
            **{"attributes": own, "status": {"code": 0}, "events": []},
        }
        for key, parent, name, start, own in spans
    ]


def openinference_attributes(given: list[dict[str, Any]], taken: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {
        **{"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 10},
        **{"llm.token_count.completion": 7, "llm.invocation_parameters": '{"temperature": 0.5}'},
        "llm.tools.0.tool.json_schema": json.dumps(TOOLS[0]),
    }
    for side, messages in (("input", given), ("output", [taken])):
        for place, item in enumerate(messages):
            at = f"llm.{side}_messages.{place}.message"
            own[f"{at}.role"] = item["role"]
            if item.get("content"):
                own[f"{at}.content"] = item["content"]
            if "tool_call_id" in item:
                own[f"{at}.tool_call_id"] = item["tool_call_id"]
            for nth, call in enumerate(item.get("tool_calls", ())):
                own[f"{at}.tool_calls.{nth}.tool_call.id"] = call["id"]
                own[f"{at}.tool_calls.{nth}.tool_call.function.name"] = call["function"]["name"]
                own[f"{at}.tool_calls.{nth}.tool_call.function.arguments"] = call["function"]["arguments"]
    return own


OPENINFERENCE_SPANS: Spans = [
    (ROOT, "", "agent", 0, {"openinference.span.kind": "AGENT", "agent.name": "weatherman"}),
    (CALL1, ROOT, "llm", 1, openinference_attributes([SYSTEM, USER], ASKED)),
    (
        *(RUN, ROOT, "weather", 2),
        {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": ARGUMENTS, "output.value": "Rain"},
    ),
    (CALL2, ROOT, "llm", 3, openinference_attributes([SYSTEM, USER, ASKED, RESULT], SAID)),
]


def phoenix(spans: Spans) -> list[dict[str, Any]]:
    """Phoenix: a flat form with the kind lifted out of the attributes."""
    rows = []
    for key, parent, name, start, own in spans:
        own = dict(own)
        rows.append(
            {
                **{"name": name, "context": {"trace_id": TRACE, "span_id": key}, "parent_id": parent or None},
                **{"span_kind": own.pop("openinference.span.kind"), "status_code": "OK", "status_message": ""},
                **{"start_time": f"2026-01-01T00:00:0{start}+00:00", "end_time": f"2026-01-01T00:00:0{start}.5+00:00"},
                **{"attributes": own, "events": []},
            }
        )
    return rows


# Services


def observation(id: str, kind: str, start: int, **more: Any) -> dict[str, Any]:
    return {
        **{"id": id, "traceId": "lf", "type": kind, "name": "n", "parentObservationId": "root", "level": "DEFAULT"},
        **{"startTime": f"2026-01-01T00:00:0{start}.000Z", "endTime": f"2026-01-01T00:00:0{start}.500Z"},
        **{"metadata": {}, "statusMessage": None, **more},
    }


LANGFUSE: dict[str, Any] = {
    "trace": {"id": "lf", "name": "run", "timestamp": "2026-01-01T00:00:00Z", "scores": []},
    "observations": [
        observation("root", "AGENT", 0, parentObservationId=None, input=None, output=None),
        observation(
            *("g1", "GENERATION", 1),
            **{"input": {"messages": [SYSTEM, USER], "tools": TOOLS}, "output": ASKED, "model": "m"},
            **{"modelParameters": {"temperature": 0.5}, "usageDetails": {"input": 10, "output": 7, "total": 17}},
        ),
        observation("t1", "TOOL", 2, name="weather", input={"city": "Oslo"}, output="Rain"),
        observation(
            *("g2", "GENERATION", 3),
            **{"input": {"messages": [SYSTEM, USER, ASKED, RESULT], "tools": TOOLS}, "output": SAID, "model": "m"},
        ),
    ],
}


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    """A message as LangChain writes its objects."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


_LC_GIVEN = [lc("SystemMessage", content="Be brief."), lc("HumanMessage", content="Weather in Oslo?")]
_LC_ASKED = lc("AIMessage", content="", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}])
_LC_RESULT = lc("ToolMessage", content="Rain", tool_call_id="c1", status="success", name="weather")
_EXTRA = {"invocation_params": {"model": "m", "temperature": 0.5, "tools": TOOLS}}
LANGSMITH: dict[str, list[dict[str, Any]]] = {
    "post": [
        {
            "id": "r0",
            "trace_id": "r0",
            "run_type": "chain",
            "name": "agent",
            "inputs": {"q": 1},
            "start_time": 1767225600000,
        },
        {
            **{
                "id": "r1",
                "trace_id": "r0",
                "parent_run_id": "r0",
                "run_type": "llm",
                "name": "ChatOpenAI",
                "extra": _EXTRA,
            },
            **{"inputs": {"messages": [_LC_GIVEN]}, "start_time": 1767225601000},
        },
        {
            **{"id": "r2", "trace_id": "r0", "parent_run_id": "r0", "run_type": "tool", "name": "weather"},
            **{"inputs": {"input": "{'city': 'Oslo'}"}, "outputs": {"output": _LC_RESULT}, "start_time": 1767225602000},
        },
        {
            **{
                "id": "r3",
                "trace_id": "r0",
                "parent_run_id": "r0",
                "run_type": "llm",
                "name": "ChatOpenAI",
                "extra": _EXTRA,
            },
            **{"inputs": {"messages": [[*_LC_GIVEN, _LC_ASKED, _LC_RESULT]]}, "start_time": 1767225603000},
            "outputs": {"generations": [[{"text": "It rains.", "message": lc("AIMessage", content="It rains.")}]]},
        },
    ],
    "patch": [
        {
            "id": "r1",
            "trace_id": "r0",
            "outputs": {"generations": [[{"text": "", "message": _LC_ASKED}]]},
            "end_time": 1,
        },
    ],
}


def _mlflow(id: str, parent: str | None, kind: str, start: int, given: Any, taken: Any, **more: Any) -> dict[str, Any]:
    own = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": taken, **more}
    return {
        **{
            "name": "weather" if kind == "TOOL" else "n",
            "context": {"span_id": id, "trace_id": TRACE},
            "parent_id": parent,
        },
        **{"start_time": NS + start * 10**9, "end_time": NS + start * 10**9 + 5, "status_code": "OK"},
        "attributes": {key: json.dumps(value) for key, value in own.items()},
    }


MLFLOW: dict[str, Any] = {
    "info": {"request_id": "tr-1", "status": "OK", "assessments": []},
    "data": {
        "spans": [
            _mlflow(ROOT, None, "AGENT", 0, {"q": 1}, None),
            _mlflow(CALL1, ROOT, "CHAT_MODEL", 1, CHAT_REQUESTS[0], CHAT_RESPONSES[0], **{"mlflow.chat.tools": TOOLS}),
            _mlflow(RUN, ROOT, "TOOL", 2, {"city": "Oslo"}, "Rain"),
            _mlflow(CALL2, ROOT, "CHAT_MODEL", 3, CHAT_REQUESTS[1], CHAT_RESPONSES[1]),
        ]
    },
}


def _weave(id: str, op: str, start: int, inputs: Any, output: Any, **more: Any) -> dict[str, Any]:
    return {
        **{"id": id, "trace_id": "w", "parent_id": None if id == "w0" else "w0", "inputs": inputs, "output": output},
        **{
            "op_name": f"weave:///me/project/op/{op}:abc",
            "started_at": f"2026-01-01T00:00:0{start}Z",
            "attributes": {},
        },
        **{"ended_at": f"2026-01-01T00:00:0{start}.5Z", "exception": None, "summary": {"status": "success"}, **more},
    }


WEAVE = [
    _weave("w0", "Agent.run", 0, {"q": 1}, "It rains."),
    _weave("w1", "openai.chat.completions.create", 1, CHAT_REQUESTS[0], CHAT_RESPONSES[0]),
    _weave("w2", "weather", 2, {"city": "Oslo"}, "Rain"),
    _weave("w3", "openai.chat.completions.create", 3, CHAT_REQUESTS[1], CHAT_RESPONSES[1]),
]

FILES: dict[str, tuple[str, str]] = {
    "openai_chat": ("chat.jsonl", jsonl(*CHAT)),
    "openai_responses": ("responses.jsonl", jsonl(*RESPONSES)),
    "anthropic_messages": ("anthropic.jsonl", jsonl(*ANTHROPIC)),
    "litellm": ("litellm.jsonl", jsonl(*LITELLM)),
    "http_log": ("tap.jsonl", jsonl(*CLAUDE_TAP)),
    "anthropic_managed_agents": ("managed.jsonl", jsonl(*MANAGED)),
    "otel_genai": ("otlp.json", json.dumps(otlp(GENAI_SPANS), indent=1)),
    "openinference": ("phoenix.jsonl", jsonl(*phoenix(OPENINFERENCE_SPANS))),
    "langfuse": ("langfuse.json", json.dumps(LANGFUSE, indent=1)),
    "langsmith": ("langsmith.json", json.dumps(LANGSMITH, indent=1)),
    "mlflow": ("mlflow.json", json.dumps(MLFLOW, indent=1)),
    "weave": ("weave.jsonl", jsonl(*WEAVE)),
}
"""A file of every format: its name and its text."""
