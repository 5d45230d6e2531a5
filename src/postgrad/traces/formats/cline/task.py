"""The history that was sent to the model (`api_conversation_history.json`), told to a conversation.

An answer is one assistant message. Roo and Kilo keep what a condensation or a truncation took out: such messages name
the summary or marker (`condenseParent`, `truncationParent`), and from that one on they are not in the context. Cline
itself only notes the range of indices that it left out, on the screen's messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from postgrad.core.message import Block, Message, Opaque, Reasoning, Role, Text, ToolCall
from postgrad.core.trace import Feedback
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.cline.answers import read_reply, words_in
from postgrad.traces.formats.cline.xml_calls import TOOLS, split_calls
from postgrad.traces.formats.content import read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, moment, string, text

_HEADERS = re.compile(r"^\[([a-z]\w+)(?: .*)?\] Result:", re.MULTILINE)
_NO_TOOL = re.compile(r"\A\s*\[ERROR\] You did not use a tool")
_TASK = re.compile(r"<(task|user_message)>\s*(.*?)\s*</\1>", re.DOTALL)
_SUMMARIES = ("compaction", "compaction_summary")


class Task:
    """One task. `cut` gives, by index, the range of indices that Cline left out from that message on."""

    def __init__(self, talk: Conversation, *, usage: Sequence[Mapping[str, Any]] = ()) -> None:
        self.talk = talk
        self._usage = list(usage)
        self._thoughts: list[Block] = []
        self._thought_records: list[int] = []
        self._parents: dict[str, set[int]] = {}
        self._closed: set[str] = set()
        self.places: list[int] = []
        self._names = set(TOOLS)

    def learn_names(self, messages: Sequence[object]) -> None:
        """Tools that are not known by name yet (of servers, of newer versions) stand in the results' headers."""
        for message in messages:
            value = mapping(message)
            if value.get("role") == "user":
                said = shown(b for b in read_content(value.get("content")).blocks if isinstance(b, Text))
                self._names |= set(_HEADERS.findall(said))

    def tell(self, number: int, value: Mapping[str, Any]) -> str:
        """One message of the history, and what it was used as."""
        self._remember(number, value)
        if value.get("type") == "reasoning":
            self._thoughts += _thought(value)
            self._thought_records.append(number)
            return "step"
        if value.get("isSummary") or value.get("isTruncationMarker") or _kind(value) in _SUMMARIES:
            return self._summary(number, value)
        if value.get("role") == "assistant":
            return self._answer(number, value)
        if value.get("role") == "user":
            return self._reply(number, value)
        return "unknown"

    def leave_out(self, first: int, last: int) -> None:
        """From here on the model does not see the messages from one index to another."""
        self.talk.forget(lambda number: first <= number <= last)
        self.talk.event("compaction", last, forgotten=[first, last])

    def _remember(self, number: int, value: Mapping[str, Any]) -> None:
        for key in ("condenseParent", "truncationParent"):
            if text(value.get(key)):
                self._parents.setdefault(value[key], set()).add(number)

    def _hidden(self, value: Mapping[str, Any]) -> bool:
        return any(string(value.get(key)) in self._closed for key in ("condenseParent", "truncationParent"))

    def _summary(self, number: int, value: Mapping[str, Any]) -> str:
        name = text(value.get("condenseId")) or text(value.get("truncationId")) or ""
        self._closed |= {name} if name else set()
        gone = self._parents.get(name, set())
        blocks = read_content(value.get("content")).blocks
        role: Role = cast(Role, value["role"]) if value.get("role") in ("user", "assistant") else "user"
        self.talk.condense(gone.__contains__, Message(role, blocks, (number,)))
        self.talk.event("compaction", number, shown(blocks), forgotten=sorted(gone))
        return "context"

    def _answer(self, number: int, value: Mapping[str, Any]) -> str:
        content = read_content(value.get("content"))
        native = any(isinstance(block, ToolCall) for block in content.blocks)
        blocks = [*self._thoughts, *_extra_thoughts(value)]
        for place, block in enumerate(content.blocks):
            if isinstance(block, Text) and not native:
                blocks += split_calls(block.text, id=f"call-{self.talk.steps}-{place}", names=self._names)
            else:
                blocks.append(block)
        info, metrics = mapping(value.get("modelInfo")), mapping(value.get("metrics"))
        usage = self._usage[self.talk.steps] if self.talk.steps < len(self._usage) else {}
        action = Action(
            blocks,
            (*self._thought_records, number),
            text(info.get("modelId")) or text(info.get("id")) or text(value.get("model")),
            text(value.get("stop_reason")) or text(value.get("stopReason")),
            metrics or usage,
            moment(value.get("ts")),
        )
        self.talk.act(action)
        if self._hidden(value):
            self.talk.forget(lambda record: record == number)
        self.places.append(number)
        self._thoughts, self._thought_records = [], []
        return "step"

    def _reply(self, number: int, value: Mapping[str, Any]) -> str:
        content = read_content(value.get("content"))
        reply = read_reply(content.blocks, content.results, self.talk.pending)
        answered = False
        for item in reply.results:
            if self.talk.answer(item.result, record=number, media=item.media):
                answered = True
                self._judge(number, item.result.text, rejected=item.result.status == "rejected")
            else:
                reply.rest.append(Text(item.result.text))
                self.talk.event("orphan_result", number, item.result.text, call=item.result.call_id)
        for block in reply.rest:
            if isinstance(block, Text):
                self._said(number, block.text)
        if not self._hidden(value):
            self.talk.tell(Message("user", tuple(reply.rest), (number,)))
        return "result" if answered else "context"

    def _judge(self, number: int, said: str, *, rejected: bool) -> None:
        words = words_in(said)
        if rejected or words:
            kind = ("user_correction" if words else "user_reject") if rejected else "user_feedback"
            self.talk.judge(Feedback(kind, text=words, source="user"))
        if words:
            self.talk.event("user_text", number, words)

    def _said(self, number: int, said: str) -> None:
        found = _TASK.search(said)
        if _NO_TOOL.match(said):
            self.talk.judge(Feedback("malformed_call", text=said, source="cline"))
            self.talk.event("format_error", number, said)
        elif said.startswith("[TASK RESUMPTION]"):
            self.talk.event("resume", number, said)
        elif found:
            self.talk.event("user_text", number, found[2])
        elif not said.lstrip().startswith(("<", "[", "# ")) and said.strip():
            self.talk.event("user_text", number, said)


def _kind(value: Mapping[str, Any]) -> str:
    return string(mapping(value.get("metadata")).get("kind"))


def _thought(value: Mapping[str, Any]) -> list[Block]:
    """A reasoning item of its own (Roo with the Responses API)."""
    summary = value.get("summary") if isinstance(value.get("summary"), list) else value.get("text")
    said = shown(read_content(summary).blocks)
    return [Reasoning(said, encrypted=text(value.get("encrypted_content")))]


def _extra_thoughts(value: Mapping[str, Any]) -> list[Block]:
    """Reasoning that stands beside the content."""
    said = text(value.get("reasoning_content")) or text(value.get("reasoning"))
    details = value.get("reasoning_details")
    blocks: list[Block] = [Reasoning(said)] if said else []
    return [*blocks, Opaque("reasoning_details", details)] if details else blocks
