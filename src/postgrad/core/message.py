"""`Message`, its ordered blocks, and `ToolCall`: what was said, with nothing thrown away.

Block order is kept (a model may think, speak and call in any order). A tool call keeps the provider's
argument string byte for byte beside the parsed object, because a broken string is evidence.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from postgrad.core.canonical import struct_id, too_deep

Role = Literal["system", "developer", "user", "assistant", "tool"]
ResultStatus = Literal["ok", "error", "rejected", "interrupted", "cascade", "pending"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Visible text."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", omit_defaults=True):
    """Thinking of the model; `signature` or `encrypted` is the provider's opaque part."""

    text: str = ""
    signature: str | None = None
    encrypted: str | None = None


def _no_json(word: str) -> None:
    """Python reads NaN and Infinity, which JSON does not have, and nobody else."""
    raise ValueError(f"{word} is no JSON")


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """One call. `id` is unique in its trace; `provider_id` is the provider's, which need not be."""

    id: str
    name: str
    arguments_raw: str
    arguments: dict[str, Any] | None = None
    parse_error: str | None = None
    provider_id: str | None = None

    @classmethod
    def from_raw(cls, *, id: str, name: str, raw: str, provider_id: str | None = None) -> ToolCall:
        """Parse an argument string; what does not parse to an object is kept with `parse_error`."""
        try:
            value = json.loads(raw, parse_constant=_no_json) if raw.strip() else {}
        except (ValueError, RecursionError) as error:
            return cls(id, name, raw, None, str(error), provider_id)
        if too_deep(value):
            return cls(id, name, raw, None, "arguments are nested too deeply", provider_id)
        if not isinstance(value, dict):
            return cls(id, name, raw, None, f"arguments are {type(value).__name__}, not an object", provider_id)
        return cls(id, name, raw, value, None, provider_id)


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What came back for one call. `is_error` None means that the source does not say."""

    call_id: str
    text: str
    is_error: bool | None = None
    status: ResultStatus = "ok"
    provider_id: str | None = None


class Media(msgspec.Struct, frozen=True, tag="media", omit_defaults=True):
    """An image, sound or document, by content hash; the bytes stay in the raw layer."""

    mime: str
    sha256: str
    uri: str | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque", rename={"type": "block_type"}):
    """A block of an unknown type, kept whole. In JSON its `type` is called `block_type`: `type` is the tag."""

    type: str
    raw: Any


Block = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


def _is_text(block: Block) -> bool:
    """Whether all that a block holds is text: then no number is in it that JSON does not have."""
    if type(block) is not ToolCall:
        return type(block) is not Opaque
    return block.arguments is None or all(type(value) is str for value in block.arguments.values())


class Message(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """One message: a role and ordered blocks; `records` are the raw records that it came from."""

    role: Role
    blocks: tuple[Block, ...]
    records: tuple[int, ...] = ()

    @classmethod
    def of(cls, role: Role, text: str) -> Message:
        """A message of one text block."""
        return cls(role, (Text(text),))

    @property
    def id(self) -> str:
        """Content id over role and blocks; where it was read from does not count."""
        kept = vars(self)  # functools.cached_property takes a lock, and every message of every context is asked
        if "id" not in kept:
            kept["id"] = struct_id([self.role, self.blocks], may_hold_nan=not all(map(_is_text, self.blocks)))
        found: str = kept["id"]
        return found

    @property
    def text(self) -> str:
        """The visible text blocks, joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))


class Tool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as offered to the model; `parameters` is a JSON schema of type object, `inferred` if made from calls."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    inferred: bool = False
