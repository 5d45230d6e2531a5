"""One message of a Goose session: its parts as blocks, results and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from postgrad.core.message import Block, ToolCall
from postgrad.traces.conversation import Conversation
from postgrad.traces.formats.content import Answered, answered, call, read_content
from postgrad.traces.formats.shapes.plain import mapping, mappings, moment, opened, string, text, written

_PARTS = frozenset(
    {
        *("toolRequest", "toolResponse", "toolConfirmationRequest", "frontendToolRequest", "redactedThinking"),
        *("contextLengthExceeded", "summarizationRequested", "conversationCompacted", "systemNotification"),
    }
)
_EVENTS = {
    "contextLengthExceeded": "api_error",
    "summarizationRequested": "compaction_request",
    "conversationCompacted": "compaction",
    "systemNotification": "notification",
    "toolConfirmationRequest": "approval",
}


@dataclass(frozen=True)
class Said:
    """A message: record, role, parts, time, id, and what `metadata` says of who sees it now."""

    number: int
    role: str
    parts: list[Any]
    time: str | None
    id: str | None
    shown_to: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, value: object) -> Said:
        """A message as JSON."""
        row = mapping(value)
        parts = row.get("content")
        listed = parts if isinstance(parts, list) else [parts] if parts is not None else []
        return cls(
            number,
            string(row.get("role")),
            listed,
            moment(row.get("created")),
            text(row.get("id")),
            mapping(row.get("metadata")),
        )

    @classmethod
    def of_row(cls, number: int, row: Mapping[str, Any]) -> Said:
        """A row of the database."""
        value = {
            "role": row.get("role"),
            "content": opened(row.get("content_json")),
            "created": row.get("created_timestamp", row.get("timestamp")),
            "id": row.get("message_id"),
            "metadata": opened(row.get("metadata_json")),
        }
        return cls.of(number, value)

    @property
    def hidden(self) -> bool:
        """Whether the model does not see it now."""
        return self.shown_to.get("agentVisible") is False


def _types(row: Mapping[str, Any]) -> set[object]:
    return {string(part.get("type")) for part in mappings(row.get("content"))}


def are_messages(rows: Sequence[object]) -> bool:
    """Whether most of these are messages with a time in `created`."""
    listed = [mapping(row) for row in rows]
    ours = [row for row in listed if row.get("role") in ("user", "assistant") and isinstance(row.get("content"), list)]
    return bool(ours) and len(ours) * 2 > len(listed) and all("created" in row for row in ours)


def own_parts(row: Mapping[str, Any]) -> bool:
    """Whether a message has a part of a type that only Goose writes."""
    return bool(_PARTS & _types(row))


def read_part(talk: Conversation, number: int, part: object, blocks: list[Block], results: list[Answered]) -> None:
    """Put a part where it belongs: what was said, results, or an event."""
    value = mapping(part)
    kind = string(value.get("type"))
    if kind in ("toolRequest", "frontendToolRequest"):
        blocks.append(_request(value))
    elif kind == "toolResponse":
        results.append(_response(value))
    elif kind in _EVENTS:
        talk.event(_EVENTS[kind], number, string(value.get("msg")) or string(value.get("toolName")))
    else:
        blocks += read_content([part]).blocks


def _request(part: Mapping[str, Any]) -> Block:
    made = mapping(part.get("toolCall"))
    value = mapping(made.get("value")) or made
    if made.get("status") == "error" or not isinstance(value.get("name"), str):
        error = written(made.get("error")) or "the call could not be parsed"
        return ToolCall(string(part.get("id")), string(value.get("name")), written(made.get("value")), None, error)
    return call(value["name"], value.get("arguments"), id=part.get("id"))


def _response(part: Mapping[str, Any]) -> Answered:
    came = mapping(part.get("toolResult"))
    if came.get("status") == "error":
        return answered(part.get("id"), written(came.get("error")), is_error=True)
    value = came.get("value")
    inner = mapping(value)
    flag = inner.get("isError", inner.get("is_error"))
    content = inner.get("content", value) if inner else value
    is_error = flag if isinstance(flag, bool) else None
    return answered(part.get("id"), [_without_audience(item) for item in _listed(content)], is_error=is_error)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _without_audience(item: object) -> object:
    """Content that only the user saw is no part of the result; a resource is its text."""
    value = mapping(item)
    audience = mapping(value.get("annotations")).get("audience")
    if isinstance(audience, list) and audience and "assistant" not in audience:
        return None
    resource = mapping(value.get("resource"))
    return resource["text"] if isinstance(resource.get("text"), str) else item
