"""One row of a Codex rollout: `{timestamp, type, payload}`, or, in the oldest files, the payload alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from postgrad.traces.formats.shapes.plain import mapping, text

MODEL_ITEMS = frozenset(
    {
        *("reasoning", "function_call", "custom_tool_call", "local_shell_call", "tool_search_call"),
        *("web_search_call", "image_generation_call"),
    }
)
"""What a model writes in an answer, beside its messages."""
OUTPUT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
ITEMS = MODEL_ITEMS | OUTPUT_ITEMS | {"message", "ghost_snapshot", "compaction", "context_compaction", "agent_message"}
ROW_TYPES = frozenset(
    {
        *("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"),
        *("inter_agent_communication", "inter_agent_communication_metadata"),
    }
)


class Row(msgspec.Struct, frozen=True):
    """A row.

    `item` is the payload's own type: of a response item what it is, of an event which one; a message of the oldest
    files may lack it. `is_model`: it is part of an answer of the model.
    """

    number: int
    type: str
    payload: Mapping[str, Any]
    time: str | None
    ordinal: int | None
    item: str
    is_model: bool

    @property
    def kind(self) -> str:
        """The format's word for the row."""
        if not self.item or self.type not in ("response_item", "event_msg"):
            return self.type
        return _kind(self.type, self.item)

    @property
    def is_context(self) -> bool:
        """Whether the row ends an answer: another response item, or the history's replacement."""
        return self.type == "compacted" or (
            self.type == "response_item" and not self.is_model and self.item != "ghost_snapshot"
        )


@lru_cache(maxsize=256)
def _kind(type: str, item: str) -> str:
    return f"{type}:{item}"


def parse_row(number: int, value: Mapping[str, Any]) -> Row:
    """Read one JSON object of the file. Never fails: the file is foreign."""
    kind, payload = _parted(value)
    item = text(payload.get("type")) or ("message" if "role" in payload else "")
    answers = item in MODEL_ITEMS or (item == "message" and payload.get("role") == "assistant")
    ordinal = value.get("ordinal")
    ordinal = ordinal if isinstance(ordinal, int) else None
    is_model = kind == "response_item" and answers
    return Row(number, kind, payload, text(value.get("timestamp")), ordinal, item, is_model)


def _parted(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The type of a row and its payload."""
    payload = value.get("payload")
    if isinstance(payload, dict) and isinstance(value.get("type"), str):
        return value["type"], payload
    if "record_type" in value:
        return "state", value
    if text(value.get("type")) in ITEMS or "role" in value:
        return "response_item", value
    if is_bare_meta(value):
        return "session_meta", value
    return text(value.get("type")) or "?", mapping(payload)


def is_bare_meta(value: Mapping[str, Any]) -> bool:
    """Whether it is the first line of the oldest files: a session's id, time, instructions and git state."""
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value and "role" not in value
