"""One row of a Claude Code session file, reduced to what traces need.

Rows change weekly, so nothing here trusts a type: what has an unexpected shape is kept as an opaque block. Of
`toolUseResult` only an agent's id is read: it is data for the user's screen, the model never saw it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from postgrad.core.message import Block, Text
from postgrad.traces.formats.claude_code.content import INTERRUPT, Result, as_json, read_content

UI_TYPES = frozenset(
    {
        *("summary", "progress", "file-history-snapshot", "file-history-delta", "ai-title"),
        *("custom-title", "agent-name", "last-prompt", "pr-link", "worktree-state", "bridge-session"),
    }
)
EVENT_TYPES = frozenset({"attachment", "queue-operation", "permission-mode", "mode"})
EVENT_SUBTYPES = frozenset(
    {
        *("api_error", "stop_hook_summary", "compact_boundary", "microcompact_boundary"),
        *("local_command", "scheduled_task_fire"),
    }
)
Role = Literal["step", "user", "event", "ui", "unknown"]


class Said(msgspec.Struct, frozen=True):
    """What an answer's message says beside its content. Only what has the expected type is here."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


NOTHING_SAID = Said()


class Row(msgspec.Struct, frozen=True):
    """A row. `blocks` is its message without tool results, `uuid` made up if absent, `words` what it says without one.

    `kind` is the format's word for it: type, and subtype if there is one. Only a step's row has a time.
    `role` is what it can be: part of a model's answer, context, an event, screen data, or a type not known.
    """

    number: int
    type: str
    subtype: str
    kind: str
    uuid: str
    parent: str | None
    logical_parent: str | None
    session: str | None
    agent: str | None
    spawned: str | None
    sidechain: bool
    flags: frozenset[str]
    time: str | None
    version: str | None
    message: Said
    blocks: tuple[Block, ...]
    results: tuple[Result, ...]
    role: Role
    words: object

    @property
    def text(self) -> str:
        """What the row says: visible text, else a mode, else its attachment or error as JSON."""
        visible = "".join(block.text for block in self.blocks if isinstance(block, Text))
        return visible or (self.words if isinstance(self.words, str) else as_json(self.words) if self.words else "")

    @property
    def interrupt(self) -> bool:
        """Whether the application says here that the user pressed stop. Quoted text in an answer or result is none."""
        if self.type != "user" or self.results:
            return False
        first = next((block.text for block in self.blocks if isinstance(block, Text)), "")
        return first.startswith(INTERRUPT)

    @property
    def answer(self) -> str:
        """Rows with an equal value are one answer of the model."""
        return self.message.id or self.uuid


_FLAGS = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
NO_FLAGS: frozenset[str] = frozenset()
_NOTHING: dict[str, Any] = {}


def parse_row(number: int, value: Mapping[str, Any]) -> Row:
    """Read one JSON object of the file. Never fails: the file is foreign."""
    get = value.get
    kind = _word(get("type")) or "?"
    if kind in UI_TYPES and _MORE.isdisjoint(value):
        return _screen_row(number, kind, value)
    raw, given, extra = get("message"), get("attachment"), get("toolUseResult")
    message: dict[str, Any] = raw if isinstance(raw, dict) else _NOTHING
    attachment: dict[str, Any] = given if isinstance(given, dict) else _NOTHING
    blocks, results = read_content(_said(value, message))
    flags = _flags(value, message)
    subtype = _text(get("subtype")) or _text(attachment.get("type")) or ""
    role = role_of(kind, subtype, flags)
    return Row(
        number,
        kind,
        subtype,
        sys.intern(f"{kind}:{subtype}") if subtype else kind,
        _text(get("uuid")) or f"line-{number}",
        _text(get("parentUuid")),
        _text(get("logicalParentUuid")),
        _word(get("sessionId")),
        _word(get("agentId")),
        _text(extra.get("agentId")) if isinstance(extra, dict) else None,
        get("isSidechain") is True,
        flags,
        _text(get("timestamp")) if role == "step" else None,
        _word(get("version")),
        _saying(message) if message and role == "step" else NOTHING_SAID,
        blocks,
        results,
        role,
        _words(value),
    )


_MORE = frozenset({"message", "attachment", "subtype", "toolUseResult"})


def _screen_row(number: int, kind: str, value: Mapping[str, Any]) -> Row:
    """A row for the user's screen: there are many, and of them only their place in the tree is of use."""
    get = value.get
    return Row(
        number,
        kind,
        "",
        kind,
        _text(get("uuid")) or f"line-{number}",
        _text(get("parentUuid")),
        _text(get("logicalParentUuid")),
        _word(get("sessionId")),
        _word(get("agentId")),
        None,
        get("isSidechain") is True,
        NO_FLAGS,
        None,
        _word(get("version")),
        NOTHING_SAID,
        (),
        (),
        "ui",
        None,
    )


_DATA = ("attachment", "error", "compactMetadata", "hookErrors")


def _saying(message: Mapping[str, Any]) -> Said:
    get = message.get
    usage, model, stop_reason = get("usage"), get("model"), get("stop_reason")
    return Said(
        _text(get("id")),
        sys.intern(model) if isinstance(model, str) else None,
        stop_reason if isinstance(stop_reason, str) else None,
        usage if isinstance(usage, dict) else None,
    )


def _flags(value: Mapping[str, Any], message: Mapping[str, Any]) -> frozenset[str]:
    found = [name for name in _FLAGS if value.get(name) is True]
    if message.get("model") == "<synthetic>":
        found.append("synthetic")
    return frozenset(found) if found else NO_FLAGS


def role_of(kind: str, subtype: str, flags: frozenset[str]) -> Role:
    """What a row of this type can be."""
    if kind == "assistant":
        return "event" if flags & {"synthetic", "isApiErrorMessage"} else "step"
    if kind == "user":
        return "ui" if "isVisibleInTranscriptOnly" in flags else "user"
    if kind in EVENT_TYPES or subtype in EVENT_SUBTYPES:
        return "event"
    return "ui" if kind in UI_TYPES or kind == "system" else "unknown"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _word(value: object) -> str | None:
    """A text that stands in thousands of rows: it is kept once."""
    return sys.intern(value) if isinstance(value, str) and value else None


def _said(value: Mapping[str, Any], message: Mapping[str, Any]) -> object:
    """The content of a row: its message's, its own, or what was typed while the model worked."""
    attachment = value.get("attachment")
    if isinstance(attachment, dict):
        typed = attachment.get("commandMode") in (None, "prompt")
        return attachment.get("prompt") if attachment.get("type") == "queued_command" and typed else None
    return message.get("content") if message else value.get("content")


def _words(value: Mapping[str, Any]) -> object:
    """What a row without a message says."""
    words = _text(value.get("permissionMode")) or _text(value.get("mode"))
    return words or next((value[name] for name in _DATA if value.get(name)), None)
