"""Cursor CLI transcripts (`~/.cursor/projects/<p>/agent-transcripts/**.jsonl`): a message a line.

A row is ``{"role", "message": {"content"}}`` with Anthropic-like parts and no times. An answer of the model is one
assistant row. Results are mostly not written; those that are answer the call of their id, else of their tool's name,
else the first that waits. System prompt and schemas are not there.

"The same session" means: the same first context and action. A transcript in a folder `subagents` is a subagent's.

Not covered: the older transcripts in plain text; the chat databases beside them (`store.db`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.message import Message, ToolCall
from postgrad.core.trace import Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import Answered, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_FOREIGN = frozenset({"type", "uuid", "sessionId", "parentUuid", "parentId", "content"})


@dataclass(frozen=True)
class CursorTranscript:
    """Reader of Cursor CLI transcripts."""

    format: str = "cursor_cli"

    def recognises(self, head: Head) -> bool:
        """Rows of a role and a message with content, which carry none of the keys of other agents' rows."""
        said = [row for row in head.rows if _is_message(row)]
        other = [row for row in head.rows if not _is_message(row) and row.get("type") != "turn_ended"]
        return bool(said) and len(other) <= len(said) and not any(_FOREIGN & row.keys() for row in said)

    def read(self, path: Path) -> ReadResult:
        """Read a transcript.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        inner = "subagents" in path.parts
        missing = ("system prompt", "tool schemas", "tool results")
        talk = Conversation(fidelity="partial", missing=missing, kind="subagent" if inner else "main")
        for row in lines.rows():
            if _is_message(row.value):
                lines.use(row.number, _tell(talk, row.number, row.value), row.value["role"])
            elif row.value.get("type") == "turn_ended":
                stopped = row.value.get("status") in ("aborted", "cancelled", "interrupted")
                talk.event("interrupt" if stopped else "turn_ended", row.number, str(row.value.get("status", "")))
                lines.use(row.number, "event", "turn_ended")
            else:
                lines.use(row.number, "unknown", "object")
                lines.note("the row is no message", done="kept raw, in no step", line=row.number)
        source = Source(str(path), self.format, lines.sha256, "cursor-cli")
        parent = f"cursor-session:{path.parent.parent.name}" if inner else None
        trace = talk.trace(source, parent=parent)
        return lines.result(source, [trace] if trace else [])


def _is_message(row: Mapping[str, Any]) -> bool:
    return row.get("role") in ("user", "assistant") and "content" in mapping(row.get("message"))


def _tell(talk: Conversation, number: int, row: Mapping[str, Any]) -> str:
    message = row["message"]
    content = read_content(message["content"])
    if row["role"] == "assistant":
        model = text(message.get("model")) or text(row.get("model"))
        usage = mapping(message.get("usage"))
        talk.act(Action(content.blocks, (number,), model, text(message.get("stop_reason")), usage))
        return "step"
    answered = False
    for item in content.results:
        answered |= _answer(talk, number, item)
    said = shown(content.blocks)
    if content.blocks:
        found = _QUERY.search(said)
        talk.tell(Message("user", content.blocks, (number,)))
        talk.event("user_text", number, found[1] if found else said)
    return "result" if answered else "context" if content.blocks else "orphan_result"


def _answer(talk: Conversation, number: int, item: Answered) -> bool:
    """A result by its id, else by the name of its tool, else by order."""
    if item.result.call_id and talk.answer(item.result, record=number, media=item.media):
        return True
    waiting: list[ToolCall] = talk.pending
    named = [call for call in waiting if call.name == item.name]
    if not (named or waiting):
        return False
    return talk.settle((named or waiting)[0], item.result, record=number, media=item.media)
