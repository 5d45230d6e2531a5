"""OpenInference's attributes (`llm.input_messages.<i>.message...`), flat or nested, as the messages that they spell."""

from __future__ import annotations

from typing import Any

from postgrad.core.message import Tool
from postgrad.traces.formats.otel.tree import Attributes
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import first, items, mapping, mappings, opened, string
from postgrad.traces.formats.shapes.said import Said
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import turns

_IMAGE = "message_content.image.image.url"


def context(own: Attributes) -> list[Said] | None:
    """What the model was given, None where it was not captured."""
    listed = own.under("llm.input_messages")
    if isinstance(listed, list):
        return [said for item in listed for said in turns(_message(mapping(item)))]
    prompts = own.get("llm.prompts") or own.under("llm.prompts")
    if prompts is not None:
        texts = [first(mapping(item), "prompt.text", "text") or item for item in items(opened(prompts))]
        return turns([mapping(item.get("prompt")).get("text") if isinstance(item, dict) else item for item in texts])
    value = own.get("input.value")
    return turns(value) if value is not None else None


def answer(own: Attributes) -> list[Said]:
    """What the model answered."""
    listed = own.under("llm.output_messages")
    if isinstance(listed, list):
        said = answers([_message(mapping(item)) for item in listed])
        whole = opened(own.get("output.value"))
        ends = [item.finish for item in answers(whole)] if isinstance(whole, dict) else []
        finish = ends[0] if len(ends) == 1 else None
        return [Said(item.role, item.parts, item.finish or finish, item.agent) for item in said]
    choices = own.under("llm.choices")
    if isinstance(choices, list):
        return answers([string(mapping(mapping(item).get("completion")).get("text")) for item in choices])
    return answers(own.get("output.value"))


def offered(own: Attributes) -> tuple[Tool, ...]:
    """The tools on offer."""
    listed = own.under("llm.tools")
    schemas = [first(mapping(mapping(item).get("tool")), "json_schema") for item in items(listed)]
    given = tools([schema for schema in schemas if schema is not None])
    return given or tools(mapping(opened(own.get("llm.invocation_parameters"))).get("tools"))


def params(own: Attributes) -> dict[str, Any]:
    """The sampling parameters, tools left out."""
    given = mapping(opened(own.get("llm.invocation_parameters")))
    return {key: value for key, value in given.items() if key not in ("tools", "messages", "functions")}


def usage(own: Attributes) -> dict[str, Any]:
    """Tokens, in and out named as the GenAI conventions name them."""
    counts = {key.removeprefix("llm.token_count."): v for key, v in own.values.items() if "llm.token_count." in key}
    named = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
    return {named.get(key, key): value for key, value in counts.items() if value is not None}


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """One message in the shape of a chat completion."""
    inner = mapping(item.get("message")) or item
    message: dict[str, Any] = {key: inner[key] for key in ("role", "content", "tool_call_id", "name") if key in inner}
    contents = inner.get("contents")
    if isinstance(contents, list):
        message["content"] = [_content(mapping(mapping(part).get("message_content"))) for part in contents]
    calls = [mapping(mapping(call).get("tool_call")) for call in mappings(inner.get("tool_calls"))]
    if calls:
        message["tool_calls"] = calls
    if name := inner.get("function_call_name"):
        message["function_call"] = {"name": name, "arguments": inner.get("function_call_arguments_json", "")}
    return message


def _content(part: dict[str, Any]) -> dict[str, Any]:
    image = mapping(mapping(part.get("image")).get("image")).get("url")
    if isinstance(image, str):
        return {"type": "image_url", "image_url": {"url": image}}
    return {"type": "text", **part} if "text" in part else part
