"""Response items of a rollout: what the model wrote as blocks, what it was told as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

import msgspec

from postgrad.core.message import Block, Media, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from postgrad.traces.formats.codex_cli.outcome import Outcome, outcome
from postgrad.traces.formats.codex_cli.rows import MODEL_ITEMS, OUTPUT_ITEMS
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mappings, text, written

_ROLES = frozenset(get_args(Role))


class Output(msgspec.Struct, frozen=True):
    """What came back for a call: the provider's id, the text that the model saw, and what the text says about it."""

    call: str
    text: str
    outcome: Outcome
    media: tuple[Media, ...] = ()

    def result(self) -> ToolResult:
        """The result, under the provider's id."""
        return ToolResult(self.call, self.text, self.outcome.is_error, self.outcome.status)


def model_blocks(item: str, payload: Mapping[str, Any]) -> list[Block]:
    """The blocks of one item of an answer. Calls carry the provider's id."""
    if item == "message":
        return list(read_content(payload.get("content")).blocks)
    if item == "reasoning":
        return [_reasoning(payload)]
    name, key = text(payload.get("name")) or "", text(payload.get("call_id")) or text(payload.get("id")) or ""
    if item == "function_call":
        return [call(name, payload.get("arguments"), id=key)]
    if item == "custom_tool_call":
        return [ToolCall(key, name, written(payload.get("input")), None, "free text by design")]
    if item == "local_shell_call":
        return [call("local_shell", payload.get("action"), id=key)]
    if item == "tool_search_call":
        return [call("tool_search", payload.get("arguments"), id=key)]
    return [Opaque(item, dict(payload))]


def output(item: str, payload: Mapping[str, Any]) -> Output:
    """The result in an output item: a text, content parts, or the tools that were found."""
    content = payload.get("tools") if item == "tool_search_output" else payload.get("output")
    if isinstance(content, str):
        return Output(text(payload.get("call_id")) or "", content, outcome(content))
    parts = read_content(content if _is_content(content) else written(content)).blocks
    said = shown(parts)
    media = tuple(part for part in parts if isinstance(part, Media))
    return Output(text(payload.get("call_id")) or "", said, outcome(said), media)


def told(item: str, payload: Mapping[str, Any], record: int) -> Message:
    """A message to the model. An item of an unknown type stays whole."""
    if item != "message":
        return Message("user", (Opaque(item or "?", dict(payload)),), (record,))
    role = payload.get("role") if text(payload.get("role")) in _ROLES else "user"
    return Message(cast(Role, role), read_content(payload.get("content")).blocks, (record,))


def history(items: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Message]:
    """Items (with their record numbers) that are context and no steps: a copied or a replaced history."""
    messages: list[Message] = []
    answer: list[Block] = []
    records: list[int] = []
    for record, payload in items:
        item = text(payload.get("type")) or "message"
        is_model = item in MODEL_ITEMS or (item == "message" and payload.get("role") == "assistant")
        if not is_model and answer:
            messages.append(Message("assistant", tuple(answer), tuple(dict.fromkeys(records))))
            answer, records = [], []
        if is_model:
            answer += model_blocks(item, payload)
            records.append(record)
        elif item in OUTPUT_ITEMS:
            found = output(item, payload)
            messages.append(Message("tool", (found.result(), *found.media), (record,)))
        else:
            messages.append(told(item, payload, record))
    if answer:
        messages.append(Message("assistant", tuple(answer), tuple(dict.fromkeys(records))))
    return messages


def visible(message: Message) -> str:
    """The texts of a message, a line each."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


def _reasoning(payload: Mapping[str, Any]) -> Reasoning:
    """The raw thinking where it was logged, else its summary; what is encrypted is kept as it is."""
    raw, summary = mappings(payload.get("content")), mappings(payload.get("summary"))
    said = "\n\n".join(part for entry in raw or summary if (part := text(entry.get("text"))))
    return Reasoning(said, encrypted=text(payload.get("encrypted_content")))


def _is_content(value: object) -> bool:
    """Whether it is content parts, one or a list, and not data of the tool's own."""
    parts = value if isinstance(value, list) else [value]
    return bool(parts) and all(isinstance(part, dict) and str(part.get("type")).startswith("input_") for part in parts)
