"""OpenHands V1 (software-agent SDK) events: one JSON file an event, JSON lines, or a list from the server's API.

An answer of the model is the ActionEvents with one `llm_response_id` that stand together (a call each; thoughts only on
the first), or an agent's MessageEvent. A call whose `action` is null could not be run: its AgentErrorEvent answers it.
An observation answers the call that it names, else the one of its `action_id`; one that answers no call is kept out of
the context, as the SDK does. A condensation hides events and puts a summary in their place.

Flagged errors are the framework's own: an AgentErrorEvent, an action that a hook refused. An observation says
`is_error` or an exit code about the output of a tool that did run: its status is "error", its flag stays open.

Records of JSON lines are lines; all others count the events from 0, in the order of the file names. "The same session"
means: the same id of the first event.

Not covered: token counts of a single call (the stream has running totals only); the texts that the SDK adds to a user's
message at run time; delegated conversations as traces of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Message, Reasoning, ResultStatus, Text, Tool, ToolResult
from postgrad.core.trace import Feedback, Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.formats.shapes.tools import tools as read_tools
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, Item, JsonDocument
from postgrad.traces.sources.folder import Folder, entries_of
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Ledger

_LISTS = ("items", "events", "trajectory")
_FILE = re.compile(r"event-(\d+)-[\w-]+\.json\Z")
_MARKS = frozenset(
    {
        *("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent"),
        *("UserRejectObservation", "Condensation", "CondensationRequest", "ConversationStateUpdateEvent"),
        *("PauseEvent", "InterruptEvent", "ConversationErrorEvent", "CondensationSummaryEvent", "TokenEvent"),
    }
)
_EVENTS = {
    "PauseEvent": "interrupt",
    "InterruptEvent": "interrupt",
    "ConversationErrorEvent": "api_error",
    "CondensationRequest": "compaction_request",
}


@dataclass(frozen=True)
class OpenHandsSDK:
    """Reader of OpenHands V1 conversations."""

    format: str = "openhands_v1"

    def recognises(self, head: Head) -> bool:
        """Events with an id, a time or source, and one of the SDK's kinds."""
        if head.path.is_dir():
            first = next(_event_files(head.path), None)
            return first is not None and _is_event(Head(first).document)
        document = head.document
        if document is None:
            return _are_events(head.rows)
        lists = [document.get(key) for key in _LISTS] if isinstance(document, dict) else [document]
        return _is_event(document) or any(isinstance(listed, list) and _are_events(listed[:50]) for listed in lists)

    def read(self, path: Path) -> ReadResult:
        """Read a conversation.

        Raises:
            DataError: it cannot be opened.
        """
        if path.is_dir():
            ledger, items = _folder(path)
            return self._result(ledger, items, ledger.sha256)
        whole = Head(path).document
        if whole is None or _is_event(whole):
            lines = JsonLines(path)
            rows = [Item(row.number, row.value) for row in lines.rows()]
            return self._result(lines, rows, lines.sha256)
        document = JsonDocument(path, *(_LISTS if isinstance(whole, dict) else ("",)))
        listed = [item for at in ("", *_LISTS) for item in document.rows(at)]
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "metadata", "document")
        return self._result(document, listed, document.sha256)

    def _result(self, ledger: Ledger, items: list[Item], sha256: str) -> ReadResult:
        talk = Conversation(
            fidelity="reconstructed", missing=("system prompt", "tool schemas", "texts added at run time")
        )
        stream = _Stream(talk, ledger)
        stream.read(items)
        source = Source(str(ledger.path), self.format, sha256, "openhands")
        first = next((text(mapping(item.value).get("id")) for item in items), None)
        trace = talk.trace(source, first)
        return ledger.result(source, [trace] if trace else [])


@dataclass
class _Stream:
    """The events of one conversation, told in order."""

    talk: Conversation
    ledger: Ledger
    model: str | None = None
    calls: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def read(self, items: list[Item]) -> None:
        """Tell all events; parallel calls of one response stand together."""
        events = []
        for item in items:
            if _is_event(item.value, strict=False):
                self.numbers[item.value["id"]] = item.number
                events.append((item.number, item.value))
            elif self.ledger.entries[item.number].status == "ok":
                self.ledger.use(item.number, "unknown", string(mapping(item.value).get("kind")) or "?")
                self.ledger.note("the record is no event with an id", done="kept raw, not used", line=item.number)
        self.model = next((name for _, event in events if (name := _model(event))), None)
        for _, group in groupby(events, key=_answer_key):
            together = list(group)
            if _is_answer(together[0][1]):
                self._answer(together)
            else:
                for number, event in together:
                    self.ledger.use(number, self._event(number, event), event["kind"])

    def _answer(self, events: list[tuple[int, Mapping[str, Any]]]) -> None:
        blocks: list[Block] = []
        for number, event in events:
            blocks += _message_blocks(event) if event["kind"] == "MessageEvent" else self._action_blocks(event)
            self.ledger.use(number, "step", event["kind"])
        numbers = tuple(number for number, _ in events)
        self.talk.act(Action(blocks, numbers, self.model, time=text(events[0][1].get("timestamp"))))

    def _action_blocks(self, event: Mapping[str, Any]) -> list[Block]:
        given = mapping(event.get("tool_call"))
        name = text(given.get("name")) or string(event.get("tool_name"))
        action = {key: value for key, value in mapping(event.get("action")).items() if key != "kind"}
        key = text(event.get("tool_call_id")) or text(given.get("id")) or event["id"]
        self.calls[event["id"]] = key
        return [*_thoughts(event), call(name, given.get("arguments", action), id=key)]

    def _event(self, number: int, event: Mapping[str, Any]) -> str:
        kind = event["kind"]
        if kind == "SystemPromptEvent":
            return self._system(number, event)
        if kind == "MessageEvent":
            blocks = tuple(_message_blocks(event))
            self.talk.tell(Message("user", blocks, (number,)))
            self.talk.event("user_text", number, shown(blocks))
            return "context"
        if kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            return self._result(number, event)
        if kind == "Condensation":
            return self._condensation(number, event)
        if kind in _EVENTS:
            said = text(event.get("detail")) or text(event.get("message")) or text(event.get("reason")) or ""
            self.talk.event(_EVENTS[kind], number, said)
            return "event"
        if kind not in _MARKS:
            self.ledger.note(f"unknown event kind '{kind}'", done="kept raw, in no step", line=number)
            return "unknown"
        return "ui"

    def _system(self, number: int, event: Mapping[str, Any]) -> str:
        said = read_content([event.get("system_prompt"), event.get("dynamic_context")]).blocks
        self.talk.tell(Message("system", said, (number,)))
        offered = mappings(event.get("tools"))
        tools = read_tools(offered) or tuple(tool for item in offered if (tool := _tool(item)))
        whole = bool(tools) and all(tool.parameters for tool in tools)
        self.talk.change(tools=tools, missing=(() if whole else ("tool schemas",)) + ("texts added at run time",))
        return "context"

    def _result(self, number: int, event: Mapping[str, Any]) -> str:
        key = text(event.get("tool_call_id")) or self.calls.get(string(event.get("action_id"))) or ""
        answer = _result_of(event, key)
        if self.talk.answer(answer, record=number):
            if event["kind"] == "UserRejectObservation":
                by = "hook" if event.get("rejection_source") == "hook" else "user"
                self.talk.judge(Feedback(f"{by}_reject", text=answer.text, source=by))
            return "result"
        if event["kind"] == "AgentErrorEvent":
            self.talk.event("agent_error", number, answer.text, is_error=True)
        self.ledger.note("a result whose call is not in the stream", done="kept raw, in no step", line=number)
        return "orphan_result"

    def _condensation(self, number: int, event: Mapping[str, Any]) -> str:
        names = event.get("forgotten_event_ids")
        gone = {self.numbers[name] for name in names if name in self.numbers} if isinstance(names, list) else set()
        summary = string(event.get("summary"))
        self.talk.condense(gone.__contains__, Message("user", (Text(summary),) if summary else (), (number,)))
        self.talk.event("compaction", number, summary, forgotten=sorted(gone))
        return "event"


def _is_event(value: object, *, strict: bool = True) -> bool:
    """An event with an id; `strict`: of a kind that this SDK is known by, with a time or a source."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not text(value.get("id")):
        return False
    return not strict or (value["kind"] in _MARKS and bool({"timestamp", "source"} & value.keys()))


def _are_events(values: Iterable[object]) -> bool:
    found = [value for value in values if _is_event(value)]
    return any(mapping(event)["kind"] != "TokenEvent" for event in found)


def _event_files(path: Path) -> Iterator[Path]:
    events = path / "events" if (path / "events").is_dir() else path
    return (file for file in entries_of(events) if _FILE.fullmatch(file.name))


def _folder(path: Path) -> tuple[Folder, list[Item]]:
    folder = Folder(path)
    items = []
    numbers = (number for number in range(len(folder.files)))
    events = [file for file in folder.files if _FILE.fullmatch(file.path.name)]
    for file in sorted(events, key=lambda file: (int(file.path.name.split("-")[1]), file.name)):
        number = next(numbers)
        items.append(Item(number, folder.value(file, number), file.name))
    for file in folder.files:
        if file not in events:
            number = next(numbers)
            folder.entry(file, number)
            folder.use(number, "metadata", "file")
    return folder, items


def _is_answer(event: Mapping[str, Any]) -> bool:
    if event["kind"] == "MessageEvent":
        role = mapping(event.get("llm_message")).get("role")
        return role == "assistant" or (event.get("source") == "agent" and role != "user")
    return bool(event["kind"] == "ActionEvent")


def _answer_key(entry: tuple[int, Mapping[str, Any]]) -> tuple[int, str]:
    number, event = entry
    name = text(event.get("llm_response_id")) if _is_answer(event) else None
    return (-1, name) if name else (number, "")


def _thoughts(event: Mapping[str, Any]) -> list[Block]:
    blocks = list(read_content(event.get("thinking_blocks")).blocks)
    reasoning = text(event.get("reasoning_content"))
    if reasoning and not blocks:
        blocks.append(Reasoning(reasoning))
    item = mapping(event.get("responses_reasoning_item"))
    if text(item.get("encrypted_content")):
        blocks.append(Reasoning(encrypted=item["encrypted_content"]))
    return [*blocks, *read_content(event.get("thought")).blocks]


def _message_blocks(event: Mapping[str, Any]) -> list[Block]:
    message = mapping(event.get("llm_message"))
    return [*_thoughts(message), *read_content(message.get("content")).blocks]


def _result_of(event: Mapping[str, Any], id: str) -> ToolResult:
    if event["kind"] == "AgentErrorEvent":
        return ToolResult(id, string(event.get("error")), True, "error")
    if event["kind"] == "UserRejectObservation":
        hook = event.get("rejection_source") == "hook"
        return ToolResult(id, string(event.get("rejection_reason")), hook or None, "error" if hook else "rejected")
    seen = mapping(event.get("observation"))
    code = seen.get("exit_code", mapping(seen.get("metadata")).get("exit_code"))
    failed = seen.get("is_error") is True or (isinstance(code, int) and code not in (0, -1))
    status: ResultStatus = "error" if failed else "ok"
    fine = False if seen.get("is_error") is False and not failed else None
    said = shown(read_content(seen.get("content", seen.get("output"))).blocks)
    return ToolResult(id, said + string(mapping(seen.get("metadata")).get("suffix")), fine, status)


def _model(event: Mapping[str, Any]) -> str | None:
    """The model of the conversation, from its running totals or its whole state."""
    value = mapping(event.get("value"))
    used = mapping(mapping(value.get("usage_to_metrics")).get("default"))
    state = mapping(mapping(value.get("agent")).get("llm"))
    return text(used.get("model_name")) or text(state.get("model"))


def _tool(item: Mapping[str, Any]) -> Tool | None:
    """The log names a tool's action class, not its schema."""
    name = text(item.get("title")) or text(mapping(item.get("annotations")).get("title"))
    return Tool(name, string(item.get("description"))) if name else None
