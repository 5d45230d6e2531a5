"""The GenAI conventions' attributes, of every generation, as the messages that they spell.

In the order in which they are asked, the first that says something wins:

    gen_ai.input.messages, gen_ai.output.messages      on the span, or on its event "...inference.operation.details"
    gen_ai.prompt.N.*, gen_ai.completion.N.*           OpenLLMetry
    ai.prompt.messages, ai.response.*                  Vercel AI SDK
    gcp.vertex.agent.llm_request, .llm_response        Agent Development Kit
    gen_ai.prompt, gen_ai.completion                   JSON, on the span or on the events gen_ai.content.*
    gen_ai.user.message, ..., gen_ai.choice            an event or a log record a message
    events, request_data, response_data                Logfire
    gen_ai.output, input, output                       any-agent and others
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from postgrad.core.message import Tool
from postgrad.traces.formats.otel.containers import RawSpan
from postgrad.traces.formats.otel.tree import Attributes
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, opened, text
from postgrad.traces.formats.shapes.said import Said
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import instructions, merged, turns

_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_PARAMS = {"gen_ai.request.": "", "ai.settings.": ""}
_USAGE = {
    **{"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"},
    **{"promptTokens": "input_tokens", "completionTokens": "output_tokens"},
    **{"inputTokens": "input_tokens", "outputTokens": "output_tokens"},
}


def context(own: Attributes, events: Iterable[tuple[str, dict[str, Any]]]) -> list[Said] | None:
    """What the model was given, None where it was not captured."""
    system = instructions(own.get("gen_ai.system_instructions"))
    events = list(events)
    for value in (
        own.get("gen_ai.input.messages"),
        *(details.get("gen_ai.input.messages") for _, details in events),
        own.under("gen_ai.prompt"),
        _vercel(own),
        _filled(own.get("gcp.vertex.agent.llm_request")),
        own.get("gen_ai.prompt"),
        *(details.get("gen_ai.prompt") for name, details in events if name == "gen_ai.content.prompt"),
    ):
        if value is not None:
            return system + merged(turns(value))
    spoken = [message for name, body in events if (message := _spoken(name, body)) is not None]
    if spoken:
        return system + turns(spoken)
    for value in (_logfire(own, asked=True), own.get("input", "gen_ai.input", "traceloop.entity.input")):
        if value is not None:
            return system + turns(value)
    return None


def answer(own: Attributes, events: Iterable[tuple[str, dict[str, Any]]]) -> list[Said]:
    """What the model answered: a candidate each."""
    events = list(events)
    choices = [_choice(body) for name, body in events if name == "gen_ai.choice"]
    for value in (
        own.get("gen_ai.output.messages"),
        *(details.get("gen_ai.output.messages") for _, details in events),
        own.under("gen_ai.completion"),
        _vercel_answer(own),
        _filled(own.get("gcp.vertex.agent.llm_response")),
        own.get("gen_ai.completion"),
        *(details.get("gen_ai.completion") for name, details in events if name == "gen_ai.content.completion"),
        {"choices": choices} if choices else None,
        _logfire(own, asked=False),
        own.get("gen_ai.output", "output", "traceloop.entity.output"),
    ):
        if value is not None and (found := answers(value)):
            return found
    return []


def offered(own: Attributes, events: Iterable[tuple[str, dict[str, Any]]]) -> tuple[Tool, ...]:
    """The tools on offer."""
    details = [body.get("gen_ai.tool.definitions") for _, body in events]
    request = mapping(opened(own.get("gcp.vertex.agent.llm_request")))
    parameters = mapping(opened(own.get("model_request_parameters")))
    logged = mapping(opened(own.get("request_data")))
    for value in (
        own.get("gen_ai.tool.definitions", "gen_ai.request.tools", "tools"),
        *details,
        own.under("llm.request.functions"),
        own.get("ai.prompt.tools"),
        mapping(request.get("config")).get("tools"),
        parameters.get("function_tools"),
        logged.get("tools"),
    ):
        if found := tools(value):
            return found
    return ()


def structured(own: Attributes) -> set[str]:
    """Tools whose call is the answer in a structured form (pydantic-ai)."""
    parameters = mapping(opened(own.get("model_request_parameters")))
    return {tool.name for tool in tools(parameters.get("output_tools"))}


def params(own: Attributes) -> dict[str, Any]:
    """The sampling parameters, as logged."""
    return {
        key.removeprefix(prefix): value
        for prefix in _PARAMS
        for key, value in own.values.items()
        if key.startswith(prefix) and value is not None and not key.endswith((".tools", ".model"))
    }


def usage(own: Attributes) -> dict[str, Any]:
    """Tokens under the newest names, whichever generation wrote them; the newest wins."""
    found: dict[str, Any] = {}
    for prefix in ("llm.usage.", "ai.usage.", "gen_ai.usage."):
        for key, value in own.values.items():
            if key.startswith(prefix) and value is not None:
                name = key.removeprefix(prefix)
                found[_USAGE.get(name, name)] = value
    return found


def finish(own: Attributes) -> str | None:
    """Why the model stopped."""
    reasons = opened(own.get("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"))
    stated = reasons[0] if isinstance(reasons, list) and reasons else reasons
    return text(stated) or own.text("ai.response.finishReason", "llm.response.finish_reason")


def log_bodies(logs: Iterable[RawSpan]) -> list[tuple[str, dict[str, Any]]]:
    """Log records of one span in the form of span events: their body is what an event keeps in its attributes."""
    return [(log.name, {**log.attributes, **mapping(opened(log.body))}) for log in logs]


def _filled(value: object) -> object:
    """The Agent Development Kit writes an empty object where content is not captured."""
    return None if value is None or opened(value) == {} else value


def _spoken(name: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """A message that was written as an event; its attributes are the message, some of them as JSON."""
    role = _MESSAGE_EVENTS.get(name)
    if role is None:
        return None
    inner = mapping(opened(first(body, "gen_ai.event.content", "event_body", "body"))) or body
    message = {"role": role, **{key: opened(v) if key == "tool_calls" else v for key, v in inner.items()}}
    key = first(inner, "id", "tool_call_id")
    return {**message, "tool_call_id": key, "id": None} if role == "tool" else message


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    inner = mapping(opened(first(body, "gen_ai.event.content", "event_body", "body"))) or body
    message = opened(inner.get("message"))
    if not isinstance(message, dict):
        message = {"content": message if message is not None else inner.get("content")}
    calls = opened(first(message, "tool_calls") or inner.get("tool_calls"))
    return {**inner, "message": {"role": "assistant", **message, "tool_calls": calls}}


def _vercel(own: Attributes) -> Any:
    given = own.get("ai.prompt.messages", "ai.prompt")
    return given if given is not None else None


def _vercel_answer(own: Attributes) -> Any:
    """The parts of an answer stand in attributes of their own."""
    said, calls = own.text("ai.response.text", "ai.result.text"), opened(own.get("ai.response.toolCalls"))
    thought, shaped = own.text("ai.response.reasoning"), own.get("ai.response.object", "ai.result.object")
    if said is None and shaped is not None:
        said = shaped if isinstance(shaped, str) else None
    if said is None and not calls and not thought:
        return None
    parts = [{"type": "reasoning", "text": thought}] if thought else []
    parts += [{"type": "text", "text": said}] if said else []
    parts += [{"type": "tool-call", **call} for call in mappings(calls)]
    return {"role": "assistant", "content": parts}


def _logfire(own: Attributes, *, asked: bool) -> Any:
    """Logfire's list of events in one attribute, or the request and the response of the SDK."""
    data = opened(own.get("request_data" if asked else "response_data"))
    if data is not None:
        return data
    events = mappings(opened(own.get("events")))
    if not events:
        return None
    choices = [event for event in events if event.get("event.name") == "gen_ai.choice"]
    rest = [event for event in events if event.get("event.name") != "gen_ai.choice"]
    spoken = [m for event in rest if (m := _spoken(str(event.get("event.name")), event)) is not None]
    if asked:
        return spoken or None
    return {"choices": [_choice(event) for event in choices]} if choices else None
