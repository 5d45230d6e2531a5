"""Continue's development data (`~/.continue/dev_data/0.2.0/*.jsonl`): an event a line, a kind a file.

    chatInteraction   prompt and completion          a step with its exact prompt
    editOutcome, nextEditOutcome, autocomplete       a step, and whether its result was accepted
    toolUsage         a call, its output             a step of one call without a context, and whether it was accepted
    chatFeedback      a thumb                        a judgement on the last interaction of its session
    others (tokensGenerated, quickEdit, ...)         events

Interactions of one session are one trace; so are the other kinds, a trace each. Records are the lines. "The same
session" means: the same session id; without one, the same first context and action.

Not covered: schemas of tools (only their names are logged); links between a toolUsage and its interaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Message, Text, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call
from postgrad.traces.formats.continue_dev.sessions import parse_prompt
from postgrad.traces.formats.shapes.plain import mapping, moment, opened, string, text, written
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_CHAT, _TOOL, _THUMB = "chatInteraction", "toolUsage", "chatFeedback"
_OUTCOMES = ("editOutcome", "nextEditOutcome", "autocomplete", "editInteraction")
_OTHER = ("tokensGenerated", "quickEdit", "nextEditWithHistory", "chatInteractionStart")
_KINDS = (_CHAT, _TOOL, _THUMB, *_OUTCOMES, *_OTHER)
_SHAPES: dict[str, frozenset[str]] = {
    _CHAT: frozenset({"prompt", "completion", "sessionId"}),
    _TOOL: frozenset({"toolCallArgs", "accepted"}),
    _THUMB: frozenset({"feedback", "sessionId"}),
    "editOutcome": frozenset({"prompt", "completion", "accepted", "previousCode", "newCode"}),
    "autocomplete": frozenset({"prompt", "completion", "accepted", "prefix", "suffix"}),
}
_EDITS = ("previousCode", "newCode")


@dataclass(frozen=True)
class ContinueDevData:
    """Reader of Continue's development data."""

    format: str = "continue_dev_data"

    def recognises(self, head: Head) -> bool:
        """Rows that name one of the events and have its keys."""
        rows = head.rows
        named = [row for row in rows if row.get("eventName") in _KINDS or row.get("name") in _KINDS]
        shaped = [row for row in rows if _kind(row) in _SHAPES and _SHAPES[_kind(row)] <= _data(row).keys()]
        own = [row for row in shaped if {"userAgent", "selectedProfileId", "schema", "eventName"} & _data(row).keys()]
        return bool(rows) and bool(own or (named and shaped)) and len(shaped) * 2 >= len(rows)

    def read(self, path: Path) -> ReadResult:
        """Read a file of events.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        talks: dict[str, Conversation] = {}
        for row in lines.rows():
            kind, data = _kind(row.value), _data(row.value)
            session = text(data.get("sessionId")) or ""
            name = f"{_CHAT} {session}" if kind in (_CHAT, _THUMB) else f"{kind} {session}"
            talk = talks.setdefault(name, Conversation(fidelity="none", missing=("all messages",)))
            use = _tell(talk, row.number, kind, data)
            lines.use(row.number, use, kind or "object")
            if use == "unknown":
                lines.note("the row is no event that is known", done="kept raw, in no step", line=row.number)
        source = Source(str(path), self.format, lines.sha256, "continue")
        traces: list[Trace] = []
        for name, talk in talks.items():
            known = (name,) if name.split(" ", 1)[1] else ()
            trace = talk.trace(source, *known, index=len(traces))
            traces += [trace] if trace else []
        return lines.result(source, traces)


def _data(row: Mapping[str, Any]) -> dict[str, Any]:
    """The event's own data: beside its name, or wrapped."""
    inner = row.get("data")
    return inner if isinstance(inner, dict) and ("name" in row or "eventName" in row) else dict(row)


def _kind(row: Mapping[str, Any]) -> str:
    """The event's name; a file of one kind may leave it out, then its keys tell."""
    for key in ("eventName", "name"):
        if row.get(key) in _KINDS:
            return str(row[key])
    keys = _data(row).keys()
    order = ("editOutcome", "autocomplete", _TOOL, _CHAT, _THUMB)
    return next((kind for kind in order if _SHAPES[kind] <= keys), "")


def _tell(talk: Conversation, number: int, kind: str, data: Mapping[str, Any]) -> str:
    if kind == _THUMB:
        thumb = data.get("feedback")
        if not talk.steps or not isinstance(thumb, bool):
            talk.event("rating", number, written(thumb))
            return "event"
        talk.judge(Feedback("rating", float(thumb), string(data.get("feedbackText")), "user"))
        return "feedback"
    if kind == _TOOL:
        _tool(talk, number, data)
        return "step"
    if kind == _CHAT or kind in _OUTCOMES:
        _interaction(talk, number, kind, data)
        return "step"
    if kind in _OTHER:
        return "event"
    return "unknown"


def _interaction(talk: Conversation, number: int, kind: str, data: Mapping[str, Any]) -> None:
    prompt, said = string(data.get("prompt")), string(data.get("completion"))
    context: list[Message] = parse_prompt(prompt, number)
    offered = data.get("tools")
    named = bool(offered) if isinstance(offered, list) else False
    missing = ("tool schemas",) if named else ()
    talk.change(
        fidelity="exact-messages" if context else "none", missing=missing if context else ("all messages",), params={}
    )
    blocks: tuple[Block, ...] = (Text(said),) if said else ()
    model = text(data.get("modelName")) or text(data.get("modelTitle"))
    action = Action(blocks, (number,), model, time=moment(data.get("timestamp")))
    talk.act(action, context=talk.pool.extend(context))
    accepted = data.get("accepted")
    if kind != _CHAT and isinstance(accepted, bool):
        talk.judge(Feedback("accept", float(accepted), string(data.get("newCode")), "user"))
        talk.event("edit_outcome", number, kind, **{key: data[key] for key in _EDITS if isinstance(data.get(key), str)})


def _tool(talk: Conversation, number: int, data: Mapping[str, Any]) -> None:
    name = text(data.get("functionName")) or text(data.get("toolName")) or string(data.get("name"))
    made = call(name, data.get("toolCallArgs"), id=text(data.get("toolCallId")) or f"line-{number}")
    talk.change(fidelity="none", missing=("all messages",))
    talk.act(Action((made,), (number,), text(data.get("modelName")), time=moment(data.get("timestamp"))), context=())
    accepted, succeeded = data.get("accepted"), data.get("succeeded")
    if accepted is False:
        talk.settle(talk.pending[0], ToolResult("", "", None, "rejected"), record=number)
    elif succeeded is not None or data.get("output") is not None:
        flag = (not succeeded) if isinstance(succeeded, bool) else None
        output = opened(data.get("output"))
        parts = [string(mapping(part).get("content")) for part in output] if isinstance(output, list) else []
        said = "\n\n".join(parts) if any(parts) else written(data.get("output"))
        talk.settle(talk.pending[0], ToolResult("", said, flag, "error" if flag else "ok"), record=number)
    if isinstance(accepted, bool):
        talk.judge(Feedback("accept", float(accepted), "", "user"))
