"""Goose sessions: JSON lines (before 1.10), the database `sessions.db` (from 1.10 on), and exported sessions.

A message holds parts: text, thinking, toolRequest, toolResponse, ... An answer of the model is one assistant message;
messages with one id that stand together are one. A toolRequest whose `toolCall` has the status "error" is a call that
could not be parsed. A toolResponse answers the request of its id; status "error" and `isError` are its flag.

`metadata` says what the model sees now, not what it saw: after a compaction all messages before it have `agentVisible`
false. So a session's beginning up to the last such message was visible to the steps in it and is forgotten behind it;
within it, a message that neither side sees is the summary of an older compaction, which hid what came before. A hidden
message that stands alone further on was never shown to the model.

Records: lines; rows of the database (sessions, then messages); items of the exported list. "The same session" means:
the same session id, or without one the same time of the first message, first context and action.

Not covered: system prompt, tool schemas (not stored); token counts of single calls (the session has totals).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.core.message import Block, Message
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import Answered, shown
from postgrad.traces.formats.goose.messages import Said, are_messages, own_parts, read_part
from postgrad.traces.formats.shapes.plain import mapping, opened, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.database import Database
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Ledger


@dataclass(frozen=True)
class Goose:
    """Reader of Goose sessions."""

    format: str = "goose"

    def recognises(self, head: Head) -> bool:
        """The database's own columns, or messages with a time in `created` and parts of Goose's own types."""
        if {"sessions", "messages"} <= head.tables:
            return _has_columns(head.path)
        if isinstance(head.document, dict) and isinstance(head.document.get("conversation"), list):
            return are_messages(head.document["conversation"]) and "working_dir" in head.document
        if not head.rows:
            return False
        first = head.rows[0]
        header = "role" not in first and "working_dir" in first
        rows = head.rows[1:] if header else head.rows
        return are_messages(rows) and (header or any(own_parts(row) for row in rows))

    def read(self, path: Path) -> ReadResult:
        """Read sessions.

        Raises:
            DataError: they cannot be opened.
        """
        head = Head(path)
        if head.tables:
            return self._database(path)
        if isinstance(head.document, dict) and isinstance(head.document.get("conversation"), list):
            document = JsonDocument(path, "conversation")
            said = [Said.of(item.number, item.value) for item in document.rows("conversation")]
            if ENVELOPE in document.entries:
                document.use(ENVELOPE, "metadata", "session")
            return self._one(document, said, mapping(document.envelope), document.sha256)
        lines = JsonLines(path)
        rows = list(lines.rows())
        session: dict[str, Any] = {}
        said = []
        for row in rows:
            if "role" not in row.value and "working_dir" in row.value:
                session = row.value
                lines.use(row.number, "metadata", "session")
            else:
                said.append(Said.of(row.number, row.value))
        return self._one(lines, said, session, lines.sha256)

    def _one(self, ledger: Ledger, said: list[Said], session: Mapping[str, Any], sha256: str) -> ReadResult:
        source = Source(str(ledger.path), self.format, sha256, "goose")
        trace = _trace(ledger, said, session, source, index=0)
        return ledger.result(source, [trace] if trace else [])

    def _database(self, path: Path) -> ReadResult:
        with Database(path) as database:
            source = Source(str(path), self.format, database.sha256, "goose")
            sessions = list(database.rows("select * from sessions order by id"))
            said: dict[object, list[Said]] = {}
            for item in database.rows("select * from messages order by session_id, id"):
                said.setdefault(item.value.get("session_id"), []).append(Said.of_row(item.number, item.value))
            known = {item.value.get("id"): item.value for item in sessions}
            for item in sessions:
                database.use(item.number, "metadata", "session")
            traces: list[Trace] = []
            for name, messages in said.items():
                trace = _trace(database, messages, {"id": name, **known.get(name, {})}, source, index=len(traces))
                traces += [trace] if trace else []
            return database.result(source, traces)


def _has_columns(path: Path) -> bool:
    try:
        with Database(path) as database:
            messages = {row[1] for row in database.select("pragma table_info(messages)")}
            return {"session_id", "role", "content_json"} <= messages
    except DataError:
        return False


def _trace(
    ledger: Ledger, said: Sequence[Said], session: Mapping[str, Any], source: Source, *, index: int
) -> Trace | None:
    """One session; every message is accounted for."""
    model = mapping(opened(session.get("model_config_json"))).get("model_name")
    agent = session.get("session_type") == "sub_agent"
    talk = Conversation(
        fidelity="reconstructed", missing=("system prompt", "tool schemas"), kind="subagent" if agent else "main"
    )
    prefix = _hidden_beginning(said)
    for _, group in groupby(enumerate(said), key=_answer_key):
        together = list(group)
        first, messages = together[0][0], [message for _, message in together]
        older = first < prefix and messages[0].shown_to.get("userVisible") is False
        if prefix and (first == prefix or older):
            talk.forget(lambda _: True)
            talk.event("compaction", messages[0].number)
        _tell(ledger, talk, messages, model=text(model), visible=first < prefix or not messages[0].hidden)
    name = session.get("id")
    begun = next((message.time for message in said if message.time), None)
    if not talk.steps:
        return None
    known = (str(name),) if name is not None else (begun, *talk.beginning)
    return talk.trace(source, *known, index=index)


def _answer_key(entry: tuple[int, Said]) -> tuple[int, str]:
    """Answers with one id that stand together are one."""
    place, message = entry
    joined = message.role == "assistant" and message.id is not None
    return (-1, message.id or "") if joined else (place, "")


def _hidden_beginning(said: Sequence[Said]) -> int:
    """How many messages from the first on are hidden now: what a compaction took out."""
    return next((place for place, message in enumerate(said) if not message.hidden), len(said))


def _tell(ledger: Ledger, talk: Conversation, messages: Sequence[Said], *, model: str | None, visible: bool) -> None:
    """A message, or the messages of one answer."""
    blocks: list[Block] = []
    results: list[Answered] = []
    for message in messages:
        for part in message.parts:
            read_part(talk, message.number, part, blocks, results)
    first, numbers = messages[0], tuple(message.number for message in messages)
    use = "unknown"
    if first.role == "assistant" and (blocks or results):
        talk.act(Action(blocks, numbers, model, time=first.time))
        if not visible:
            talk.forget(lambda number: number in numbers)
        use = "step"
    elif first.role == "user":
        use = "context" if visible else "ui"
        for item in results:
            found = talk.answer(item.result, record=first.number, media=item.media)
            use = "result" if found else "orphan_result"
            if not found:
                ledger.note("a tool result whose call is not there", done="kept raw, not used", line=first.number)
        if blocks and visible:
            talk.tell(Message("user", tuple(blocks), numbers))
        if blocks and first.shown_to.get("userVisible") is not False:
            talk.event("user_text", first.number, shown(blocks))
    elif first.role == "assistant":
        use = "event"
    else:
        ledger.note("the record is no message", done="kept raw, not used", line=first.number)
    for message in messages:
        ledger.use(message.number, use, message.role or "?")
