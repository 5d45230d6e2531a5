"""The output side of an LLM call in all known shapes, as one `Said` for every candidate.

A completion (`choices`), a message or a list of messages, Responses (`output`), Gemini (`candidates`, or one
`content`), LangChain (`generations`), `{"text", "finish_reason"}`, a list of calls, a text. Several messages that
all carry calls of their own are the parallel calls of one answer (Koog); else each is a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postgrad.core.message import Text
from postgrad.traces.formats.shapes.parts import call, parts
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, opened, text, written
from postgrad.traces.formats.shapes.said import Said
from postgrad.traces.formats.shapes.turns import is_call, message, turns


def answers(value: object) -> list[Said]:
    """The candidates in an output; empty when there is none."""
    value = opened(value)
    if value is None or value == "" or value == [] or value == {}:
        return []
    if isinstance(value, str):
        return [Said("assistant", [Text(value)])]
    if isinstance(value, list):
        return _candidates(value)
    return _object(value) if isinstance(value, dict) else [Said("assistant", [Text(written(value))])]


def _object(value: dict[str, Any]) -> list[Said]:
    if isinstance(choices := value.get("choices"), list) and choices:
        return [said for choice in mappings(choices) for said in _choice(choice)]
    if isinstance(candidates := value.get("candidates"), list) and candidates:
        return [said for choice in mappings(candidates) for said in _choice(choice)]
    if isinstance(generations := value.get("generations"), list) and generations:
        listed = generations[0] if isinstance(generations[0], list) else generations
        return [said for item in mappings(listed) for said in _generation(item)]
    if isinstance(output := value.get("output"), list) and output and "role" not in value:
        return _one(turns(output, role="assistant"), text(value.get("status")))
    if (said := message(value)) is not None:
        return _one(said, None)
    for key in ("messages", "output", "message", "response", "result"):
        if value.get(key) is not None:
            return _finished(answers(value[key]), value)
    if is_call(value):
        return [Said("assistant", [call(value)])]
    content = value.get("content")
    if isinstance(content, dict) and "parts" in content:
        return [Said("assistant", parts(content["parts"]), _finish(value))]
    said_text = first(value, "text", "content", "completion", "output_text")
    if isinstance(said_text, str | list) and said_text:
        calls = first(value, "tool_calls", "toolCalls")
        return [Said("assistant", [*parts(said_text), *(call(item) for item in mappings(calls))], _finish(value))]
    if value.keys() <= {"usage", "usage_metadata", "finish_reason", "status", "llm_output"}:
        return []
    return [Said("assistant", [Text(written(value))])]


def _choice(choice: dict[str, Any]) -> list[Said]:
    inner = first(choice, "message", "delta", "content", "text")
    if isinstance(inner, dict) and "role" not in inner:
        inner = {**inner, "role": "assistant"}
    return _finished(answers(inner) or [Said("assistant")], choice)


def _generation(item: dict[str, Any]) -> list[Said]:
    """LangChain: the message where there is one; a plain completion has a text only."""
    about = {**mapping(item.get("generation_info")), **mapping(item.get("generationInfo"))}
    found = message(mapping(item.get("message"))) or [Said("assistant", parts(item.get("text")))]
    return _finished(_one(found, None), about)


def _candidates(value: list[Any]) -> list[Said]:
    items = [opened(item) for item in value]
    if all(isinstance(item, dict) and is_call(item) for item in items):
        return [Said("assistant", [call(item) for item in items])]
    if len(items) == 1 and isinstance(items[0], dict | list):
        return answers(items[0])
    said = [item for item in turns(items, role="assistant") if item.role == "assistant"]
    if len(said) > 1 and _parallel(said):
        return _one(said, None)
    return said


def _parallel(said: list[Said]) -> bool:
    ids = [part.id or part.arguments_raw for item in said for part in item.calls]
    return all(item.calls or not item.parts for item in said) and len(set(ids)) == len(ids)


def _one(said: list[Said], finish: str | None) -> list[Said]:
    """All the assistant's messages as one answer."""
    own = [item for item in said if item.role == "assistant"]
    if not own:
        return [Said("assistant", [*item.parts], item.finish) for item in said[-1:]]
    ends = [item.finish for item in own if item.finish]
    return [Said("assistant", [part for item in own for part in item.parts], next(iter(ends), finish), own[0].agent)]


def _finish(value: Mapping[str, Any]) -> str | None:
    reason = first(value, "finish_reason", "finishReason", "stop_reason", "stopReason")
    return text(mapping(reason).get("finish_reason") if isinstance(reason, dict) else reason)


def _finished(said: list[Said], value: Mapping[str, Any]) -> list[Said]:
    finish = _finish(value)
    return [Said(item.role, item.parts, item.finish or finish, item.agent) for item in said]
