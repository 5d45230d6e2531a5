"""Continue sessions (`~/.continue/sessions/<id>.json`): one document, its `history` a list of items.

An answer of the model is an item with an assistant's message; the thoughts before it (items of the role "thinking")
belong to it. A call's state says how it ended: `done`, `errored`, `canceled`, or not at all. Its output is in the
tool's item behind, else in the state. Where `promptLogs` are kept the prompt is known to the letter: such steps have
that prompt, taken apart at its role marks, as their context.

Records are the items, by index. "The same session" means: the same session id.

Not covered: the files and snippets of `contextItems` (the model saw them in the message; the log says how).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from postgrad.core.message import Block, Message, Reasoning, ResultStatus, Role, Text, ToolResult
from postgrad.core.trace import Feedback, Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head

_OWN = frozenset({"contextItems", "toolCallStates", "promptLogs", "editorState", "modifiers", "isGatheringContext"})
_MARK = re.compile(r"^<(system|user|assistant|tool)>\n", re.MULTILINE)
_MISSING = ("system prompt", "tool schemas")
_ENDS: dict[str, tuple[bool | None, ResultStatus]] = {
    "done": (False, "ok"),
    "errored": (True, "error"),
    "canceled": (None, "rejected"),
}


@dataclass(frozen=True)
class ContinueSession:
    """Reader of Continue sessions."""

    format: str = "continue"

    def recognises(self, head: Head) -> bool:
        """A history of items with a message and with keys that only Continue writes."""
        document = mapping(head.document)
        history = mappings(document.get("history"))
        said = [item for item in history if isinstance(mapping(item.get("message")).get("role"), str)]
        own = any(_OWN & item.keys() for item in said)
        return bool(said) and len(said) == len(document["history"]) and own and "sessionId" in document

    def read(self, path: Path) -> ReadResult:
        """Read a session.

        Raises:
            DataError: it cannot be opened.
        """
        document = JsonDocument(path, "history")
        items = list(document.rows("history"))
        session = _Session([mapping(item.value) for item in items])
        for item in items:
            message = mapping(mapping(item.value).get("message"))
            use = session.tell(item.number, mapping(item.value), message)
            document.use(item.number, use, string(message.get("role")) or "?")
            if use == "unknown":
                document.note("the record is no message", done="kept raw, not used", line=item.number)
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "metadata", "session")
        source = Source(str(path), self.format, document.sha256, "continue")
        trace = session.talk.trace(source, text(mapping(document.envelope).get("sessionId")))
        return document.result(source, [trace] if trace else [])


def parse_prompt(prompt: str, number: int) -> list[Message]:
    """A logged prompt, taken apart at its role marks; one without marks is one message of the user."""
    marks = list(_MARK.finditer(prompt))
    if not marks or prompt[: marks[0].start()].strip():
        return [Message("user", (Text(prompt),), (number,))] if prompt else []
    stops = [mark.start() for mark in marks[1:]] + [len(prompt)]
    pieces = [(mark[1], prompt[mark.end() : stop].rstrip("\n")) for mark, stop in zip(marks, stops, strict=True)]
    return [
        Message(cast(Role, role if role != "tool" else "user"), (Text(said),), (number,))
        for role, said in pieces
        if said
    ]


class _Session:
    """The items of a session, told in order."""

    def __init__(self, items: Sequence[Mapping[str, Any]]) -> None:
        self.talk = Conversation(fidelity="partial", missing=_MISSING)
        self._thoughts: list[tuple[int, Block]] = []
        self._ends: dict[str, tuple[bool | None, ResultStatus]] = {}
        self._answered = {string(mapping(item.get("message")).get("toolCallId")) for item in items}

    def tell(self, number: int, item: Mapping[str, Any], message: Mapping[str, Any]) -> str:
        """One item, and what it was used as."""
        role = message.get("role")
        blocks = read_content(message.get("content")).blocks
        if role == "thinking":
            hidden = text(message.get("redactedThinking"))
            self._thoughts.append((number, Reasoning(shown(blocks), text(message.get("signature")), hidden)))
            return "step"
        if role == "assistant":
            self._answer(number, item, message)
            return "step"
        if role == "tool":
            key = string(message.get("toolCallId"))
            flag, status = self._ends.get(key, (None, "ok"))
            answer = ToolResult(key, shown(blocks), flag, status)
            return "result" if self.talk.answer(answer, record=number) else "orphan_result"
        if role not in ("system", "user", "developer"):
            return "unknown"
        self.talk.tell(Message(cast(Role, role), blocks, (number,)))
        if role == "user":
            self.talk.event("user_text", number, shown(blocks))
        return "context"

    def _answer(self, number: int, item: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        states = mappings(item.get("toolCallStates"))
        calls = mappings(message.get("toolCalls")) or [mapping(state.get("toolCall")) for state in states]
        blocks = [block for _, block in self._thoughts]
        reasoning = text(mapping(item.get("reasoning")).get("text"))
        if reasoning and not blocks:
            blocks.append(Reasoning(reasoning))
        blocks += read_content(message.get("content")).blocks
        for made in calls:
            function = mapping(made.get("function"))
            blocks.append(call(string(function.get("name")), function.get("arguments"), id=made.get("id")))
        log = next(iter(mappings(item.get("promptLogs"))[-1:]), {})
        model = text(log.get("modelTitle")) or text(message.get("model"))
        numbers = (*(place for place, _ in self._thoughts), number)
        self._thoughts.clear()
        context = parse_prompt(string(log.get("prompt")), number)
        self.talk.change(
            fidelity="exact-messages" if context else "partial", missing=("tool schemas",) if context else _MISSING
        )
        ids = self.talk.pool.extend(context) if context else None
        self.talk.act(Action(blocks, numbers, model, usage=mapping(message.get("usage"))), context=ids)
        for state in states:
            self._settle(number, state)

    def _settle(self, number: int, state: Mapping[str, Any]) -> None:
        """How a call ended; its output too, unless a tool's item behind the answer holds it."""
        key = text(state.get("toolCallId")) or string(mapping(state.get("toolCall")).get("id"))
        end = _ENDS.get(string(state.get("status")))
        if end is None:
            return
        self._ends[key] = end
        if end[1] == "rejected":
            self.talk.event("approval", number, "canceled", call=key)
            self.talk.judge(Feedback("user_reject", source="user"))
        output = "\n\n".join(string(part.get("content")) for part in mappings(state.get("output")))
        if key not in self._answered:
            self.talk.answer(ToolResult(key, output, end[0], end[1]), record=number)
