"""`Telling`: one row's turns told as a conversation, with the use of every turn written down.

Data sets are careless about ids: calls have none, or all have the same. A call without an id gets one by its place in
the conversation; a result without an id answers the oldest open call of its tool's name, else the oldest open call. A
result that answers nothing is an orphan: it stays in the contexts, where the model saw it, and belongs to no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from postgrad.core.message import Block, Media, Message, ResultStatus, Role, Tool, ToolCall, ToolResult
from postgrad.core.trace import EVALUATION, Feedback, Source, Trace
from postgrad.traces.conversation import Action, Conversation, Setting
from postgrad.traces.formats.datasets.rows import Row
from postgrad.traces.formats.shapes.said import RawResult, Said


def setting(*, tools: tuple[Tool, ...], system: bool, calls: bool, purpose: str | None = None) -> Setting:
    """What a row of messages can claim: all messages are there, tools and sampling parameters often are not."""
    params = {"purpose": EVALUATION} if purpose == EVALUATION else {}
    missing = ("tool schemas",) if calls and not tools else ()
    if missing and not system:
        return Setting("partial", ("system prompt", *missing, "sampling parameters"), tools, params)
    return Setting("exact-messages", (*missing, "sampling parameters"), tools, params)


class Telling:
    """The turns of `row`, one after the other, as a trace in the making."""

    def __init__(self, row: Row, what: Setting) -> None:
        self.talk = Conversation(what)
        self.orphans: list[ToolResult] = []
        self._row = row
        self._unnamed = 0
        self._asked: list[tuple[str, str]] = []

    def say(self, turn: int, role: Role, blocks: Sequence[Block]) -> None:
        """Something that the model sees from here on."""
        record = self._row.record(turn)
        self._row.use(turn, "context", role)
        message = Message(role, tuple(blocks), (record,))
        self.talk.tell(message)
        if role == "user" and message.text:
            self.talk.event("user_text", record, message.text)

    def act(self, turn: int, blocks: Iterable[Block], action: Action | None = None, *, is_step: bool = True) -> None:
        """An answer of the model; `action` brings its model, usage, stop reason and time.

        An answer that is no step (weight 0: context, not to be learnt) is told with its calls and asks for nothing.
        """
        named = tuple(self._named(block) for block in blocks)
        about = action or Action(())
        if not is_step:
            self._row.use(turn, "context", "assistant")
            self._asked += [(block.id, block.name) for block in named if isinstance(block, ToolCall)]
            self.talk.tell(Message("assistant", named, (self._row.record(turn),)))
            return
        self._row.use(turn, "step", "assistant")
        self.talk.act(msgspec.structs.replace(about, blocks=named, records=(self._row.record(turn),)))

    def answer(self, turn: int, result: RawResult, *, status: ResultStatus | None = None) -> None:
        """A tool's result; `status` where it is more than "ok" or "error"."""
        record = self._row.record(turn)
        key = result.id or self._oldest(result.name)
        media = tuple(block for block in result.media if isinstance(block, Media))
        said: ResultStatus = status or ("error" if result.is_error else "ok")
        block = ToolResult(key, result.text, result.is_error, said)
        if key and self.talk.answer(block, record=record, media=media):
            self._row.use(turn, "result", "tool")
            return
        if (asked := self._asked_for(key, result.name)) is not None:
            told = msgspec.structs.replace(block, call_id=asked)
            self.talk.tell(Message("tool", (told, *media), (record,)))
            self._row.use(turn, "context", "tool")
            return
        orphan = msgspec.structs.replace(block, call_id=key or result.name or f"orphan_{len(self.orphans)}")
        self.orphans.append(orphan)
        self.talk.tell(Message("tool", (orphan, *media), (record,)))
        self._row.use(turn, "orphan_result", "tool")
        self._row.books.note("a tool result whose call is not there", done="kept as an orphan", line=record)

    def said(self, turn: int, said: Said, *, is_step: bool = True) -> None:
        """A message in any shape: results in it answer their calls, an assistant's words are a step."""
        results = [part for part in said.parts if isinstance(part, RawResult)]
        blocks = [part for part in said.parts if not isinstance(part, RawResult)]
        for result in results:
            self.answer(turn, result)
        if said.role == "assistant":
            self.act(turn, blocks, Action((), stop_reason=said.finish), is_step=is_step)
        elif blocks or not results:
            self.say(turn, "user" if said.role == "tool" else said.role, blocks)

    def judge(self, kind: str, value: float | None, *, source: str, text: str = "") -> None:
        """A judgement on the whole conversation: it stands at its last step."""
        self.talk.judge(Feedback(kind, value, text, source))

    def trace(self, source: Source, *name: object, index: int, task: str | None = None) -> Trace | None:
        """The finished trace, None if nobody acted. Without a name its messages are what makes it that conversation."""
        if not self.talk.steps:
            return None
        told = self.talk.trace(source, *(name or tuple(self.talk.pool.messages)), index=index)
        return None if told is None else msgspec.structs.replace(told, task_id=task, orphans=tuple(self.orphans))

    def _named(self, block: Block) -> Block:
        if not isinstance(block, ToolCall):
            return block
        if not block.id:
            block = msgspec.structs.replace(block, id=f"call_{self._unnamed}")
            self._unnamed += 1
        return block

    def _asked_for(self, key: str, name: str) -> str | None:
        """The call of an answer that was only context, which a result answers: it is context as well."""
        fits = [call for call in self._asked if call[0] == key] if key else []
        named = [call for call in self._asked if not key and name in ("", call[1])]
        found = next(iter(fits or named), None)
        if found is None:
            return None
        self._asked.remove(found)
        return found[0]

    def _oldest(self, name: str) -> str:
        """The id of the open call that a result without an id answers: one of that name, else the first."""
        pending = self.talk.pending
        named = [call for call in pending if call.name == name]
        chosen = next(iter(named or pending), None)
        return (chosen.provider_id or chosen.id) if chosen else ""
