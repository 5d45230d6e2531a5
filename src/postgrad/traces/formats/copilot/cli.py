"""Copilot CLI sessions (`~/.copilot/session-state/<id>/events.jsonl`): an event a line.

An answer of the model is one `assistant.message` (rows with one `messageId` are one). A result is a
`tool.execution_complete`; its `success` is the flag. Rows of a subagent name the call that started it
(`parentToolCallId`): they are a trace of their own, with the session as its parent. The system prompt is there in newer
versions (`system.message`). A compaction leaves its summary; a truncation says only how much is gone, so the contexts
after it are partial. A rewind leaves the steps behind as an abandoned branch.

"The same session" means: the same session id (and call, for a subagent).

Not covered: tool schemas; usage other than output tokens; which messages a truncation took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Message, Opaque, Reasoning, ResultStatus, Text, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text, written
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines, Row

_OWN = frozenset(
    {
        *("session.start", "user.message", "assistant.message", "assistant.turn_start", "assistant.turn_end"),
        *("tool.execution_start", "tool.execution_complete", "session.model_change", "session.truncation"),
        *("session.resume", "session.info", "hook.start", "system.message"),
    }
)
_EVENTS = {
    "abort": "interrupt",
    "session.error": "api_error",
    "session.model_change": "model_change",
    "session.mode_changed": "mode_change",
    "session.resume": "resume",
    "session.handoff": "handoff",
    "subagent.started": "spawn",
    "permission.requested": "approval",
    "permission.completed": "approval",
    "system.notification": "notification",
    "session.truncation": "compaction",
}
_SCREEN = (
    "session.",
    "hook.",
    "assistant.",
    "tool.",
    "subagent.",
    "skill.",
    "permission.",
    "user_input.",
    "external_tool.",
)
_REFUSED = ("rejected", "denied")
_TOLD = ("user.message", "tool.execution_complete", "session.compaction_complete")


@dataclass(frozen=True)
class CopilotCLI:
    """Reader of Copilot CLI sessions."""

    format: str = "copilot_cli"

    def recognises(self, head: Head) -> bool:
        """Events of these types with their data in `data`; the session's start, or an answer with its requests."""
        ours = [row for row in head.rows if string(row.get("type")) in _OWN and isinstance(row.get("data"), dict)]
        kinds = {row["type"] for row in ours if text(row.get("id")) or "parentId" in row}
        answers = [row for row in ours if row["type"] == "assistant.message" and "toolRequests" in row["data"]]
        starts = [row for row in ours if row["type"] == "session.start" and "sessionId" in row["data"]]
        return bool(kinds) and bool(answers or starts)

    def read(self, path: Path) -> ReadResult:
        """Read a session.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        rows = list(lines.rows())
        start: dict[str, Any] = next(
            (row.value["data"] for row in rows if _kind(row) == "session.start" and _data(row)), {}
        )
        version = text(start.get("copilotVersion"))
        source = Source(str(path), self.format, lines.sha256, "copilot-cli", version)
        session = text(start.get("sessionId"))
        groups: dict[str, list[Row]] = {"": []}
        for row in rows:
            groups.setdefault(text(_data(row).get("parentToolCallId")) or "", []).append(row)
        traces: list[Trace] = []
        for agent, group in groups.items():
            run = _Session(lines, group, agent=agent)
            main = traces[0].id if traces and agent else None
            outside = f"copilot-session:{session}" if agent and session else None
            name = (session, agent or None) if session else ()
            trace = run.talk.trace(source, *name, index=len(traces), parent=main or outside)
            traces += [trace] if trace else []
        return lines.result(source, traces)


class _Session:
    """One agent's rows, told in order."""

    def __init__(self, lines: JsonLines, rows: Sequence[Row], *, agent: str) -> None:
        missing = ("system prompt", "tool schemas")
        kind = "subagent" if agent else "main"
        self.talk = Conversation(fidelity="reconstructed", missing=missing, kind=kind, agent=agent or None)
        self._lines = lines
        self._rows = _unique(lines, rows)
        self._model: str | None = None
        self._prompt = ""
        self._thought: tuple[int, str] | None = None
        self._joined: set[int] = set()
        self._prompts: set[int] = set()
        self._places = {id(row): place for place, row in enumerate(self._rows)}
        self._typed = any(_kind(row) == "user.message" for row in rows)
        self._ids = {string(row.value.get("id")): row.number for row in rows}
        unknown: Counter[str] = Counter()
        for row in self._rows:
            use = self._tell(row)
            lines.use(row.number, use, _kind(row))
            unknown[_kind(row)] += use == "unknown"
        for name, count in unknown.items():
            if count:
                lines.note(f"unknown event type '{name}', {count} row(s)", done="kept raw, in no step")

    def _tell(self, row: Row) -> str:
        kind, data = _kind(row), _data(row)
        if kind == "assistant.message":
            return self._answer(row, data)
        if kind == "tool.execution_complete":
            return self._result(row, data)
        if kind == "user.message":
            return self._user(row.number, data.get("transformedContent") or data.get("content"), data.get("content"))
        if kind == "hook.start" and data.get("hookType") == "userPromptSubmitted" and not self._typed:
            said = mapping(data.get("input")).get("prompt")
            return self._user(row.number, said, said)
        if kind == "system.message":
            return self._system(row.number, string(data.get("content")))
        if kind == "assistant.reasoning":
            self._thought = row.number, string(data.get("content"))
            return "step"
        if kind == "session.compaction_complete":
            return self._compaction(row.number, data)
        if kind == "session.snapshot_rewind":
            return self._rewind(row.number, data)
        return self._event(row.number, kind, data)

    def _answer(self, row: Row, data: Mapping[str, Any]) -> str:
        if row.number in self._joined:
            return "step"
        together = self._one_answer(row, text(data.get("messageId")))
        self._joined |= {part.number for part in together}
        blocks: list[Block] = []
        for part in together:
            blocks += self._blocks(_data(part))
        thought = [self._thought[0]] if self._thought else []
        last = _data(together[-1])
        used = {key: last[key] for key in ("outputTokens", "inputTokens") if isinstance(last.get(key), int)}
        self._model = text(data.get("model")) or self._model
        numbers = (*thought, *(part.number for part in together))
        self.talk.act(Action(blocks, numbers, self._model, None, used, text(row.value.get("timestamp"))))
        self._thought = None
        return "step"

    def _one_answer(self, row: Row, name: str | None) -> list[Row]:
        """The rows with one message id, up to the next thing that the model was told."""
        together = [row]
        for other in islice(self._rows, self._places[id(row)] + 1, None) if name else ():
            if _kind(other) in _TOLD or (_kind(other) == "assistant.message" and _data(other).get("messageId") != name):
                break
            together += [other] if _kind(other) == "assistant.message" else []
        return together

    def _blocks(self, data: Mapping[str, Any]) -> list[Block]:
        said = text(data.get("reasoningText")) or (self._thought[1] if self._thought else "")
        hidden = text(data.get("reasoningOpaque")) or text(data.get("encryptedContent"))
        blocks: list[Block] = [Reasoning(said, encrypted=hidden)] if said or hidden else []
        blocks += read_content(data.get("content")).blocks
        for item in mappings(data.get("toolRequests")):
            if isinstance(item.get("name"), str):
                blocks.append(call(item["name"], item.get("arguments"), id=item.get("toolCallId")))
            else:
                blocks.append(Opaque("toolRequest", item))
        return blocks

    def _result(self, row: Row, data: Mapping[str, Any]) -> str:
        success = data.get("success")
        error = mapping(data.get("error"))
        seen = mapping(data.get("result")).get("content")
        said = seen if isinstance(seen, str) else written(seen)
        said = said or string(error.get("message")) or string(data.get("error"))
        refused = string(error.get("code")) in _REFUSED
        status: ResultStatus = "rejected" if refused else "error" if success is False else "ok"
        flag = (not success) if isinstance(success, bool) else None
        if self.talk.answer(ToolResult(string(data.get("toolCallId")), said, flag, status), record=row.number):
            self._model = self._model or text(data.get("model"))
            if refused:
                self.talk.judge(Feedback("user_reject", text=string(error.get("message")), source="user"))
            return "result"
        self._lines.note("a tool result whose call is not in the file", done="kept raw, in no step", line=row.number)
        return "orphan_result"

    def _user(self, number: int, sent: object, typed: object) -> str:
        self.talk.tell(Message("user", read_content(sent).blocks, (number,)))
        self.talk.event("user_text", number, string(typed) or string(sent))
        return "context"

    def _system(self, number: int, said: str) -> str:
        if not said or said == self._prompt:
            return "duplicate"
        self.talk.tell(Message("system", (Text(said),), (number,)))
        self.talk.change(missing=tuple(word for word in self.talk.setting.missing if word != "system prompt"))
        self._prompt = said
        self._prompts.add(number)
        return "context"

    def _compaction(self, number: int, data: Mapping[str, Any]) -> str:
        said = string(data.get("summaryContent"))
        if data.get("success") is not False:
            summary = (Text(said),) if said else ()
            self.talk.condense(lambda record: record not in self._prompts, Message("user", summary, (number,)))
        self.talk.event("compaction", number, said)
        return "event"

    def _rewind(self, number: int, data: Mapping[str, Any]) -> str:
        target = self._ids.get(string(data.get("upToEventId")))
        if target is not None:
            self.talk.rewind(target)
        self.talk.event("rewind", number, string(data.get("upToEventId")))
        return "event"

    def _event(self, number: int, kind: str, data: Mapping[str, Any]) -> str:
        if kind == "session.truncation":
            self.talk.change(fidelity="partial", missing=(*self.talk.setting.missing, "which messages were truncated"))
        if kind == "session.model_change":
            self._model = text(data.get("newModel")) or self._model
        if kind in ("session.start", "session.resume", "assistant.turn_start"):
            self._model = text(data.get("selectedModel")) or text(data.get("model")) or self._model
        if kind in _EVENTS:
            said = next((v for k in ("message", "reason", "newModel", "content") if (v := text(data.get(k)))), "")
            self.talk.event(_EVENTS[kind], number, said, **_facts(kind, data))
            return "event"
        return "ui" if kind.startswith(_SCREEN) else "unknown"


def _unique(lines: JsonLines, rows: Sequence[Row]) -> list[Row]:
    """The rows without those that are written twice."""
    known: dict[str, dict[str, Any]] = {}
    kept = []
    for row in rows:
        name = string(row.value.get("id"))
        if name and known.get(name) == row.value:
            lines.use(row.number, "duplicate", _kind(row))
            continue
        known[name] = row.value
        kept.append(row)
    return kept


def _facts(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "subagent.started":
        return {"agent": string(data.get("agentName")), "call": string(data.get("toolCallId"))}
    return {}


def _kind(row: Row) -> str:
    return string(row.value.get("type")) or "?"


def _data(row: Row) -> dict[str, Any]:
    return mapping(row.value.get("data"))
