"""Inspect's chat messages, calls and scores as postgrad's.

    message     {"role", "content": str | parts, "tool_calls", "tool_call_id", "function", "error", "source"}
    part        text, reasoning{reasoning, summary, signature, redacted}, image, audio, video, document, data, tool_use
    call        {"id", "function", "arguments": object, "parse_error"}
    error       {"type": "parsing" | "timeout" | "approval" | "cancelled" | ..., "message"}

Long strings stand elsewhere, under ``attachment://HASH`` (older: ``tc://HASH``); `Attachments` puts them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from postgrad.core.message import Block, Opaque, Reasoning, ResultStatus, Role, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback
from postgrad.traces.formats.atif.trajectory import RAW
from postgrad.traces.formats.content import shown
from postgrad.traces.formats.shapes.parts import parts
from postgrad.traces.formats.shapes.plain import mapping, mappings, number, string, text, written
from postgrad.traces.formats.shapes.said import RawResult, Said

_PROTOCOLS = ("attachment://", "tc://")
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_STATUS: dict[str, ResultStatus] = {"approval": "rejected", "cancelled": "interrupted"}
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@dataclass
class Attachments:
    """The strings that stand elsewhere in a sample; `missing` are references that lead nowhere."""

    texts: Mapping[str, Any]
    missing: set[str] = field(default_factory=set)

    def resolve(self, value: Any) -> Any:
        """`value` with every reference replaced by what it stands for; one that leads nowhere stays visible."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return {key: self.resolve(item) for key, item in value.items()} if isinstance(value, dict) else value

    def _text(self, value: str) -> str:
        for protocol in _PROTOCOLS:
            if value.startswith(protocol):
                found = self.texts.get(value.removeprefix(protocol))
                if isinstance(found, str):
                    return found
                self.missing.add(value)
        return value


def read_message(value: Mapping[str, Any], raw: Mapping[str, str] | None = None) -> Said:
    """One message; `raw` has the argument strings of its calls, by their ids, where the API's own answer is logged."""
    role = string(value.get("role"))
    blocks = _content(value.get("content"))
    if role == "tool":
        result = read_result(value)
        media = tuple(block for block in blocks if not isinstance(block, Text))
        return Said(
            "tool", [RawResult(string(value.get("tool_call_id")), result.call_id, result.text, result.is_error, media)]
        )
    if role not in _ROLES:
        return Said("user", [Opaque(f"role {role}", dict(value))])
    calls = [read_call(call, raw or {}) for call in mappings(value.get("tool_calls"))]
    return Said(cast(Role, role), [*blocks, *calls])


def read_call(value: Mapping[str, Any], raw: Mapping[str, str]) -> ToolCall:
    """A call. Inspect stores arguments parsed; where that failed there is a `parse_error`, with or without the text."""
    key, name = string(value.get("id")), string(value.get("function"))
    arguments = value.get("arguments")
    error = text(value.get("parse_error"))
    if error and isinstance(arguments, dict) and arguments.keys() == {RAW}:
        arguments = arguments[RAW]
    call = ToolCall.from_raw(id=key, name=name, raw=raw.get(key, written(arguments)))
    if error and call.parse_error is None:
        return ToolCall(key, name, call.arguments_raw, None, error)
    return call


def read_result(value: Mapping[str, Any]) -> ToolResult:
    """A tool message or event: `call_id` is the tool's name. An error without content is told by its message."""
    error = mapping(value.get("error"))
    if not error and isinstance(value.get("tool_error"), str):
        error = {"type": "unknown", "message": value["tool_error"]}
    content = value.get("content") if "content" in value else value.get("result")
    said = shown(_content(content)) or string(error.get("message"))
    failed = bool(error) or value.get("failed") is True
    status: ResultStatus = _STATUS.get(string(error.get("type")), "error") if failed else "ok"
    return ToolResult(string(value.get("function")), said, failed, status)


def read_score(name: str, value: object) -> Feedback:
    """A score: a grade (C, P, I, N), a number, a truth value, or something that has no one number."""
    score = mapping(value)
    graded = score.get("value") if score else value
    figure = float(graded) if isinstance(graded, bool) else number(graded) if not isinstance(graded, str) else None
    figure = _GRADES.get(graded.strip()) if isinstance(graded, str) and graded.strip() in _GRADES else figure
    told = [written(graded) if figure is None else "", string(score.get("explanation")) or string(score.get("answer"))]
    return Feedback("score", figure, "; ".join(part for part in told if part), name)


def raw_arguments(event: Mapping[str, Any]) -> dict[str, str]:
    """Call id -> argument string, of a model event that holds the API's own response (OpenAI's two APIs)."""
    response = mapping(mapping(event.get("call")).get("response"))
    found = {}
    for choice in mappings(response.get("choices")):
        for call in mappings(mapping(choice.get("message")).get("tool_calls")):
            found[string(call.get("id"))] = mapping(call.get("function")).get("arguments")
    for item in mappings(response.get("output")):
        if item.get("type") == "function_call":
            found[string(item.get("call_id"))] = item.get("arguments")
    return {key: raw for key, raw in found.items() if key and isinstance(raw, str)}


def _content(content: object) -> list[Block]:
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "reasoning":
            blocks.append(_reasoning(part))
        elif isinstance(part, dict) and part.get("type") == "tool_use":
            blocks.append(Opaque("tool_use", part))  # the provider ran it itself, its result is in it
        else:
            blocks += [block for block in parts(part) if not isinstance(block, RawResult)]
    return blocks


def _reasoning(part: Mapping[str, Any]) -> Reasoning:
    said, signature = string(part.get("reasoning")), text(part.get("signature"))
    if part.get("redacted") is True:
        return Reasoning(string(part.get("summary")), signature, text(said))
    return Reasoning(said or string(part.get("summary")), signature)
