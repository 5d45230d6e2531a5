"""Anthropic's managed agents: the event stream of a session, as JSON lines or a list.

    {"type": "agent.tool_use", "id", "processed_at", ...}          events, as the API lists them
    ["client.beta.sessions.events.stream", {event}]                what a recorder of the SDK's calls writes

A step is a `span.model_request_start` with its end, and what the agent said between them; without those spans, a run of
agent events. Contexts are rebuilt from the events: the schemas of the built-in tools and the text of thoughts are
not in them. A denied tool is a rejected result; what the user wrote to it is feedback. What was sent is taken for
what the stream would echo only where there is no stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.message import Reasoning, Tool, ToolCall
from postgrad.core.trace import Feedback
from postgrad.traces.formats.shapes.parts import parts, result
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, moment, seconds, string, text, written
from postgrad.traces.formats.shapes.said import Said
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.spans.export import Export
from postgrad.traces.formats.spans.span import LLMCall, Span, ToolRun
from postgrad.traces.records import ReadResult, RecordStatus
from postgrad.traces.sources import jsonl
from postgrad.traces.sources.head import Head

_CALLS = ("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use")
_RESULTS = ("agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result")
_SAID = ("agent.message", "agent.thinking", *_CALLS)
_EVENTS = {
    "user.interrupt": "interrupt",
    "user.tool_confirmation": "approval",
    "session.error": "api_error",
    "agent.thread_context_compacted": "compaction",
    "agent.context_compacted": "compaction",
}


@dataclass(frozen=True)
class ManagedAgents:
    """Reader of managed-agent sessions."""

    format: str = "anthropic_managed_agents"

    def recognises(self, head: Head) -> bool:
        """An event with the types and the marks of a managed session."""
        listed = head.document
        if isinstance(listed, dict):
            listed = listed.get("data")
        objects = mappings(listed) if isinstance(listed, list) and not _wrapped(listed) else []
        objects += [value for line in head.text.encode().split(b"\n")[:40] for value in _decode(line)[0]]
        return any(_is_event(event) for value in objects for _, event in _events(value))

    def read(self, path: Path) -> ReadResult:
        """Read a session.

        Raises:
            DataError: it cannot be opened.
        """
        export = Export(path, _places, ("data",), decoding=_decode)
        found = [(item.number, how, event) for item in export.items() for how, event in _events(item.value)]
        streamed = any(not how.endswith(".send") and _is_event(event) for _, how, event in found)
        session = _Session()
        for number, how, event in found:
            if how.endswith(".send") and streamed:
                session.uses[number] = "duplicate"
            else:
                session.take(number, event)
        session.finish()
        uses = {number: session.uses.get(number, "ui") for number, _, _ in found}
        return export.result(self.format, session.spans, app="claude-managed-agents", uses=uses)


def _places(document: object) -> list[str]:
    if isinstance(document, dict):
        return ["data"] if isinstance(document.get("data"), list) else []
    return [""] if isinstance(document, list) and not _wrapped(document) else []


def _wrapped(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _decode(line: bytes) -> tuple[list[dict[str, Any]], RecordStatus]:
    """A line that is a pair of a call's name and its payload, else an object."""
    objects, status = jsonl.decode(line)
    if objects or status == "blank":
        return objects, status
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return objects, status
    return ([{"call": value[0], "payload": value[1]}], "ok") if _wrapped(value) else (objects, status)


def _events(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events in a record, and how they came."""
    if not isinstance(value, dict):
        return
    how, payload = string(value.get("call")), value.get("payload")
    if not how:
        yield "", value
    elif isinstance(payload, dict):
        yield how, payload
    elif isinstance(payload, list):
        for event in mappings(mapping(next(iter(payload[1:]), None)).get("events")):
            yield how, event


def _is_event(value: Mapping[str, Any]) -> bool:
    kind = string(value.get("type"))
    known = kind.startswith(("agent.", "user.", "span.model_request", "session.")) and "processed_at" in value
    return known and string(value.get("id")).startswith("sevt_")


@dataclass
class _Open:
    """A step while the agent speaks."""

    record: int
    id: str
    start: object
    context: list[Said]
    said: Said = field(default_factory=lambda: Said("assistant"))
    records: list[int] = field(default_factory=list)


@dataclass
class _Session:
    """A session's history while its events come in."""

    spans: list[Span] = field(default_factory=list)
    uses: dict[int, str] = field(default_factory=dict)
    _key: str = ""
    _system: list[Said] = field(default_factory=list)
    _tools: tuple[Tool, ...] = ()
    _model: str | None = None
    _said: list[Said] = field(default_factory=list)
    _open: _Open | None = None
    _spanned: bool = False
    _hidden: bool = False
    _refused: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take(self, number: int, event: dict[str, Any]) -> None:
        """Take in an event."""
        kind = string(event.get("type"))
        if kind == "session" and "agent" in event:
            self._begin(number, event)
        elif kind == "span.model_request_start":
            self.close()
            self._spanned = True
            self._open_step(number, event)
        elif kind == "span.model_request_end":
            self._end(number, event)
        elif kind in _SAID:
            self._speak(number, event, kind)
        elif kind in _RESULTS:
            self._answer(number, event)
        elif kind == "user.message":
            self.close()
            self._said.append(Said("user", parts(event.get("content"))))
            self.uses[number] = "context"
        elif kind in _EVENTS:
            self._happen(number, event, kind)

    def _begin(self, number: int, event: Mapping[str, Any]) -> None:
        self.close()
        agent = mapping(event.get("agent"))
        self._key, self._said = string(event.get("id")), []
        system = text(agent.get("system"))
        self._system = [Said("system", parts(system))] if system else []
        self._tools = tools(agent.get("tools"))
        self._hidden = any(
            string(tool.get("type")).partition("_20")[0].endswith("toolset") for tool in mappings(agent.get("tools"))
        )
        model = agent.get("model")
        self._model = text(mapping(model).get("id") if isinstance(model, dict) else model)
        self.uses[number] = "context"

    def _open_step(self, number: int, event: Mapping[str, Any]) -> None:
        context = [*self._system, *self._said]
        self._open = _Open(number, string(event.get("id")), event.get("processed_at"), context)

    def _speak(self, number: int, event: Mapping[str, Any], kind: str) -> None:
        if self._open is None:
            self._open_step(number, event)
        assert self._open is not None
        self._open.records.append(number)
        if kind == "agent.message":
            self._open.said.parts += parts(event.get("content"))
        elif kind == "agent.thinking":
            self._open.said.parts.append(
                Reasoning(string(first(event, "thinking", "text")), text(event.get("signature")))
            )
        else:
            raw = written(event.get("input")) or "{}"
            call = ToolCall.from_raw(id=string(event.get("id")), name=string(event.get("name")), raw=raw)
            self._open.said.parts.append(call)
        self.uses[number] = "step"

    def _end(self, number: int, event: Mapping[str, Any]) -> None:
        self.uses[number] = "step"
        failed = event.get("is_error") is True
        if self._open is not None:
            self._open.records.append(number)
            told = string(mapping(event.get("error")).get("message")) or "the model request failed"
            self.close(
                usage=mapping(event.get("model_usage")), error=told if failed else "", end=event.get("processed_at")
            )

    def finish(self) -> None:
        """End the session: a denied tool never ran, and the denial is its result."""
        self.close()
        answered = {span.tool.call_id for span in self.spans if span.tool is not None}
        for key, (number, words) in self._refused.items():
            if key not in answered:
                run = ToolRun("", key, result=words, status="rejected")
                self.spans.append(Span(f"denied {key}", number, self._key, kind="tool", tool=run))

    def close(self, *, usage: Mapping[str, Any] | None = None, error: str = "", end: object = None) -> None:
        """End the step that is open."""
        step, self._open = self._open, None
        if step is None or not (step.said.parts or error or self._spanned):
            return
        missing: tuple[str, ...] = ("tool schemas",) if self._hidden else ()
        missing += ("system prompt",) if not self._key else ()
        missing += ("reasoning",) if any(part == Reasoning() for part in step.said.parts) else ()
        answers = [step.said] if step.said.parts else []
        call = LLMCall(step.context, answers, self._tools, model=self._model, usage=dict(usage or {}))
        call.fidelity, call.missing = "reconstructed", missing
        span = Span(step.id, step.record, self._key, kind="llm", call=call, error=error, time=moment(step.start))
        span.start = seconds(step.start) or 0.0
        span.end, span.records = seconds(end) or span.start, step.records
        self.spans.append(span)
        if answers:
            self._said.append(step.said)

    def _answer(self, number: int, event: Mapping[str, Any]) -> None:
        self.close()
        key = string(first(event, "tool_use_id", "mcp_tool_use_id", "custom_tool_use_id"))
        raw = result({"content": event.get("content"), "is_error": event.get("is_error")}, id=key)
        refused = key in self._refused
        self._said.append(Said("tool", [raw]))
        run = ToolRun("", key, result=raw.text, is_error=raw.is_error, status="rejected" if refused else None)
        self.spans.append(Span(string(event.get("id")), number, self._key, kind="tool", tool=run))
        self.uses[number] = "result"

    def _happen(self, number: int, event: Mapping[str, Any], kind: str) -> None:
        """Interrupts, approvals, errors, compactions: events at the span that stands last."""
        words = string(first(event, "deny_message", "message")) or string(mapping(event.get("error")).get("message"))
        self.uses[number] = "event"
        start = seconds(event.get("processed_at")) or (self.spans[-1].start if self.spans else 0.0)
        mark = Span(string(event.get("id")), number, self._key, start=start, texts=((_EVENTS[kind], words),))
        self.spans.append(mark)
        if kind == "user.tool_confirmation" and event.get("result") == "deny":
            key = string(event.get("tool_use_id"))
            self._refused[key] = number, words
            step = next((span for span in reversed(self.spans) if span.kind == "llm"), None)
            if step is not None:
                step.feedback += (Feedback("user_reject", 0.0, words, "user"),)
