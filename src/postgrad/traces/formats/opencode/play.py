"""A session of opencode, told to a conversation.

A step is one span from `step-start` to `step-finish`; old versions hold several in one message. What later steps see
follows `toModelMessages` of the application: answers that ended in an error are left out (unless the user stopped them
when something was there already), outputs that were cleared are a note, and after a compaction the context is the
question, the summary and the messages from `tail_start_id` on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any

from postgrad.core.message import Message, Opaque, Text, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.opencode import parts as shown
from postgrad.traces.formats.opencode.sessions import Part, Session, Told
from postgrad.traces.formats.shapes.plain import mapping, moment, string, text
from postgrad.traces.renumber import renumber

_ABORTED = "MessageAbortedError"


class Play:
    """One session while it is told. `copied` are ids of messages that a fork took over from its parent."""

    def __init__(self, session: Session, copied: Collection[str]) -> None:
        self._session, self._copied = session, copied
        kind = "subagent" if session.parent and not copied else "main"
        self._talk = Conversation(fidelity="reconstructed", missing=("system prompt", "tool schemas"), kind=kind)
        self._next = count()
        self._names: dict[int, tuple[int, ...]] = {}
        self._of: dict[str, list[int]] = {}
        self._cleared: list[tuple[float, int, Part]] = []
        self._agent: str | None = None
        self.uses: dict[int, str] = {}

    def trace(self, source: Source, *, name: Sequence[object], index: int, parent: str | None) -> Trace | None:
        """The finished trace, None if the model never answered."""
        self._instructions()
        for told in self._session.ordered():
            if told.role == "user":
                self._user(told)
            elif told.role == "assistant":
                self._answer(told)
            else:
                for part in told.parts.values():
                    self._use(part.rows, "orphan_part")
                self._use(told.rows, "unknown")
        self._revert()
        trace = self._talk.trace(source, *name, index=index, parent=parent)
        return None if trace is None else renumber(trace, self._names)

    def _name(self, told: Told, rows: Sequence[int]) -> int:
        name = next(self._next)
        self._names[name] = tuple(rows)
        self._of.setdefault(told.id, []).append(name)
        return name

    def _use(self, rows: Sequence[int], used_as: str) -> None:
        """The last record of a message or part is what was used; the ones before it grew into it."""
        for row in reversed(rows):
            self.uses.setdefault(row, used_as)
            used_as = "superseded"

    def _instructions(self) -> None:
        """The oldest versions keep the system prompt with every answer."""
        first = next((told for told in self._session.ordered() if isinstance(told.info.get("system"), list)), None)
        texts = [Text(part) for part in first.info["system"] if isinstance(part, str)] if first else []
        if first is not None and texts:
            self._talk.tell(Message("system", tuple(texts), (self._name(first, first.rows),)))
            self._talk.change(missing=("tool schemas",))

    def _user(self, told: Told) -> None:
        copied = told.id in self._copied
        self._use(told.rows, "copied" if copied else "context")
        for part in told.parts.values():
            self._use(part.rows, "copied" if copied else _user_use(part))
        rows = [*told.rows, *(row for part in told.parts.values() for row in part.rows[-1:])]
        name = self._name(told, rows)
        self._talk.tell(Message("user", tuple(shown.user_blocks(told.parts.values())), (name,)))
        record = rows[0] if rows else -1
        self._switch(told, record)
        if any(part.kind == "compaction" for part in told.parts.values()):
            self._talk.event("compaction", record)
        words = shown.typed(told.parts.values())
        if words.strip() and told.id not in self._copied:
            self._talk.event("user_text", record, words)

    def _switch(self, told: Told, record: int) -> None:
        agent = text(told.info.get("agent")) or text(told.info.get("mode"))
        if self._agent is not None and agent is not None and agent != self._agent:
            self._talk.event("mode_change", record, agent)
        self._agent = agent or self._agent

    def _answer(self, told: Told) -> None:
        if not told.parts:
            self._use(told.rows, "event" if told.error else "metadata")
        self._use(told.rows, "step" if told.id not in self._copied else "copied")
        self._clear(told)
        spans = [span for span in _spans(told.parts.values()) if _says_something(span)]
        for span in spans:
            self._span(told, span)
        for part in told.parts.values():
            if part.kind == "retry":
                self._use(part.rows, "event")
                self._talk.event("api_error", part.rows[-1], _message(part.value.get("error")))
            self._use(part.rows, "event" if part.kind in shown.MARKS else "ui")
        self._ended(told, bool(spans))

    def _span(self, told: Told, span: Sequence[Part]) -> None:
        blocks = shown.answer_blocks(span)
        numbers = [*told.rows[-1:], *(row for part in span for row in part.rows[-1:])]
        name = self._name(told, sorted(numbers))
        finish = next((part.value for part in reversed(span) if part.kind == "step-finish"), {})
        if told.id in self._copied:
            self._talk.tell(Message("assistant", tuple(blocks), (name,)))
        else:
            self._setting(told)
            self._talk.act(
                Action(
                    blocks,
                    (name,),
                    text(told.info.get("modelID")) or text(mapping(told.info.get("model")).get("modelID")),
                    text(finish.get("reason")) or text(told.info.get("finish")),
                    mapping(finish.get("tokens")) or mapping(told.info.get("tokens")),
                    moment(mapping(told.info.get("time")).get("created")),
                )
            )
        for part in span:
            self._part(told, part)

    def _setting(self, told: Told) -> None:
        kind = "compaction" if told.info.get("summary") is True else "subagent" if self._is_child else "main"
        agent = text(told.info.get("agent")) or text(told.info.get("mode"))
        provider = text(told.info.get("providerID"))
        params = {"provider": provider} if provider else {}
        self._talk.change(kind=kind, agent=agent if self._is_child else None, params=params)

    @property
    def _is_child(self) -> bool:
        return bool(self._session.parent) and not self._copied

    def _part(self, told: Told, part: Part) -> None:
        copied = told.id in self._copied
        ended = shown.result(part) if part.kind == "tool" else None
        if ended is not None:
            self._result(told, part, ended, copied=copied)
        used_as = "copied" if copied else "result" if ended else "step"
        if part.kind in shown.NO_CONTENT | shown.MARKS:
            used_as = "event" if part.kind in shown.MARKS else "ui"
        self._use(part.rows, "unknown" if _is_unknown(part) else used_as)

    def _result(self, told: Told, part: Part, ended: tuple[ToolResult, Any], *, copied: bool) -> None:
        found, media = ended
        name = self._name(told, part.rows[-1:])
        if copied:
            self._talk.tell(Message("tool", (found, *media), (name,)))
            return
        self._talk.answer(found, record=name, media=media)
        if words := shown.correction(found):
            self._talk.judge(Feedback("user_correction", text=words, source="user"))
        child = mapping(mapping(part.value.get("state")).get("metadata"))
        agent = text(child.get("sessionId")) or text(child.get("sessionID"))
        if agent:
            self._talk.event("spawn", part.rows[-1], agent=agent, call=found.call_id)
        if (at := shown.cleared_at(part)) is not None:
            self._cleared.append((at, name, part))

    def _clear(self, told: Told) -> None:
        """Outputs that were taken out of the context before this answer."""
        now = told.created
        for entry in [entry for entry in self._cleared if now is not None and entry[0] <= now]:
            self._cleared.remove(entry)
            _, name, part = entry
            note = ToolResult(string(part.value.get("callID")), shown.CLEARED)
            self._talk.condense({name}.__contains__, Message("tool", (note,), (name,)))

    def _ended(self, told: Told, answered: bool) -> None:
        """What later steps see of an answer, and why it ended."""
        record = told.rows[-1] if told.rows else -1
        if told.error:
            stopped = told.error == _ABORTED
            self._talk.event("interrupt" if stopped else "api_error", record, _message(told.info.get("error")))
            content = {part.kind for part in told.parts.values()} - {"step-start", "reasoning"}
            if not (stopped and content):
                mine = set(self._of.get(told.id, ()))
                self._talk.forget(lambda number: number in mine)
        elif told.info.get("summary") is True and answered:
            self._compact(told)

    def _compact(self, told: Told) -> None:
        """The context begins anew: the question, the summary, and the tail that was kept."""
        asked = self._session.messages.get(string(told.info.get("parentID")))
        tail = self._tail(asked)
        question, answer = self._of.get(asked.id, []) if asked else [], self._of.get(told.id, [])
        old = [name for owner, names in self._of.items() if owner not in tail for name in names]
        old = [name for name in old if name not in question and name not in answer]
        summary = Message("assistant", tuple(shown.answer_blocks(told.parts.values())), tuple(answer[:1]))
        asking = Message("user", tuple(shown.user_blocks(asked.parts.values())) if asked else (), tuple(question[:1]))
        first, rest = set(old[:1]), set(old[1:])
        if not (first and rest):
            self._talk.forget(lambda number: number in first)
            return
        self._talk.condense(lambda number: number in first or number in question, asking)
        self._talk.condense(lambda number: number in rest or number in answer, summary)

    def _tail(self, asked: Told | None) -> set[str]:
        parts = asked.parts.values() if asked else ()
        start = next((text(part.value.get("tail_start_id")) for part in parts if part.kind == "compaction"), None)
        ids = [told.id for told in self._session.ordered()]
        if asked is None or start not in ids:
            return set()
        return set(ids[ids.index(start) : ids.index(asked.id)])

    def _revert(self) -> None:
        """The user undid everything from a message on; it stays in the store until the next prompt."""
        target = mapping(self._session.info.get("revert")).get("messageID")
        ids = [told.id for told in self._session.ordered()]
        if target in ids:
            gone = {name for owner in ids[ids.index(target) :] for name in self._of.get(owner, ())}
            self._talk.event("rewind", self._session.rows[-1] if self._session.rows else -1)
            self._talk.leave(lambda number: number in gone)


def _spans(parts: Any) -> list[list[Part]]:
    """The parts by LLM call; parts before the first `step-start` belong to the first."""
    spans: list[list[Part]] = [[]]
    for part in parts:
        if part.kind == "step-start" and any(p.kind not in ("snapshot", "patch", "retry") for p in spans[-1]):
            spans.append([])
        spans[-1].append(part)
    return spans


def _is_unknown(part: Part) -> bool:
    return any(isinstance(block, Opaque) and block.type == part.kind for block in shown.answer_blocks([part]))


def _user_use(part: Part) -> str:
    if part.kind in shown.MARKS:
        return "event"
    return "unknown" if _is_unknown(part) else "ui" if part.kind in shown.NO_CONTENT else "context"


def _says_something(span: Sequence[Part]) -> bool:
    return bool(shown.answer_blocks(span)) or any(part.kind == "step-finish" for part in span)


def _message(error: object) -> str:
    data = mapping(error)
    inner: Mapping[str, Any] = mapping(data.get("data"))
    return string(inner.get("message")) or string(data.get("message")) or string(data.get("name"))
