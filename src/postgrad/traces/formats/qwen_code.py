"""Qwen Code chats (JSON lines): `~/.qwen/projects/<project>/chats/<session>.jsonl`.

    {uuid, parentUuid, sessionId, timestamp, type: user | assistant | tool_result | system, subtype, version,
     message: {role, parts}, model, usageMetadata, toolCallResult: {callId, status, ...}, systemPayload}

An assistant row is one answer, a step; `message` is the content of the API, so the context is what was said before.
A row that hangs on an earlier row than the one before it went back to there. `chat_compression` replaces the history
by the one in its payload. System prompt and tool schemas are not stored.

Not covered: the older form, one JSON document with messages of the type "qwen".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Message, ResultStatus, Role, Text, ToolResult
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import Answered, read_content
from postgrad.traces.formats.gemini_cli.response import response_text
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines, Row

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_SYSTEM_EVENTS = {
    "session_approval_mode": "mode_change",
    "slash_command": "local_command",
    "rewind": "rewind",
    "agent_retry": "api_error",
}
_UNTYPED = frozenset({"notification", "background_task_completed", "cron", "agent_launch_prompt"})


@dataclass(frozen=True)
class QwenCode:
    """Reader of Qwen Code chats."""

    format: str = "qwen_code"

    def recognises(self, head: Head) -> bool:
        """Rows of a tree, as Claude Code writes them, with the parts of the Gemini API in their messages."""
        rows = [row for row in head.rows if {"uuid", "parentUuid", "sessionId"} <= row.keys()]
        with_parts = [row for row in rows if isinstance(mapping(row.get("message")).get("parts"), list)]
        return bool(with_parts) and all(text(row.get("type")) in _TYPES for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read a chat.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        seen: set[str] = set()
        version: str | None = None
        for row in lines.rows():
            version = version or text(row.value.get("version"))
            uuid = string(row.value.get("uuid"))
            if uuid and uuid in seen:
                lines.use(row.number, "duplicate", _kind(row.value))
                continue
            seen.add(uuid)
            agent = string(row.value.get("agentId")) if row.value.get("isSidechain") is True else ""
            groups[string(row.value.get("sessionId")), agent].append(row)
        source = Source(str(path), self.format, lines.sha256, "qwen-code", version)
        traces: list[Trace] = []
        for (session, agent), rows in groups.items():
            trace = _Chat(lines, agent).read(rows).trace(source, session, len(traces))
            traces += [trace] if trace is not None else []
        return lines.result(source, traces)


def _kind(value: Mapping[str, Any]) -> str:
    kind, subtype = string(value.get("type")) or "?", string(value.get("subtype"))
    return f"{kind}:{subtype}" if subtype else kind


@dataclass
class _Chat:
    """One chat while it is read: the rows of the branch that is being followed, in order."""

    lines: JsonLines
    agent: str
    talk: Conversation = field(init=False)
    orphans: list[ToolResult] = field(default_factory=list)
    _live: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = "subagent" if self.agent else "main"
        missing = ("system prompt", "tool schemas")
        self.talk = Conversation(fidelity="reconstructed", missing=missing, kind=kind, agent=self.agent or None)

    def read(self, rows: Iterable[Row]) -> _Chat:
        """Take in all rows, in the order of the file."""
        for row in rows:
            self._go_back(row)
            self.lines.use(row.number, self._row(row), _kind(row.value))
        return self

    def trace(self, source: Source, session: str, index: int) -> Trace | None:
        """The finished trace; a subagent's parent is the chat of the same session."""
        parent = content_id([source.format, session]) if self.agent else None
        found = self.talk.trace(source, session or None, self.agent or None, index=index, parent=parent)
        return None if found is None else msgspec.structs.replace(found, orphans=tuple(self.orphans))

    def _go_back(self, row: Row) -> None:
        above = row.value.get("parentUuid")
        place = next((i for i in range(len(self._live) - 1, -1, -1) if self._live[i][0] == above), None)
        if place is not None and place < len(self._live) - 1:
            gone = {number for _, number in self._live[place + 1 :]}
            self.talk.leave(lambda number: number in gone)
            del self._live[place + 1 :]
        self._live.append((string(row.value.get("uuid")), row.number))

    def _row(self, row: Row) -> str:
        """Tell a row; what it was used as."""
        kind, value = row.value.get("type"), row.value
        content = read_content(mapping(value.get("message")).get("parts"))
        if kind == "assistant":
            usage, time = mapping(value.get("usageMetadata")), text(value.get("timestamp"))
            self.talk.act(Action(content.blocks, (row.number,), text(value.get("model")), None, usage, time))
            return "step"
        if kind == "tool_result":
            return self._results(row, content.results)
        if kind == "user":
            self.talk.tell(Message("user", content.blocks, (row.number,)))
            payload = mapping(value.get("systemPayload"))
            words = text(payload.get("displayText")) or "\n".join(b.text for b in content.blocks if isinstance(b, Text))
            if string(value.get("subtype")) not in _UNTYPED and words.strip():
                self.talk.event("user_text", row.number, words)
            return "context"
        return self._system(row) if kind == "system" else self._unknown(row)

    def _results(self, row: Row, results: Iterable[Answered]) -> str:
        outcome = mapping(row.value.get("toolCallResult"))
        parts = mappings(mapping(row.value.get("message")).get("parts"))
        responses = [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
        used_as = "result"
        for found, response in zip(results, responses, strict=False):
            said = response_text(response.get("response"))
            flag, status = _status(outcome.get("status"), said)
            block = ToolResult(found.result.call_id, said, flag, status)
            if not self.talk.answer(block, record=row.number, media=found.media):
                self.orphans.append(block)
                self.lines.note("a tool result whose call is not in the file", done="kept, in no step", line=row.number)
                used_as = "orphan_result"
        return used_as

    def _system(self, row: Row) -> str:
        subtype, payload = string(row.value.get("subtype")), mapping(row.value.get("systemPayload"))
        if subtype == "chat_compression":
            self.talk.event("compaction", row.number)
            self.talk.forget(lambda number: True)
            for content in mappings(payload.get("compressedHistory")):
                self._retell(content, row.number)
            return "event"
        if subtype in _SYSTEM_EVENTS:
            words = string(payload.get("mode")) or string(payload.get("rawCommand"))
            self.talk.event(_SYSTEM_EVENTS[subtype], row.number, words)
            return "event"
        return "ui"

    def _retell(self, content: Mapping[str, Any], record: int) -> None:
        found = read_content(content.get("parts"))
        role: Role = "assistant" if content.get("role") == "model" else "user"
        self.talk.tell(Message(role, found.blocks, (record,)))
        for answered in found.results:
            self.talk.tell(Message("tool", (answered.result, *answered.media), (record,)))

    def _unknown(self, row: Row) -> str:
        self.lines.note(f"unknown row type '{_kind(row.value)}'", done="kept raw, in no step", line=row.number)
        return "unknown"


def _status(status: object, said: str) -> tuple[bool | None, ResultStatus]:
    if status == "cancelled":
        return True, "rejected" if "did not allow" in said else "interrupted"
    if status == "error":
        return True, "error"
    return (False if status == "success" else None), "ok"
