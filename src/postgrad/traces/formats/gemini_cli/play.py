"""What happened in a Gemini CLI chat, told to a conversation: a `gemini` message is a step, results stand inside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from postgrad.core.message import Block, Media, Message, Reasoning, ResultStatus, Text, ToolCall, ToolResult
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.gemini_cli.fold import Change, Entry, Replaced, Said, TakenBack
from postgrad.traces.formats.gemini_cli.response import response_text
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.sources.ledger import Ledger

_CUT = 50 * 1024  # characters of a tool's output that Gemini CLI records
_DONE = frozenset({"success", "error", "cancelled"})
_NOTES = {"error": "api_error", "warning": "warning", "info": "info"}
_CANCELLED = "Request cancelled."
_REFUSED = ("did not allow", "User denied", "rejected")


class Player:
    """Tells the changes, one after the other."""

    def __init__(self, talk: Conversation, ledger: Ledger) -> None:
        self.talk = talk
        self.entries: dict[int, Entry] = {}
        self._ledger = ledger

    def play(self, changes: Iterable[Change]) -> None:
        """Tell all of them."""
        for change in changes:
            if isinstance(change, Said):
                self._say(change.entry)
            elif isinstance(change, TakenBack):
                self._take_back(change)
            else:
                self._replace(change)

    def _use(self, entry: Entry, used_as: str) -> None:
        for row in reversed(entry.rows):
            self._ledger.use(row, used_as, string(entry.value.get("type")) or "?")
            used_as = "superseded"

    def _say(self, entry: Entry) -> None:
        kind, value = entry.value.get("type"), entry.value
        if kind == "gemini":
            self._answer(entry)
            self._use(entry, "step")
        elif kind == "user":
            self._user(entry)
        elif isinstance(kind, str) and kind in _NOTES:
            said = shown(read_content(value.get("content")).blocks)
            stop = kind == "info" and said.strip() == _CANCELLED
            self.talk.event("interrupt" if stop else _NOTES[kind], entry.rows[-1], said)
            self._use(entry, "event")
        else:
            self._use(entry, "unknown")
            self._ledger.note(f"unknown message type '{kind}'", done="kept raw, in no step", line=entry.rows[-1])

    def _user(self, entry: Entry) -> None:
        """What the user wrote. Results in it are the calls' own once more, in the form of the API."""
        content = read_content(entry.value.get("content"))
        self.talk.tell(Message("user", content.blocks, (entry.first,)))
        answered = [
            self.talk.answer(found.result, record=entry.rows[-1], media=found.media) for found in content.results
        ]
        self._use(entry, "context" if content.blocks or not any(answered) else "result")
        typed = read_content(entry.value.get("displayContent")).blocks or content.blocks
        words = "\n".join(block.text for block in typed if isinstance(block, Text))
        if words.strip():
            self.talk.event("user_text", entry.rows[-1], words)

    def _answer(self, entry: Entry) -> None:
        value = entry.value
        self.entries[entry.first] = entry
        self.talk.act(
            Action(
                answer_blocks(value),
                (entry.first,),
                text(value.get("model")),
                usage=mapping(value.get("tokens")),
                time=text(value.get("timestamp")),
            )
        )
        for record in mappings(value.get("toolCalls")):
            ended = result(record)
            if ended is None:
                continue
            told, media = ended
            row = entry.ends.get(string(record.get("id")), entry.rows[-1])
            self.talk.answer(told, record=row, media=media)
            if len(told.text) >= _CUT:
                self._lose("cut tool outputs")
            if agent := text(record.get("agentId")):
                self.talk.event("spawn", row, agent=agent, call=told.call_id)

    def _take_back(self, change: TakenBack) -> None:
        gone = {entry.first for entry in change.entries}
        self.talk.event("rewind", change.row, messages=len(gone))
        self.talk.leave(lambda number: number in gone)

    def _replace(self, change: Replaced) -> None:
        compressed = change.dropped or bool(change.new)
        self.talk.event("compaction" if compressed else "masking", change.row, messages=len(change.messages))
        self.talk.forget(lambda number: True)
        for entry, value in change.messages:
            if entry.id in change.new and (value.get("model") or value.get("tokens")):
                self._say(entry)
            else:
                self._retell(entry, value)

    def _retell(self, entry: Entry, value: Mapping[str, Any]) -> None:
        """A message of the replaced history: context, and no step."""
        self._use(entry, "context")
        records = (entry.first,)
        if value.get("type") == "user":
            self.talk.tell(Message("user", read_content(value.get("content")).blocks, records))
        elif value.get("type") == "gemini":
            self.talk.tell(Message("assistant", tuple(answer_blocks(value)), records))
            for record in mappings(value.get("toolCalls")):
                if (ended := result(record)) is not None:
                    self.talk.tell(Message("tool", (ended[0], *ended[1]), records))

    def _lose(self, what: str) -> None:
        missing = self.talk.setting.missing
        if what not in missing:
            self.talk.change(fidelity="partial", missing=(*missing, what))


def answer_blocks(value: Mapping[str, Any]) -> list[Block]:
    """Thoughts, content and calls. Newer versions keep calls and thoughts in the content as well: they count once."""
    content = list(read_content(value.get("content")).blocks)
    calls = mappings(value.get("toolCalls"))
    if calls:
        content = [block for block in content if not isinstance(block, ToolCall)]
    blocks: list[Block] = []
    if not any(isinstance(block, Reasoning) and block.text for block in content):
        blocks += [_thought(thought) for thought in mappings(value.get("thoughts"))]
    blocks += content
    return blocks + [call(string(c.get("name")), c.get("args"), id=c.get("id")) for c in calls]


def _thought(thought: Mapping[str, Any]) -> Reasoning:
    subject, description = string(thought.get("subject")), string(thought.get("description"))
    return Reasoning(f"**{subject}**\n{description}" if subject else description)


def result(record: Mapping[str, Any]) -> tuple[ToolResult, tuple[Media, ...]] | None:
    """What came back for a recorded call, None while it is open. Only the status says whether it failed."""
    raw, status = record.get("result"), record.get("status")
    if not raw and string(status) not in _DONE:
        return None
    shown_parts = [_shown(part) for part in (raw if isinstance(raw, list) else [raw]) if part is not None]
    said = "\n".join(words for words, _ in shown_parts)
    media = tuple(picture for _, pictures in shown_parts for picture in pictures)
    flag = None if string(status) not in _DONE else status != "success"
    return ToolResult(string(record.get("id")), said, flag, _status(status, said)), media


def _status(status: object, said: str) -> ResultStatus:
    if status == "cancelled":
        return "rejected" if any(words in said for words in _REFUSED) else "interrupted"
    return "error" if status == "error" else "ok"


def _shown(part: object) -> tuple[str, tuple[Media, ...]]:
    """A part of a result as text. Of a function's response the output or the error itself is the text."""
    response = mapping(mapping(part).get("functionResponse")).get("response")
    if isinstance(response, dict):
        return response_text(response), ()
    blocks = read_content(part).blocks
    return shown(blocks), tuple(block for block in blocks if isinstance(block, Media))
