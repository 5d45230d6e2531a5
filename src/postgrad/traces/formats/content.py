"""A message's content taken apart: what was said, and the results in it.

Agents borrow one another's part types, and keep results inside user messages. The parts themselves are read by
`shapes.parts`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from postgrad.core.canonical import DEEPEST, too_deep
from postgrad.core.message import Block, Media, Opaque, Reasoning, ResultStatus, Text, ToolCall, ToolResult
from postgrad.traces.formats.shapes.parts import parts
from postgrad.traces.formats.shapes.plain import string, written
from postgrad.traces.formats.shapes.said import RawResult


class Answered(msgspec.Struct, frozen=True):
    """A result under the provider's call id, with the media in it and the tool's name where it is said."""

    result: ToolResult
    media: tuple[Media, ...] = ()
    name: str = ""


class Content(msgspec.Struct, frozen=True):
    """Blocks in their order, without the results; and the results in theirs."""

    blocks: tuple[Block, ...]
    results: tuple[Answered, ...] = ()


def read_content(content: object) -> Content:
    """A string, a part, a list (of lists) of parts, or null."""
    if isinstance(content, str):
        return Content((Text(content),) if content else ())
    found = parts(content)
    return Content(
        tuple(part for part in found if not isinstance(part, RawResult)),
        tuple(_answered(part) for part in found if isinstance(part, RawResult)),
    )


def call(name: str, arguments: object, *, id: object = None) -> ToolCall:
    """A call; arguments are an object, or the provider's own string, which is kept byte for byte."""
    raw = written({} if arguments is None else arguments)
    if raw.startswith("{"):
        try:
            value = _DECODE(raw)
        except (ValueError, RecursionError):
            value = None  # `from_raw` says what is wrong, or reads it as only `json` does
        if isinstance(value, dict) and (len(raw) <= 2 * DEEPEST or not too_deep(value)):
            return ToolCall(string(id), name, raw, value)
    return ToolCall.from_raw(id=string(id), name=name, raw=raw)


_DECODE = msgspec.json.Decoder().decode


def answered(id: object, content: object, *, is_error: bool | None, status: ResultStatus | None = None) -> Answered:
    """A result from its parts; `status` where it is more than "ok" or "error"."""
    blocks = read_content(content).blocks
    said = status or ("error" if is_error else "ok")
    found = tuple(block for block in blocks if isinstance(block, Media))
    return Answered(ToolResult(string(id), shown(blocks), is_error, said), found)


def shown(blocks: Iterable[Block]) -> str:
    """Blocks of a result as one text; media stand as a mark, their bytes stay in the raw layer."""
    return "\n".join(_shown(block) for block in blocks)


def _answered(raw: RawResult) -> Answered:
    found = tuple(block for block in raw.media if isinstance(block, Media))
    status: ResultStatus = "error" if raw.is_error else "ok"
    return Answered(ToolResult(raw.id, raw.text, raw.is_error, status), found, raw.name)


def _shown(block: Block) -> str:
    if isinstance(block, Text | Reasoning):
        return block.text
    if isinstance(block, Media):
        return f"[{block.mime} sha256:{block.sha256}]" if block.sha256 else f"[{block.mime} {block.uri}]"
    return written(block.raw) if isinstance(block, Opaque) else ""
