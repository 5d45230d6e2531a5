"""What the screen showed (`ui_messages.json`): the events that the history does not hold, and a stand-in for it.

With a history, the screen adds events: stops, failed and repeated requests, the user's words, edits of the proposed
changes. Without one (lost, empty, broken) the steps are rebuilt from the screen alone: a request that was not
cancelled, with the texts, thoughts and tools shown until the next. Tools are then named as the screen names them,
and what the model saw of their results is mostly not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postgrad.core.message import Block, Message, Reasoning, Text, ToolResult
from postgrad.core.trace import Event, Feedback
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call
from postgrad.traces.formats.shapes.plain import mapping, moment, opened, string, text

_STOPS = {"user_cancelled": "interrupt", "streaming_failed": "api_error"}
_EVENTS = {
    "api_req_failed": "api_error",
    "api_req_retried": "api_retry",
    "api_req_retry_delayed": "api_retry",
    "error": "error",
    "diff_error": "error",
    "mistake_limit_reached": "mistake_limit",
    "user_feedback": "user_text",
    "user_feedback_diff": "user_edit",
    "condense_context": "compaction",
    "resume_task": "resume",
    "rooignore_error": "error",
    "clineignore_error": "error",
}
_TOOLS = ("tool", "command", "browser_action_launch", "use_mcp_server", "followup", "new_task", "completion_result")
_RESULTS = ("command_output", "mcp_server_response", "browser_action_result")


def is_row(value: object) -> bool:
    """Whether it is a message of the screen."""
    if not isinstance(value, dict) or not isinstance(value.get("ts"), int | float):
        return False
    return value.get("type") in ("ask", "say") and isinstance(value.get(value["type"]), str)


@dataclass(frozen=True)
class Row:
    """A message of the screen: its record, its kind, text, and the request it belongs to (a count, from 0)."""

    number: int
    kind: str
    text: str
    value: Mapping[str, Any]
    request: int


def read_rows(values: Sequence[tuple[int, object]]) -> list[Row]:
    """The rows in order; each knows how many requests were answered before it."""
    rows: list[Row] = []
    requests = 0
    for number, value in values:
        if is_row(value):
            row = mapping(value)
            kind = string(row[row["type"]])
            rows.append(Row(number, kind, string(row.get("text")), row, requests))
            requests += kind == "api_req_started" and not _stopped(row)
    return rows


def usage(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Tokens and cost of every answered request, as logged."""
    started = [row for row in rows if row.kind == "api_req_started" and not _stopped(row.value)]
    return [{key: item for key, item in _info(row.value).items() if key != "request"} for row in started]


def ranges(rows: Sequence[Row]) -> dict[int, tuple[int, int]]:
    """Index of a message of the history -> the range of indices left out from there on."""
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        at, cut = row.value.get("conversationHistoryIndex"), row.value.get("conversationHistoryDeletedRange")
        bounds = tuple(n for n in cut if isinstance(n, int)) if isinstance(cut, list) else ()
        if isinstance(at, int) and len(bounds) == 2 and bounds not in found.values():
            found[at] = bounds[0], bounds[1]
    return found


def add_events(talk: Conversation, rows: Sequence[Row], places: Sequence[int]) -> None:
    """Put the screen's events between the steps; `places` are the indices of the answers in the history."""
    known = {(event.kind, event.text.strip()) for event in talk.events if event.kind == "user_text"}
    counted = sum(1 for row in rows if row.kind == "api_req_started" and not _stopped(row.value)) == talk.steps
    for row in rows:
        kind, said = _event(row)
        if kind is None or (kind, said.strip()) in known:
            continue
        at = row.value.get("conversationHistoryIndex")
        step = row.request if counted or not isinstance(at, int) else sum(place <= at for place in places)
        step = min(step, talk.steps)
        talk.events.append(Event(kind, step, row.number, said))
        if kind == "user_edit" and step:
            talk.judge(Feedback("user_edit", text=said, source="user"), step=step - 1)
    talk.events.sort(key=lambda event: event.before_step)


def tell(talk: Conversation, rows: Sequence[Row]) -> dict[int, str]:
    """Rebuild the steps from the screen alone; what every row was used as, by number."""
    uses: dict[int, str] = {}
    answer: list[Row] = []
    open_request: Row | None = None
    for row in rows:
        uses[row.number] = "ui"
        kind, said = _event(row)
        if row.kind == "api_req_started" or (kind == "user_text" and open_request is not None):
            _act(talk, open_request, answer, uses)
            answer, open_request = [], None
        if row.kind == "api_req_started" and not _stopped(row.value):
            open_request = row
        elif open_request is not None and row.kind in ("text", "reasoning", *_TOOLS, *_RESULTS):
            answer.append(row)
        elif row.kind in ("text", "user_feedback") and row.text:
            talk.tell(Message("user", (Text(row.text),), (row.number,)))
            talk.event("user_text", row.number, row.text)
            uses[row.number] = "context"
        elif kind is not None:
            talk.event(kind, row.number, said)
            uses[row.number] = "event"
    _act(talk, open_request, answer, uses)
    return uses


def _act(talk: Conversation, request: Row | None, answer: Sequence[Row], uses: dict[int, str]) -> None:
    if request is None or not answer:
        return
    blocks: list[Block] = []
    for row in answer:
        if row.kind == "reasoning":
            blocks.append(Reasoning(row.text))
        elif row.kind == "text" and row.text:
            blocks.append(Text(row.text))
        elif row.kind in _TOOLS and row.text:
            blocks.append(_call(row))
    if not blocks:
        return
    logged = {key: item for key, item in _info(request.value).items() if key != "request"}
    numbers = (request.number, *(row.number for row in answer if row.kind not in _RESULTS))
    talk.act(Action(blocks, numbers, usage=logged, time=moment(request.value.get("ts"))))
    uses |= dict.fromkeys(numbers, "step")
    for row in answer:
        if row.kind in _RESULTS and talk.pending:
            waiting = talk.pending[-1]
            talk.settle(waiting, ToolResult("", row.text), record=row.number)
            uses[row.number] = "result"


def _call(row: Row) -> Block:
    """A tool as the screen shows it; a command and a question are bare texts there."""
    value = opened(row.text)
    if isinstance(value, dict):
        name = text(value.get("tool")) or text(value.get("toolName")) or row.kind
        return call(name, {key: item for key, item in value.items() if key != "tool"}, id=f"row-{row.number}")
    return call(row.kind, {row.kind: row.text}, id=f"row-{row.number}")


def _event(row: Row) -> tuple[str | None, str]:
    if row.kind == "api_req_started":
        info = _info(row.value)
        kind = _STOPS.get(string(info.get("cancelReason")))
        return kind, string(info.get("streamingFailedMessage"))
    return _EVENTS.get(row.kind), row.text


def _info(row: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(opened(row.get("text")))


def _stopped(row: Mapping[str, Any]) -> bool:
    info = _info(row)
    return bool(text(info.get("cancelReason")) or text(info.get("streamingFailedMessage")))
