"""From an OpenHands event stream (0.x) to a conversation.

An event is an action (`action`, `args`) or an observation (`observation`, `content`, `extras`). An answer of the model
is all actions that carry one `tool_call_metadata.model_response.id`; the response is kept in it whole, so the action is
exact. An agent's message without that metadata is an answer of its own; in a stream without any metadata (agents that
call no functions) every action of the agent is one. An observation answers the call that its metadata names, else the
action that is its `cause`, else the action before it.

Flagged are observations of the kind "error", exit codes other than 0 (and -1, a command that still runs), and texts
that the edit tool begins with "ERROR:". An error of the agent itself (arguments that do not fit a tool) may answer
no call, for its response is not in the stream: it is an event, `agent_error`, with the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from postgrad.core.message import Block, Message, Reasoning, ResultStatus, Text, ToolResult
from postgrad.core.trace import Feedback
from postgrad.traces.conversation import Action, Conversation, provider_key
from postgrad.traces.formats.content import call, read_content
from postgrad.traces.formats.shapes.plain import items, mapping, mappings, string, text
from postgrad.traces.formats.shapes.tools import tools as read_tools

Event = Mapping[str, Any]
_NO_ANSWERS = frozenset(
    {
        *("system", "recall", "null", "change_agent_state", "condensation", "condensation_request", "start"),
        *("loop_recovery", "push", "send_pr", "pause", "resume", "stop", "agent_state_changed", "init"),
    }
)
_NO_RESULTS = frozenset({"recall", "null", "agent_state_changed", "condense", "loop_detection", "server_ready"})
_RUNNING = -1
_MISSING = ("results as the agent formats them",)


def is_event(value: object) -> bool:
    """Whether it is an action or an observation of this stream."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("action"), str):
        return isinstance(value.get("args"), dict) and "observation" not in value
    return isinstance(value.get("observation"), str) and ("extras" in value or "content" in value)


def flat(history: Iterable[object]) -> list[object]:
    """The oldest histories hold pairs of an action and its observation."""
    return [event for entry in history for event in (entry if isinstance(entry, list) else [entry])]


class Stream:
    """One stream, told to a conversation; `uses` says what each event was used as, by its number."""

    def __init__(self, events: Sequence[tuple[int, object]]) -> None:
        self._events = [(number, event) for number, event in events if isinstance(event, dict) and is_event(event)]
        self.uses: dict[int, tuple[str, str]] = {number: ("unknown", "?") for number, _ in events}
        self.talk = Conversation(fidelity="partial", missing=("system prompt", "tool schemas", *_MISSING))
        self._told: set[str] = set()
        self._calls: dict[int, str] = {}
        self._traced = any(_metadata(event) for _, event in self._events)
        self._records: dict[str, list[int]] = {}
        for number, event in self._events:
            if "action" in event and (name := _response_id(event)):
                self._records.setdefault(name, []).append(number)
        for number, event in self._events:
            use = self._action(number, event) if "action" in event else self._observation(number, event)
            self.uses[number] = (use, string(event.get("action")) or string(event.get("observation")))

    @property
    def begun(self) -> str | None:
        """When the first event was written."""
        return next((text(event.get("timestamp")) for _, event in self._events), None)

    @property
    def version(self) -> str | None:
        """The application's version."""
        found = (text(mapping(event.get("args")).get("openhands_version")) for _, event in self._events)
        return next((version for version in found if version), None)

    def _action(self, number: int, event: Event) -> str:
        kind, args = event["action"], event["args"]
        if kind == "system":
            return self._system(number, args)
        if kind == "condensation":
            return self._condensation(number, args)
        if kind in ("message", "start") and event.get("source") == "user":
            self.talk.tell(Message("user", _said(args), (number,)))
            self.talk.event("user_text", number, string(args.get("content")))
            return "context"
        if self._is_answer(event):
            return self._answer(number, event)
        if kind == "change_agent_state":
            self.talk.event("state", number, string(args.get("agent_state")))
            return "event"
        return "ui"

    def _system(self, number: int, args: Mapping[str, Any]) -> str:
        self.talk.tell(Message("system", _said(args), (number,)))
        tools = read_tools(args.get("tools"))
        missing = _MISSING if tools else ("tool schemas", *_MISSING)
        self.talk.change(fidelity="reconstructed" if tools else "partial", missing=missing, tools=tools)
        return "context"

    def _condensation(self, number: int, args: Mapping[str, Any]) -> str:
        listed = args.get("forgotten_event_ids")
        first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
        gone = {event for event in listed if isinstance(event, int)} if isinstance(listed, list) else set()
        if isinstance(first, int) and isinstance(last, int):
            gone |= {event for event, _ in self._events if first <= event <= last}
        summary = string(args.get("summary"))
        self.talk.condense(gone.__contains__, Message("user", _texts(summary), (number,)))
        self.talk.event("compaction", number, summary, forgotten=sorted(gone))
        return "event"

    def _is_answer(self, event: Event) -> bool:
        if event["action"] in _NO_ANSWERS or event.get("source") in ("user", "environment"):
            return False
        return not self._traced or event["action"] == "message" or bool(_metadata(event))

    def _answer(self, number: int, event: Event) -> str:
        metadata = _metadata(event)
        response = mapping(metadata.get("model_response"))
        name = text(response.get("id")) or (f"event-{number}" if metadata else "")
        self._calls[number] = text(metadata.get("tool_call_id")) or f"event-{number}"
        if name and name in self._told:
            return "step"
        self._told.add(name)
        said = _response(response) or _rebuilt(number, event)
        choice = next(iter(mappings(response.get("choices"))), {})
        usage = mapping(response.get("usage"))
        action = Action(
            said,
            tuple(self._records.get(name, [number])),
            text(response.get("model")),
            text(choice.get("finish_reason")),
            usage,
            text(event.get("timestamp")),
        )
        self.talk.act(action)
        return "step"

    def _observation(self, number: int, event: Event) -> str:
        kind = event["observation"]
        if kind == "agent_state_changed":
            return self._state(number, event)
        if kind in _NO_RESULTS:
            return "ui"
        flagged = _flagged(event)
        status: ResultStatus = "rejected" if kind == "user_rejected" else "error" if flagged else "ok"
        result = ToolResult(self._call_of(event), _shown(event), flagged, status)
        if self.talk.answer(result, record=number):
            return "result"
        self.talk.tell(Message("user", _texts(result.text), (number,)))
        self.talk.event("agent_error" if kind == "error" else "observation", number, result.text, is_error=flagged)
        return "event"

    def _state(self, number: int, event: Event) -> str:
        state = string(mapping(event.get("extras")).get("agent_state"))
        kinds = {"paused": "interrupt", "stopped": "interrupt", "awaiting_user_confirmation": "approval"}
        self.talk.event(kinds.get(state, "state"), number, state)
        if state == "user_rejected":
            self.talk.judge(Feedback("user_reject", text=string(event.get("content")), source="user"))
        return "event"

    def _call_of(self, event: Event) -> str:
        """The provider id of the call that an observation answers, "" for none."""
        named = text(_metadata(event).get("tool_call_id"))
        caused = self._calls.get(event["cause"]) if isinstance(event.get("cause"), int) else None
        if named or caused or event["observation"] == "error" or self._traced:
            return named or caused or ""
        waiting = self.talk.pending
        return provider_key(waiting[0]) if waiting else ""


def _metadata(event: Event) -> dict[str, Any]:
    return mapping(event.get("tool_call_metadata"))


def _response_id(event: Event) -> str | None:
    return text(mapping(_metadata(event).get("model_response")).get("id"))


def _said(args: Mapping[str, Any]) -> tuple[Block, ...]:
    images = [{"type": "image_url", "image_url": url} for url in items(args.get("image_urls")) if text(url)]
    return read_content([args.get("content"), *images]).blocks


def _texts(said: str) -> tuple[Block, ...]:
    return (Text(said),) if said else ()


def _response(response: Mapping[str, Any]) -> list[Block]:
    """The answer as the provider gave it."""
    choice = next(iter(mappings(response.get("choices"))), {})
    message = mapping(choice.get("message"))
    thought = text(message.get("reasoning_content"))
    blocks: list[Block] = [Reasoning(thought)] if thought else []
    blocks += read_content(message.get("content")).blocks
    for item in mappings(message.get("tool_calls")):
        function = mapping(item.get("function"))
        blocks.append(call(string(function.get("name")), function.get("arguments"), id=item.get("id")))
    return blocks


def _rebuilt(number: int, event: Event) -> list[Block]:
    """The answer from the action itself, where the response was not kept."""
    metadata, args = _metadata(event), dict(event["args"])
    if event["action"] == "message":
        return list(_said(args))
    thought = args.pop("thought", "")
    name = text(metadata.get("function_name")) or event["action"]
    key = text(metadata.get("tool_call_id")) or f"event-{number}"
    return [*_texts(string(thought)), call(name, args, id=key)]


def _flagged(event: Event) -> bool | None:
    """The source's word on an observation; None where it has none."""
    extras = mapping(event.get("extras"))
    codes = [mapping(extras.get("metadata")).get("exit_code"), extras.get("exit_code")]
    known = [code for code in codes if isinstance(code, int) and not isinstance(code, bool)]
    if event["observation"] in ("error", "user_rejected") or string(event.get("content")).startswith("ERROR:"):
        return True
    if known:
        return known[0] not in (0, _RUNNING)
    failed = extras.get("error")
    return True if failed is True else None


def _shown(event: Event) -> str:
    """The text, with what the terminal adds before and after it (the exit code stands there)."""
    metadata = mapping(mapping(event.get("extras")).get("metadata"))
    said = event.get("content")
    shown = said if isinstance(said, str) else string(event.get("message"))
    return string(metadata.get("prefix")) + shown + string(metadata.get("suffix"))
