"""The rows that most of a session consists of, decoded straight into what they mean, without the dicts between.

A row of an unexpected type, with a field of an unexpected type, or with a block that is not listed here is left to
`parse_row`, which takes what comes; where both read a row they give the same (a test holds them to that). Fields that
no reader asks for (the screen has a copy of each result) are skipped: what is nested too deeply there,
or a number that is longer than Python converts, does no harm.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from postgrad.core.message import Block, Reasoning, Text, ToolCall
from postgrad.traces.formats.claude_code.content import Result, arguments_json, status_of
from postgrad.traces.formats.claude_code.rows import NO_FLAGS, NOTHING_SAID, UI_TYPES, Row, Said, role_of
from postgrad.traces.sources.jsonl import shallow


class _Thinking(msgspec.Struct, tag="thinking"):
    thinking: str
    signature: str | None = None


class _Call(msgspec.Struct, tag="tool_use"):
    name: str
    input: dict[str, Any]
    id: str | None = None


class _Result(msgspec.Struct, tag="tool_result"):
    content: str | list[Text | _Thinking] | None = None  # of one kind alone the tag could be missing
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    content: str | list[Text | _Thinking | _Call | _Result]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


class _Screen(msgspec.Struct):
    """`toolUseResult`: of a subagent's run it names the agent."""

    agentId: str | None = None


class _Row(msgspec.Struct):
    type: str
    uuid: str | None = None
    parentUuid: str | None = None
    logicalParentUuid: str | None = None
    sessionId: str | None = None
    agentId: str | None = None
    isSidechain: bool | None = None
    timestamp: str | None = None
    version: str | None = None
    message: _Message | UnsetType = UNSET
    toolUseResult: _Screen | str | list[msgspec.Raw] | UnsetType | None = UNSET
    permissionMode: str | None = None
    mode: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    isVisibleInTranscriptOnly: bool | None = None
    # With one of these a row says something of its own.
    subtype: UnsetType | None = UNSET
    attachment: UnsetType | None = UNSET
    error: None = None
    compactMetadata: None = None
    hookErrors: None = None


_DECODE = msgspec.json.Decoder(_Row).decode
_NO_BLOCKS: tuple[Block, ...] = ()
_NO_RESULTS: tuple[Result, ...] = ()


def common_row(number: int, line: bytes, names: Mapping[str, str]) -> Row | None:
    """The row on a line, None where `parse_row` has to read it. `names`: of the rows before, each kept once."""
    try:
        row = _DECODE(line)
    except (ValueError, RecursionError):
        return None
    kind, message = row.type, row.message
    if message is not UNSET and kind in ("assistant", "user"):
        if _is_nested(message) and not shallow(line):
            return None
        blocks, results = _content(message.content)
        flags = _flags(row, message)
        role = role_of(kind, "", flags)
        words = row.permissionMode or row.mode or None
    elif kind in UI_TYPES and message is row.toolUseResult is row.subtype is row.attachment is UNSET:
        blocks, results, flags, role, words = _NO_BLOCKS, _NO_RESULTS, NO_FLAGS, "ui", None
    else:
        return None
    above, session, agent, version, screen = row.parentUuid, row.sessionId, row.agentId, row.version, row.toolUseResult
    step = message if role == "step" and message is not UNSET else None
    return Row(
        number,
        sys.intern(kind),
        "",
        sys.intern(kind),
        row.uuid or f"line-{number}",
        names.get(above, above) if above else None,
        row.logicalParentUuid or None,
        sys.intern(session) if session else None,
        sys.intern(agent) if agent else None,
        (screen.agentId or None) if isinstance(screen, _Screen) else None,
        row.isSidechain is True,
        flags,
        (row.timestamp or None) if step else None,
        sys.intern(version) if version else None,
        _said(step) if step else NOTHING_SAID,
        blocks,
        results,
        role,
        words,
    )


def _is_nested(message: _Message) -> bool:
    """Whether there is more than flat data in it, which can be nested too deeply."""
    data = [message.usage] if message.usage else []
    if not isinstance(message.content, str):
        data += [part.input for part in message.content if isinstance(part, _Call)]
    return any([type(value) in _NESTED for one in data for value in one.values()])  # noqa: C419  # twice as fast


_NESTED = (dict, list)


def _flags(row: _Row, message: _Message) -> frozenset[str]:
    if not (row.isMeta or row.isCompactSummary or row.isApiErrorMessage or row.isVisibleInTranscriptOnly):
        return frozenset({"synthetic"}) if message.model == "<synthetic>" else NO_FLAGS
    names = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
    found = [name for name in names if getattr(row, name)]
    return frozenset([*found, "synthetic"] if message.model == "<synthetic>" else found)


def _said(message: _Message) -> Said:
    model = message.model
    return Said(message.id or None, None if model is None else sys.intern(model), message.stop_reason, message.usage)


def _content(
    content: str | list[Text | _Thinking | _Call | _Result],
) -> tuple[tuple[Block, ...], tuple[Result, ...]]:
    if isinstance(content, str):
        return ((Text(content),) if content else ()), _NO_RESULTS
    blocks: list[Block] = []
    results: list[Result] = []
    for part in content:
        if isinstance(part, Text):
            blocks.append(part)
        elif isinstance(part, _Result):
            results.append(_result(part))
        elif isinstance(part, _Call):
            name, value = sys.intern(part.name), part.input
            blocks.append(ToolCall(part.id or "", name, arguments_json(value), value))
        else:
            blocks.append(Reasoning(part.thinking, part.signature or None))
    return tuple(blocks), tuple(results)


def _result(part: _Result) -> Result:
    said = part.content
    if said is None:
        said = ""
    elif not isinstance(said, str):
        said = "\n".join([block.text if isinstance(block, Text) else "" for block in said])
    return Result(part.tool_use_id or "", said, part.is_error, status_of(said, part.is_error))
