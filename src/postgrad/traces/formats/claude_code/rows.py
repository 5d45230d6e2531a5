"""One row of a Claude Code session file, reduced to what traces need.

Rows change weekly, so nothing here trusts a type: what has an unexpected shape is kept as an opaque block. Of
`toolUseResult` only an agent's id is read: it is data for the user's screen, the model never saw it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from postgrad.core.message import Block, Media, Opaque, Reasoning, ResultStatus, Text, ToolCall

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
_REFUSED = ("doesn't want to proceed with this tool use", "doesn't want to take this action right now")
_INTERRUPT = "[Request interrupted by user"


@dataclass(frozen=True)
class Result:
    """A tool_result block: the provider's call id, the text that the model saw, flag and media."""

    provider_id: str
    text: str
    is_error: bool | None
    status: ResultStatus
    media: tuple[Media, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row. `kind` is its type (with subtype), `blocks` its message without tool results, `uuid` made up if absent."""

    number: int
    type: str
    subtype: str
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
    message: Mapping[str, Any]
    blocks: tuple[Block, ...]
    results: tuple[Result, ...]
    text: str

    @property
    def kind(self) -> str:
        """The format's word for the row."""
        return f"{self.type}:{self.subtype}" if self.subtype else self.type

    @property
    def role(self) -> Literal["step", "user", "event", "ui", "unknown"]:
        """What the row can be: part of a model's answer, context, an event, screen data, or a type not known."""
        if self.type == "assistant":
            return "event" if self.flags & {"synthetic", "isApiErrorMessage"} else "step"
        if self.type == "user":
            return "ui" if "isVisibleInTranscriptOnly" in self.flags else "user"
        if self.type in EVENT_TYPES or self.subtype in EVENT_SUBTYPES:
            return "event"
        return "ui" if self.type in UI_TYPES or self.type == "system" else "unknown"

    @property
    def interrupt(self) -> bool:
        """Whether the application says here that the user pressed stop. Quoted text in an answer or result is none."""
        first = next((block.text for block in self.blocks if isinstance(block, Text)), "")
        return self.type == "user" and not self.results and first.startswith(_INTERRUPT)

    @property
    def answer(self) -> str:
        """Rows with an equal value are one answer of the model."""
        return _text(self.message.get("id")) or self.uuid


_FLAGS = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")


def parse_row(number: int, value: Mapping[str, Any]) -> Row:
    """Read one JSON object of the file. Never fails: the file is foreign."""
    raw = value.get("message")
    message: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    blocks, results = _content(_said(value, message))
    flags = {name for name in _FLAGS if value.get(name) is True}
    if message.get("model") == "<synthetic>":
        flags.add("synthetic")
    given = value.get("attachment")
    attachment: Mapping[str, Any] = given if isinstance(given, dict) else {}
    extra = value.get("toolUseResult")
    return Row(
        number=number,
        type=_text(value.get("type")) or "?",
        subtype=_text(value.get("subtype")) or _text(attachment.get("type")) or "",
        uuid=_text(value.get("uuid")) or f"line-{number}",
        parent=_text(value.get("parentUuid")),
        logical_parent=_text(value.get("logicalParentUuid")),
        session=_text(value.get("sessionId")),
        agent=_text(value.get("agentId")),
        spawned=_text(extra.get("agentId")) if isinstance(extra, dict) else None,
        sidechain=value.get("isSidechain") is True,
        flags=frozenset(flags),
        time=_text(value.get("timestamp")),
        version=_text(value.get("version")),
        message={key: message[key] for key in ("id", "model", "stop_reason", "usage") if key in message},
        blocks=blocks,
        results=results,
        text=_event_text(value, blocks),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _said(value: Mapping[str, Any], message: Mapping[str, Any]) -> object:
    """The content of a row: its message's, its own, or what was typed while the model worked."""
    attachment = value.get("attachment")
    if isinstance(attachment, dict):
        typed = attachment.get("commandMode") in (None, "prompt")
        return attachment.get("prompt") if attachment.get("type") == "queued_command" and typed else None
    return message.get("content") if message else value.get("content")


def _event_text(value: Mapping[str, Any], blocks: tuple[Block, ...]) -> str:
    """What an event says: visible text, else the attachment or error as JSON."""
    visible = "".join(block.text for block in blocks if isinstance(block, Text))
    words = visible or _text(value.get("permissionMode")) or _text(value.get("mode"))
    data = value.get("attachment") or value.get("error") or value.get("compactMetadata") or value.get("hookErrors")
    return words or (json.dumps(data, ensure_ascii=False) if data else "")


def _content(content: object) -> tuple[tuple[Block, ...], tuple[Result, ...]]:
    """Blocks and tool results of a message's content, which may be a string, a block, a list (of lists) or null."""
    blocks: list[Block] = []
    results: list[Result] = []
    for part in _flat(content):
        if isinstance(part, str):
            blocks += [Text(part)] if part else []
        elif isinstance(part, dict) and part.get("type") == "tool_result":
            results.append(_result(part))
        else:
            blocks.append(_block(part))
    return tuple(blocks), tuple(results)


def _flat(content: object) -> list[Any]:
    if isinstance(content, list):
        return [part for item in content for part in _flat(item)]
    return [] if content is None else [content]


def _block(part: object) -> Block:
    if not isinstance(part, dict):
        return Opaque("value", part)
    kind = _text(part.get("type")) or "?"
    text = part.get(kind) if kind in ("text", "thinking") else None
    if kind == "text" and isinstance(text, str):
        return Text(text)
    if kind == "thinking" and isinstance(text, str):
        return Reasoning(text, signature=_text(part.get("signature")))
    if kind == "redacted_thinking":
        return Reasoning(encrypted=_text(part.get("data")))
    if kind == "tool_use" and isinstance(part.get("name"), str):
        return _call(part)
    if kind in ("image", "document") and (media := _media(part)):
        return media
    return Opaque(kind, part)


def _call(part: Mapping[str, Any]) -> ToolCall:
    """The file holds arguments as an object; a string (seen in rewritten files) is parsed as one."""
    value = part.get("input")
    raw = value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)
    return ToolCall.from_raw(id=_text(part.get("id")) or "", name=str(part["name"]), raw=raw)


def _media(part: Mapping[str, Any]) -> Media | None:
    source = part.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("data"), str):
        return None
    try:
        data = base64.b64decode(source["data"], validate=False)
    except (binascii.Error, ValueError):
        return None
    return Media(_text(source.get("media_type")) or "application/octet-stream", hashlib.sha256(data).hexdigest())


def _result(part: Mapping[str, Any]) -> Result:
    blocks, _ = _content(part.get("content"))
    media = tuple(block for block in blocks if isinstance(block, Media))
    texts = [_shown(block) for block in blocks]
    flag = part.get("is_error")
    is_error = flag if isinstance(flag, bool) else None
    text = "\n".join(texts)
    return Result(_text(part.get("tool_use_id")) or "", text, is_error, _status(text, is_error), media)


def _shown(block: Block) -> str:
    """A result block as text; media stand as a mark, their bytes stay in the raw layer."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Media):
        return f"[{block.mime} sha256:{block.sha256}]"
    return json.dumps(block.raw, ensure_ascii=False) if isinstance(block, Opaque) else ""


def _status(text: str, is_error: bool | None) -> ResultStatus:
    """Only a flagged result can be a refusal or a stop: the same words in a good result are content."""
    if is_error is not True:
        return "ok"
    if any(words in text for words in _REFUSED):
        return "rejected"
    if text.startswith(_INTERRUPT):
        return "interrupted"
    return "cascade" if "Sibling tool call errored" in text else "error"
