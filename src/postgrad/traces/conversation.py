"""`Conversation`: a history while it is read, message by message, and the trace that it becomes.

Most agents keep one list: instructions, the user, an answer, its results, the next answer. A reader walks over its
records and says what each of them is; every `act` is a step, whose context is what was told before and not forgotten:

    talk = Conversation(fidelity="partial", missing=("system prompt",))
    talk.tell(Message.of("user", "List the files"))
    talk.act(Action((Text("Sure."), call), records=(1,)))
    talk.answer(ToolResult("call-1", "a.txt", False), record=2)
    talk.trace(source, id)

Results stand behind the action that asked for them, also when something was said in between. A compaction forgets
messages, a rewind leaves steps behind as an abandoned branch. Not covered: histories that are trees in the file
(Claude Code has its own assembler).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Block, Media, Message, Tool, ToolCall, ToolResult
from postgrad.core.prefix import Ids, beginning, grown
from postgrad.core.trace import Candidate, Event, Feedback, Fidelity, Request, Source, Step, StepKind, Trace
from postgrad.traces.pool import CallIds, MessagePool


class Action(msgspec.Struct, frozen=True):
    """An answer of the model. Calls in `blocks` carry the provider's ids, which need not be unique."""

    blocks: Sequence[Block]
    records: tuple[int, ...] = ()
    model: str | None = None
    stop_reason: str | None = None
    usage: Mapping[str, Any] = {}
    time: str | None = None


@dataclass(frozen=True)
class Setting:
    """What holds for the steps that follow: how well their contexts are known, tools, parameters, kind, agent."""

    fidelity: Fidelity = "partial"
    missing: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    kind: StepKind = "main"
    agent: str | None = None


def provider_key(call: ToolCall) -> str:
    """The id that the provider gave a call, which may be empty."""
    return call.id if call.provider_id is None else call.provider_id


class _Draft(msgspec.Struct):
    """A step while results and judgements can still come."""

    request: Request
    candidates: list[Candidate]
    records: tuple[int, ...]
    time: str | None
    setting: Setting
    parent: int | None = None
    abandoned: bool = False
    results: dict[str, ToolResult] = {}
    feedback: list[Feedback] = []


class _Shown(msgspec.Struct, frozen=True):
    """A message that the model sees: its id, records, and the step whose action or result it is (None: neither)."""

    id: str
    records: tuple[int, ...]
    step: int | None = None


class Conversation:
    """One history under construction. Events and steps are numbered in the order in which they are told."""

    def __init__(self, setting: Setting | None = None, **changes: Any) -> None:
        self.setting = replace(setting or Setting(), **changes)
        self.pool = MessagePool()
        self.events: list[Event] = []
        self.result_records: dict[str, int] = {}
        self._drafts: list[_Draft] = []
        self._shown: list[_Shown] = []
        self._ids_shown: Ids = ()
        self._ids = CallIds()
        self._owner: dict[str, int] = {}
        self._place = 0
        self._parent: int | None = None

    @property
    def steps(self) -> int:
        """Steps so far."""
        return len(self._drafts)

    @property
    def pending(self) -> list[ToolCall]:
        """Calls of the last step that have no result yet, in order."""
        if not self._drafts:
            return []
        last = self._drafts[-1]
        return [call for call in last.candidates[0].message.tool_calls if call.id not in last.results]

    def change(self, **changes: Any) -> None:
        """Other settings from here on."""
        self.setting = replace(self.setting, **changes)

    def tell(self, message: Message) -> None:
        """A message that the model sees from here on; one without blocks is none."""
        if message.blocks:
            self._shown.append(_Shown(self.pool.add(message), message.records))

    def message(self, step: int) -> Message:
        """The action of a step."""
        return self._drafts[step].candidates[0].message

    def act(self, action: Action, *, context: Iterable[str] | None = None) -> int:
        """A step, and its index. `context` (ids of the pool) overrides what was told, where the source has it."""
        index = self.steps
        self._place += 1
        message = Message("assistant", tuple(self._named(action.blocks, index)), action.records)
        ids = self._context() if context is None else tuple(context)
        now = self.setting
        request = Request(ids, now.tools, dict(now.params), now.fidelity, now.missing)
        answer = Candidate(message, action.model, action.stop_reason, dict(action.usage))
        self._drafts.append(_Draft(request, [answer], action.records, action.time, now, self._parent))
        self._parent = None
        self._shown.append(_Shown(self.pool.add(message), action.records, index))
        return index

    def _context(self) -> Ids:
        """What is shown now. It mostly grows at its end, and then the contexts share their ids."""
        self._ids_shown = grown(self._ids_shown, [entry.id for entry in self._shown[len(self._ids_shown) :]])
        return self._ids_shown

    def log(self, *, usage: Mapping[str, Any] | None = None, stop_reason: str | None = None) -> None:
        """What the source says about the last answer only behind it."""
        if self._drafts:
            first = self._drafts[-1].candidates[0]
            usage = {**first.usage, **(usage or {})}
            changed = msgspec.structs.replace(first, usage=usage, stop_reason=stop_reason or first.stop_reason)
            self._drafts[-1].candidates[0] = changed

    def offer(self, action: Action, *, step: int = -1) -> None:
        """Another answer at a step (the last one), which was not taken: a regeneration."""
        draft = self._drafts[step]
        message = Message("assistant", tuple(action.blocks), action.records)
        draft.candidates.append(Candidate(message, action.model, action.stop_reason, dict(action.usage), chosen=False))
        draft.records += tuple(number for number in action.records if number not in draft.records)

    def answer(self, result: ToolResult, *, record: int, media: Sequence[Media] = ()) -> bool:
        """A result (its `call_id` is the provider's) for the nearest earlier call of that id; False for an orphan."""
        self._place += 1
        call = self._ids.answered(result.call_id, place=self._place)
        while call is not None and call in self.result_records:  # settled before, in another way than by its id
            call = self._ids.answered(result.call_id, place=self._place)
        if call is None:
            return False
        self._settle(call, result, record, media)
        return True

    def settle(self, call: ToolCall, result: ToolResult, *, record: int, media: Sequence[Media] = ()) -> bool:
        """`answer` for a call that was found in another way than by the result's id (its order, its tool's name)."""
        if call.id in self.result_records:
            return False
        self._settle(call.id, msgspec.structs.replace(result, call_id=provider_key(call)), record, media)
        return True

    def _settle(self, call: str, result: ToolResult, record: int, media: Sequence[Media]) -> None:
        provider_id = result.call_id if result.call_id != call else None
        block = msgspec.structs.replace(result, call_id=call, provider_id=provider_id)
        step = self._owner[call]
        self._drafts[step].results[call] = block
        self.result_records[call] = record
        self._insert(Message("tool", (block, *media), (record,)), step)

    def event(self, kind: str, record: int, text: str = "", **data: Any) -> None:
        """Something that happened before the next step."""
        self.events.append(Event(kind, self.steps, record, text, data))

    def judge(self, feedback: Feedback, *, step: int = -1) -> None:
        """A judgement on a step, the last one by default; before the first step there is nothing to judge."""
        if self._drafts:
            self._drafts[step].feedback.append(feedback)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """From here on the model does not see the messages of the records for which `gone` is true."""
        self._shown = [entry for entry in self._shown if not any(gone(number) for number in entry.records)]
        self._ids_shown = ()

    def condense(self, gone: Callable[[int], bool], summary: Message) -> None:
        """`forget`, with a summary in the place of what is gone (at the end if nothing is)."""
        kept: list[_Shown] = []
        place: int | None = None
        for entry in self._shown:
            if any(gone(number) for number in entry.records):
                place = len(kept) if place is None else place
            else:
                kept.append(entry)
        if summary.blocks:
            kept.insert(len(kept) if place is None else place, _Shown(self.pool.add(summary), summary.records))
        self._shown, self._ids_shown = kept, ()

    def rewind(self, record: int) -> None:
        """The user went back: steps from `record` on are left behind, and what follows goes on from before them."""
        self.leave(lambda number: number >= record)

    def leave(self, gone: Callable[[int], bool]) -> None:
        """`rewind`, where the order of the records is not that of the history: `gone` says what was taken back."""
        self.forget(gone)
        kept = None
        for index, draft in enumerate(self._drafts):
            if draft.records and gone(draft.records[0]):
                draft.abandoned = True
            elif not draft.abandoned:
                kept = index
        self._parent = kept

    @property
    def beginning(self) -> list[str]:
        """What a copy of this history, or a grown one, shares with it: the first context and the first action."""
        first = self._drafts[0]
        return [*first.request.messages, first.candidates[0].message.id]

    def trace(self, source: Source, *name: object, index: int = 0, parent: str | None = None) -> Trace | None:
        """The finished trace, None if the model never answered. `name` says which session it is, else its beginning."""
        if not self._drafts:
            return None
        known = [part for part in name if part is not None]
        return Trace(
            content_id([source.format, *(known or self.beginning)]),
            source,
            self.pool.messages,
            tuple(self._step(number, draft) for number, draft in enumerate(self._drafts)),
            index=index,
            events=tuple(self.events),
            parent=parent,
            result_records=self.result_records,
        )

    def _named(self, blocks: Iterable[Block], step: int) -> Iterable[Block]:
        for block in blocks:
            if isinstance(block, ToolCall):
                block = self._ids.unique(block, place=self._place)
                self._owner[block.id] = step
            yield block

    def _insert(self, message: Message, step: int) -> None:
        """Behind the step's action and the results before; nowhere if the action is forgotten."""
        for place in range(len(self._shown) - 1, -1, -1):
            if self._shown[place].step == step:
                self._shown.insert(place + 1, _Shown(self.pool.add(message), message.records, step))
                if place + 1 < len(self._ids_shown):
                    self._ids_shown = beginning(self._ids_shown, place + 1)
                return

    def _step(self, index: int, draft: _Draft) -> Step:
        calls = draft.candidates[0].message.tool_calls
        return Step(
            index,
            draft.request,
            tuple(draft.candidates),
            results=tuple(draft.results[call.id] for call in calls if call.id in draft.results),
            feedback=tuple(draft.feedback),
            kind=draft.setting.kind,
            records=draft.records,
            time=draft.time,
            parent=draft.parent,
            abandoned=draft.abandoned,
            agent=draft.setting.agent,
        )
