"""The content of a Claude Code message: ordered blocks, and the results of tools.

Nothing here trusts a type: what has an unexpected shape is kept as an opaque block.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from postgrad.core.message import Block, Media, Opaque, Reasoning, ResultStatus, Text, ToolCall

INTERRUPT = "[Request interrupted by user"
_REFUSED = ("doesn't want to proceed with this tool use", "doesn't want to take this action right now")
as_json = json.JSONEncoder(ensure_ascii=False).encode
"""JSON as the arguments of a call are kept in: the file has them as an object."""
_quoted = json.encoder.encode_basestring


class Result(msgspec.Struct, frozen=True):
    """A tool_result block: the provider's call id, the text that the model saw, flag and media."""

    provider_id: str
    text: str
    is_error: bool | None
    status: ResultStatus
    media: tuple[Media, ...] = ()


def read_content(content: object) -> tuple[tuple[Block, ...], tuple[Result, ...]]:
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
    kind = _word(part.get("type")) or "?"
    text = part.get(kind) if kind in ("text", "thinking") else None
    if kind == "text" and isinstance(text, str):
        return Text(text)
    if kind == "thinking" and isinstance(text, str):
        return Reasoning(text, signature=_word(part.get("signature")))
    if kind == "redacted_thinking":
        return Reasoning(encrypted=_word(part.get("data")))
    if kind == "tool_use" and isinstance(part.get("name"), str):
        return _call(part)
    if kind in ("image", "document") and (media := _media(part)):
        return media
    return Opaque(kind, part)


def _call(part: Mapping[str, Any]) -> ToolCall:
    """The file holds arguments as an object; a string (seen in rewritten files) is parsed as one."""
    value = part.get("input")
    key, name = _word(part.get("id")) or "", str(part["name"])
    if isinstance(value, dict):
        return ToolCall(key, name, arguments_json(value), value)
    raw = value if isinstance(value, str) else as_json({} if value is None else value)
    return ToolCall.from_raw(id=key, name=name, raw=raw)


def arguments_json(value: dict[str, Any]) -> str:
    """`as_json`; three times as fast for texts alone, which most arguments are."""
    parts = []
    for key, item in value.items():
        if type(item) is not str:
            return as_json(value)
        parts.append(f"{_quoted(key)}: {_quoted(item)}")
    return "{" + ", ".join(parts) + "}"


def _media(part: Mapping[str, Any]) -> Media | None:
    source = part.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("data"), str):
        return None
    try:
        data = base64.b64decode(source["data"], validate=False)
    except (binascii.Error, ValueError):
        return None
    return Media(_word(source.get("media_type")) or "application/octet-stream", hashlib.sha256(data).hexdigest())


def _result(part: Mapping[str, Any]) -> Result:
    content, flag = part.get("content"), part.get("is_error")
    blocks, _ = read_content(content) if not isinstance(content, str) else ((), ())
    media = tuple([block for block in blocks if isinstance(block, Media)])
    is_error = flag if isinstance(flag, bool) else None
    text = content if isinstance(content, str) else "\n".join([_shown(block) for block in blocks])
    return Result(_word(part.get("tool_use_id")) or "", text, is_error, status_of(text, is_error), media)


def _shown(block: Block) -> str:
    """A result block as text; media stand as a mark, their bytes stay in the raw layer."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Media):
        return f"[{block.mime} sha256:{block.sha256}]"
    return as_json(block.raw) if isinstance(block, Opaque) else ""


def status_of(text: str, is_error: bool | None) -> ResultStatus:
    """Only a flagged result can be a refusal or a stop: the same words in a good result are content."""
    if is_error is not True:
        return "ok"
    if any(words in text for words in _REFUSED):
        return "rejected"
    if text.startswith(INTERRUPT):
        return "interrupted"
    return "cascade" if "Sibling tool call errored" in text else "error"


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
