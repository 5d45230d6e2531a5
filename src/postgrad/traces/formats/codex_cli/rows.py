"""One row of a Codex rollout: `{timestamp, type, payload}`, or, in the oldest files, the payload alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Row:
    """A row. `item` is the payload's own type: of a response item what it is, of an event which one."""

    number: int
    type: str
    payload: Mapping[str, Any]
    time: str | None
    ordinal: int | None

    @property
    def item(self) -> str:
        """The payload's type; a message of the oldest files may lack it."""
        return text(self.payload.get("type")) or ("message" if "role" in self.payload else "")

    @property
    def kind(self) -> str:
        """The format's word for the row."""
        return f"{self.type}:{self.item}" if self.item and self.type in ("response_item", "event_msg") else self.type

    @property
    def is_model(self) -> bool:
        """Whether the row is part of an answer of the model."""
        if self.type != "response_item":
            return False
        return self.item in MODEL_ITEMS or (self.item == "message" and self.payload.get("role") == "assistant")

    @property
    def is_context(self) -> bool:
        """Whether the row ends an answer: another response item, or the history's replacement."""
        return self.type == "compacted" or (
            self.type == "response_item" and not self.is_model and self.item != "ghost_snapshot"
        )


def parse_row(number: int, value: Mapping[str, Any]) -> Row:
    """Read one JSON object of the file. Never fails: the file is foreign."""
    time, payload = text(value.get("timestamp")), value.get("payload")
    ordinal = value["ordinal"] if isinstance(value.get("ordinal"), int) else None
    if isinstance(payload, dict) and isinstance(value.get("type"), str):
        return Row(number, value["type"], payload, time, ordinal)
    if "record_type" in value:
        return Row(number, "state", value, time, ordinal)
    if text(value.get("type")) in ITEMS or "role" in value:
        return Row(number, "response_item", value, time, ordinal)
    if is_bare_meta(value):
        return Row(number, "session_meta", value, time, ordinal)
    return Row(number, text(value.get("type")) or "?", mapping(payload), time, ordinal)


def is_bare_meta(value: Mapping[str, Any]) -> bool:
    """Whether it is the first line of the oldest files: a session's id, time, instructions and git state."""
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value and "role" not in value
