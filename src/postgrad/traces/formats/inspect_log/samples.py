"""One sample of an Inspect log as traces: the main conversation, and one for each inner agent and scorer.

A step is a model event that has an answer; its input is the very context. A tool event holds a call's result; where a
log has none, the tool messages of the next input do. A sample without any event has only its final messages: their
assistant turns are then the steps, and tool messages without their calls are orphans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Media, ResultStatus, Tool, ToolResult
from postgrad.core.trace import Source, StepKind, Trace
from postgrad.traces.conversation import Action, Conversation, Setting
from postgrad.traces.formats.datasets.rows import Books, Row
from postgrad.traces.formats.datasets.telling import Telling
from postgrad.traces.formats.inspect_log.messages import (
    Attachments,
    raw_arguments,
    read_message,
    read_result,
    read_score,
)
from postgrad.traces.formats.inspect_log.spans import Lane, Lanes
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text, written
from postgrad.traces.formats.shapes.said import RawResult, Said, settle
from postgrad.traces.formats.shapes.tools import tools

_EVENTS = frozenset({"approval", "sample_limit", "interrupt", "compaction", "error", "input", "branch", "review"})
_QUIET = frozenset(
    {
        *("sample_init", "span_begin", "span_end", "step", "state", "store", "info", "logger", "sandbox", "subtask"),
        *("anchor", "checkpoint", "score_edit", "sentinel", "sample_summary"),
    }
)


@dataclass
class Sample:
    """A sample while it is read. `first` is the record number of its first event (or message)."""

    value: Mapping[str, Any]
    books: Books
    first: int
    source: Source
    name: tuple[object, ...]
    task: str
    lanes: dict[str, tuple[Lane, Conversation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        transcript = mapping(self.value.get("transcript"))
        kept = mapping(self.value.get("attachments")) | mapping(transcript.get("content"))
        self._attached = Attachments(kept)
        data = mapping(self.value.get("events_data"))
        self._pool = data.get("messages") or self.value.get("message_pool") or []
        self._told: dict[str, set[str]] = {}

    @property
    def events(self) -> list[Any]:
        """The sample's events, in whichever place its version keeps them."""
        return records_of(self.value)[0]

    def traces(self, index: int) -> Iterator[Trace]:
        """The traces, the main one first."""
        if not self.events:
            yield from self._from_messages(index)
            return
        lanes = Lanes()
        unknown: Counter[str] = Counter()
        for place, event in enumerate(self.events):
            self._read(lanes, event if isinstance(event, dict) else {}, self.first + place, unknown)
        for kind, count in unknown.items():
            self.books.note(f"unknown event '{kind}', {count} of them", done="kept raw, in no step")
        for reference in sorted(self._attached.missing)[:3]:
            self.books.note(f"{reference} leads nowhere", done="the reference stands in the text")
        self._judge()
        yield from self._finished(index)

    def _read(self, lanes: Lanes, event: dict[str, Any], record: int, unknown: Counter[str]) -> None:
        kind = string(event.get("event"))
        lanes.follow(event)
        lane = lanes.of(event)
        if kind == "model":
            self.books.use(record, self._model(lane, event, record), kind)
        elif kind == "tool":
            self.books.use(record, self._tool(lane, event, record), kind)
        elif kind in _EVENTS or kind == "score":
            self._happened(lane, kind, event, record)
            self.books.use(record, "event", kind)
        else:
            self.books.use(record, "metadata" if kind in _QUIET else "unknown", kind or "?")
            if kind not in _QUIET:
                unknown[kind or "?"] += 1
        for inner in mappings(event.get("events")):  # old logs keep what a tool did inside its event
            self._read(lanes, inner, record, unknown)

    def _talk(self, lane: Lane) -> Conversation:
        if lane.key not in self.lanes:
            kind: StepKind = "subagent" if lane.key else "main"
            talk = Conversation(Setting("exact", kind=kind, agent=lane.agent))
            if lane.key and "" in self.lanes:
                self.lanes[""][1].event("spawn", self.first, agent=lane.agent or lane.key)
            self.lanes[lane.key] = lane, talk
        return self.lanes[lane.key][1]

    def _model(self, lane: Lane, event: dict[str, Any], record: int) -> str:
        talk = self._talk(lane)
        output = mapping(event.get("output"))
        choices = [choice for choice in mappings(output.get("choices")) if isinstance(choice.get("message"), dict)]
        if not choices:
            pending = "the call was still pending" if event.get("pending") else "the call has no answer"
            talk.event("api_error", record, string(event.get("error")) or pending)
            return "event"
        before = len(self._attached.missing)
        said = [read_message(self._attached.resolve(item)) for item in self._input(event)]
        self._late_results(talk, said, record)
        self._user_texts(lane, talk, said, record)
        whole = len(self._attached.missing) == before
        talk.change(
            fidelity="exact" if whole else "partial",
            missing=() if whole else ("attachments",),
            tools=self._tools(event),
            params=_params(event),
            agent=lane.agent,
        )
        raw = raw_arguments(self._attached.resolve({"call": event.get("call")}))
        actions = [self._action(event, output, choice, record, raw) for choice in choices]
        talk.act(actions[0], context=talk.pool.extend(settle(said, record=record)))
        for action in actions[1:]:
            talk.offer(action)
        return "step"

    def _input(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages of a model event; a newer log has them once, in a pool, and ranges of places in it."""
        listed = mappings(event.get("input"))
        refs = event.get("input_refs")
        for ref in refs if isinstance(refs, list) else []:
            if isinstance(ref, list) and len(ref) == 2 and all(isinstance(at, int) and at >= 0 for at in ref):
                listed += mappings(self._pool[ref[0] : ref[1]]) if isinstance(self._pool, list) else []
        return listed

    def _action(
        self,
        event: Mapping[str, Any],
        output: Mapping[str, Any],
        choice: Mapping[str, Any],
        record: int,
        raw: dict[str, str],
    ) -> Action:
        said = read_message(self._attached.resolve({**choice["message"], "role": "assistant"}), raw)
        return Action(
            [part for part in said.parts if not isinstance(part, RawResult)],
            (record,),
            model=text(output.get("model")) or text(event.get("model")),
            stop_reason=text(choice.get("stop_reason")),
            usage=mapping(output.get("usage")),
            time=text(event.get("timestamp")),
        )

    def _tools(self, event: Mapping[str, Any]) -> tuple[Tool, ...]:
        return tools(self._attached.resolve(event.get("tools")))

    def _tool(self, lane: Lane, event: dict[str, Any], record: int) -> str:
        """A tool's run. Its event can stand in the agent's span below the one that called it."""
        found = read_result(self._attached.resolve({key: value for key, value in event.items() if key != "events"}))
        result = msgspec.structs.replace(found, call_id=string(event.get("id")))
        for talk in (self._talk(lane), *(talk for _, talk in self.lanes.values())):
            if event.get("pending") is not True and talk.answer(result, record=record):
                return "result"
        return "orphan_result" if event.get("pending") is not True else "event"

    def _late_results(self, talk: Conversation, said: list[Said], record: int) -> None:
        """Results without an event of their own: the tool messages after the last answer."""
        for one in said[_after_last_answer(said) :]:
            for part in one.parts:
                if isinstance(part, RawResult):
                    _answer(talk, part, record)

    def _user_texts(self, lane: Lane, talk: Conversation, said: list[Said], record: int) -> None:
        seen = self._told.setdefault(lane.key, set())
        for one in said:
            words = "".join(getattr(part, "text", "") for part in one.parts) if one.role == "user" else ""
            if words and words not in seen:
                seen.add(words)
                talk.event("user_text", record, words)

    def _happened(self, lane: Lane, kind: str, event: Mapping[str, Any], record: int) -> None:
        if kind == "score":
            return  # the sample's scores hold the final ones
        words = {"approval": "explanation", "input": "input"}.get(kind, "message")
        error = mapping(event.get("error"))
        said = string(event.get(words)) or string(error.get("message"))
        data = {key: event[key] for key in ("decision", "approver", "type", "source", "interrupted") if event.get(key)}
        call = mapping(event.get("call"))
        data |= {"call": call["id"]} if call.get("id") else {}
        named = "user_text" if kind == "input" else kind
        self._talk(lane).event(named, record, written(self._attached.resolve(said)), **data)

    def _scores(self) -> dict[str, Any]:
        """The final scores; very old logs have one without a name."""
        one = {"score": self.value["score"]} if isinstance(self.value.get("score"), dict) else {}
        return mapping(self.value.get("scores")) or one

    def _judge(self) -> None:
        for lane, talk in self.lanes.values():
            for name, score in self._scores().items() if not lane.key else ():
                talk.judge(read_score(str(name), score))

    def _finished(self, index: int) -> Iterator[Trace]:
        """The main trace first; an inner one has it as its parent."""
        parent: str | None = None
        for lane, talk in sorted(self.lanes.values(), key=lambda entry: entry[0].key != ""):
            self._last_results(talk)
            key = (*self.name, lane.key) if lane.key else self.name
            trace = talk.trace(self.source, *key, index=index, parent=parent if lane.key else None)
            if trace is None:
                continue
            parent = parent or (trace.id if not lane.key else None)
            index += 1
            yield msgspec.structs.replace(trace, task_id=self.task)

    def _last_results(self, talk: Conversation) -> None:
        """What came after the last answer is in the sample's final messages only, where there is no event for it."""
        if not talk.pending:
            return
        said = [read_message(self._attached.resolve(item)) for item in mappings(self.value.get("messages"))]
        for one in said[_after_last_answer(said) :]:
            for part in one.parts:
                if isinstance(part, RawResult):
                    _answer(talk, part, self.first + len(self.events) - 1)

    def _from_messages(self, index: int) -> Iterator[Trace]:
        """A sample of which only the final messages were kept."""
        listed = records_of(self.value)[1]
        numbers = tuple(range(self.first, self.first + len(listed)))
        if not listed:
            return
        what = Setting("reconstructed", ("model events", "tool schemas", "sampling parameters"))
        telling = Telling(Row({}, numbers, self.books), what)
        for turn, item in enumerate(listed):
            if isinstance(item, dict):
                telling.said(turn, read_message(self._attached.resolve(item)))
            else:
                self.books.use(numbers[turn], "unknown", type(item).__name__)
        for name, score in self._scores().items():
            telling.talk.judge(read_score(str(name), score))
        trace = telling.trace(self.source, *self.name, index=index, task=self.task)
        if trace is None and telling.orphans:
            key = content_id([self.source.format, *self.name])
            orphans = tuple(telling.orphans)
            trace = Trace(
                key, self.source, telling.talk.pool.messages, (), index=index, task_id=self.task, orphans=orphans
            )
        if trace is not None:
            yield trace


def records_of(sample: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """A sample's events, and its final messages where there are no events: its records."""
    events = sample.get("events") or mapping(sample.get("transcript")).get("events")
    messages = sample.get("messages")
    if isinstance(events, list) and events:
        return events, []
    return [], messages if isinstance(messages, list) else []


def _after_last_answer(said: list[Said]) -> int:
    return next((place + 1 for place in range(len(said) - 1, -1, -1) if said[place].role == "assistant"), 0)


def _answer(talk: Conversation, part: RawResult, record: int) -> None:
    media = tuple(block for block in part.media if isinstance(block, Media))
    status: ResultStatus = "error" if part.is_error else "ok"
    talk.answer(ToolResult(part.id, part.text, part.is_error, status), record=record, media=media)


def _params(event: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling parameters, the tool choice, and whether the answer came from a cache."""
    config = {key: value for key, value in mapping(event.get("config")).items() if value is not None}
    more = {key: event[key] for key in ("tool_choice", "role", "cache") if event.get(key) is not None}
    return {**config, **more}
