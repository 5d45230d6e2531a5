"""Parts of opencode's messages as blocks and results, as the model was shown them (`toModelMessages`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from postgrad.core.message import Block, Media, Opaque, Reasoning, ResultStatus, Text, ToolResult
from postgrad.traces.formats.content import call, read_content
from postgrad.traces.formats.opencode.sessions import Part
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text, written

CLEARED = "[Old tool result content cleared]"
_QUESTION = "What did we do so far?"
_SUBTASK = "The following tool was executed by the user"
_REJECTED = "rejected permission"
_STOPPED = ("Tool execution aborted", "[Tool execution was interrupted]")
_FEEDBACK = "with the following feedback:"
_AS_TEXT = ("text/plain", "application/x-directory")  # such files stand in the message as text parts already
NO_CONTENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry"})
MARKS = frozenset({"compaction", "subtask"})
"""Parts that stand for something that happened; a user's message shows the model fixed words for them."""


def user_blocks(parts: Iterable[Part]) -> list[Block]:
    """What a user's message shows the model."""
    blocks: list[Block] = []
    for part in parts:
        value = part.value
        if part.kind == "text":
            blocks += [] if value.get("ignored") is True else [Text(string(value.get("text")))]
        elif part.kind == "file":
            blocks += [] if value.get("mime") in _AS_TEXT else [_file(value)]
        elif part.kind == "compaction":
            blocks.append(Text(_QUESTION))
        elif part.kind == "subtask":
            blocks.append(Text(_SUBTASK))
        elif part.kind not in NO_CONTENT:
            blocks.append(Opaque(part.kind, value))
    return blocks


def typed(parts: Iterable[Part]) -> str:
    """What the user wrote: the texts that the application did not add."""
    said = [part.value for part in parts if part.kind == "text"]
    return "\n".join(string(v.get("text")) for v in said if v.get("synthetic") is not True and not v.get("ignored"))


def answer_blocks(parts: Iterable[Part]) -> list[Block]:
    """The blocks of one answer. Empty texts are pieces that never came."""
    blocks: list[Block] = []
    for part in parts:
        value = part.value
        if part.kind == "text":
            blocks += [Text(value["text"])] if text(value.get("text")) else []
        elif part.kind == "reasoning":
            thought = _reasoning(value)
            blocks += [thought] if thought != Reasoning() else []
        elif part.kind == "tool":
            state = mapping(value.get("state"))
            given, raw = state.get("input"), text(state.get("raw"))
            blocks.append(call(string(value.get("tool")), raw if raw and not given else given, id=value.get("callID")))
        elif part.kind == "file":
            blocks.append(_file(value))
        elif part.kind not in NO_CONTENT | MARKS:
            blocks.append(Opaque(part.kind, value))
    return blocks


def result(part: Part) -> tuple[ToolResult, tuple[Media, ...]] | None:
    """What came back for a tool part's call, None while it waits or runs."""
    state = mapping(part.value.get("state"))
    key, metadata = string(part.value.get("callID")), mapping(state.get("metadata"))
    if state.get("status") == "completed":
        code = metadata.get("exit")
        failed = isinstance(code, int) and not isinstance(code, bool) and code != 0
        media = tuple(file for entry in mappings(state.get("attachments")) if isinstance(file := _file(entry), Media))
        return ToolResult(key, written(state.get("output")), failed, "error" if failed else "ok"), media
    if state.get("status") == "error":
        stopped = metadata.get("interrupted") is True
        output = metadata.get("output") if stopped else None
        said = output if isinstance(output, str) else written(state.get("error"))
        return ToolResult(key, said, True, "interrupted" if stopped else _status(said)), ()
    return None


def correction(result: ToolResult) -> str:
    """What the user said when refusing a call, "" if nothing."""
    return result.text.partition(_FEEDBACK)[2].strip() if result.status == "rejected" else ""


def cleared_at(part: Part) -> float | None:
    """When the application took a tool's output out of the context (ms), None if it did not."""
    time = mapping(mapping(part.value.get("state")).get("time")).get("compacted")
    return float(time) if isinstance(time, int | float) and not isinstance(time, bool) else None


def _status(said: str) -> ResultStatus:
    if _REJECTED in said:
        return "rejected"
    return "interrupted" if said.startswith(_STOPPED) else "error"


def _reasoning(value: Mapping[str, Any]) -> Reasoning:
    """The providers' opaque parts stand in the metadata under the provider's name."""
    opaque = {name: part for given in mapping(value.get("metadata")).values() for name, part in mapping(given).items()}
    signature = text(opaque.get("signature")) or text(opaque.get("thoughtSignature"))
    encrypted = text(opaque.get("reasoningEncryptedContent")) or text(opaque.get("redactedData"))
    return Reasoning(string(value.get("text")), signature, encrypted)


def _file(value: Mapping[str, Any]) -> Block:
    (block,) = read_content([{"type": "image_url", "image_url": {"url": string(value.get("url"))}}]).blocks
    if isinstance(block, Media) and not block.sha256:
        return Media(text(value.get("mime")) or block.mime, "", block.uri)
    return block if isinstance(block, Media) else Opaque("file", dict(value))
