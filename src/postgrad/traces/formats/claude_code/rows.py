"""One row of a Claude Code session file, reduced to what traces need.

Rows change weekly, so nothing here trusts a type: what has an unexpected shape is kept as an opaque block. Of
`toolUseResult` only an agent's id is read: it is data for the user's screen, the model never saw it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

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
_JSON = json.JSONEncoder(ensure_ascii=False).encode
Role = Literal["step", "user", "event", "ui", "unknown"]


class Result(msgspec.Struct, frozen=True):
    """A tool_result block: the provider's call id, the text that the model saw, flag and media."""

    provider_id: str
    text: str
    is_error: bool | None
    status: ResultStatus
    media: tuple[Media, ...] = ()


class Row(msgspec.Struct, frozen=True):
    """A row. `blocks` is its message without tool results, `uuid` made up if absent, `words` what it says without one.

    `kind` is the format's word for it: type, and subtype if there is one.
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
    message: Mapping[str, Any]
    blocks: tuple[Block, ...]
    results: tuple[Result, ...]
    role: Role
    words: object

    @property
    def text(self) -> str:
        """What the row says: visible text, else a mode, else its attachment or error as JSON."""
        visible = "".join(block.text for block in self.blocks if isinstance(block, Text))
        return visible or (self.words if isinstance(self.words, str) else _JSON(self.words) if self.words else "")

    @property
    def interrupt(self) -> bool:
        """Whether the application says here that the user pressed stop. Quoted text in an answer or result is none."""
        if self.type != "user" or self.results:
            return False
        first = next((block.text for block in self.blocks if isinstance(block, Text)), "")
        return first.startswith(_INTERRUPT)

    @property
    def answer(self) -> str:
        """Rows with an equal value are one answer of the model."""
        return _text(self.message.get("id")) or self.uuid


_FLAGS = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
_NO_FLAGS: frozenset[str] = frozenset()
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
    blocks, results = _content(_said(value, message))
    flags = _flags(value, message)
    subtype = _text(get("subtype")) or _text(attachment.get("type")) or ""
    role = _role(kind, subtype, flags)
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
        _text(get("timestamp")),
        _word(get("version")),
        {key: message[key] for key in _KEPT if key in message} if message and role == "step" else _NOTHING,
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
        _NO_FLAGS,
        _text(get("timestamp")),
        _word(get("version")),
        _NOTHING,
        (),
        (),
        "ui",
        None,
    )


_DATA = ("attachment", "error", "compactMetadata", "hookErrors")
_KEPT = ("id", "model", "stop_reason", "usage")  # of an answer's message, beside what it says


def _flags(value: Mapping[str, Any], message: Mapping[str, Any]) -> frozenset[str]:
    found = [name for name in _FLAGS if value.get(name) is True]
    if message.get("model") == "<synthetic>":
        found.append("synthetic")
    return frozenset(found) if found else _NO_FLAGS


def _role(kind: str, subtype: str, flags: frozenset[str]) -> Role:
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
    if not isinstance(content, list):
        return [] if content is None else [content]
    if any(item is None or isinstance(item, list) for item in content):
        return [part for item in content for part in _flat(item)]
    return content


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
    key, name = _text(part.get("id")) or "", str(part["name"])
    if isinstance(value, dict):
        return ToolCall(key, name, _JSON(value), value)
    raw = value if isinstance(value, str) else _JSON({} if value is None else value)
    return ToolCall.from_raw(id=key, name=name, raw=raw)


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
    content, flag = part.get("content"), part.get("is_error")
    blocks, _ = _content(content) if not isinstance(content, str) else ((), ())
    media = tuple([block for block in blocks if isinstance(block, Media)])
    is_error = flag if isinstance(flag, bool) else None
    text = content if isinstance(content, str) else "\n".join([_shown(block) for block in blocks])
    return Result(_text(part.get("tool_use_id")) or "", text, is_error, _status(text, is_error), media)


def _shown(block: Block) -> str:
    """A result block as text; media stand as a mark, their bytes stay in the raw layer."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Media):
        return f"[{block.mime} sha256:{block.sha256}]"
    return _JSON(block.raw) if isinstance(block, Opaque) else ""


def _status(text: str, is_error: bool | None) -> ResultStatus:
    """Only a flagged result can be a refusal or a stop: the same words in a good result are content."""
    if is_error is not True:
        return "ok"
    if any(words in text for words in _REFUSED):
        return "rejected"
    if text.startswith(_INTERRUPT):
        return "interrupted"
    return "cascade" if "Sibling tool call errored" in text else "error"
