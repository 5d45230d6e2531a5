"""Aider's `.aider.llm.history`: ``TO LLM <time>`` blocks with the messages as sent, ``LLM RESPONSE <time>`` blocks.

Every line of a message carries the role in front; messages are apart by a line of dashes. So every context is known
to the word (line ends at the end of a message are not). A request that nothing answers is an event. A request whose
messages hold the answer before it goes on with that trace; every other begins a new one.

Records are the blocks, by their first line. "The same session" means: the same first request time, context and action.

Not covered: images (only their keys are logged); parameters; calls of the weak model, which are not logged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from postgrad.core.message import Message, Role, Text
from postgrad.core.trace import Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.text_lines import TextLines

_HEAD = re.compile(r"(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*)\s*\Z")
_ROLES = ("SYSTEM", "USER", "ASSISTANT", "TOOL")


@dataclass(frozen=True)
class AiderLog:
    """Reader of Aider's log of requests and answers."""

    format: str = "aider_llm"

    def recognises(self, head: Head) -> bool:
        """A block's head, and after it lines with a role in front."""
        lines = head.text.split("\n")[:2000]
        blocks = [place for place, line in enumerate(lines) if _HEAD.match(line.rstrip("\r"))]
        if not blocks or any(line.strip() for line in lines[: blocks[0]]):
            return False
        return any(line.startswith(tuple(f"{role} " for role in _ROLES)) for line in lines[blocks[0] :])

    def read(self, path: Path) -> ReadResult:
        """Read a log.

        Raises:
            DataError: it cannot be opened.
        """
        text = TextLines(path)
        source = Source(str(path), self.format, text.sha256, "aider")
        talks: list[tuple[str, Conversation]] = []
        asked: tuple[int, str, list[Message]] | None = None
        last = ""
        for section in text.sections(lambda number: _HEAD.match(text.lines[number - 1]) is not None):
            found = _HEAD.match(section.lines[0])
            if found is None:
                if text.entries[section.number].status != "blank":
                    text.use(section.number, "unknown", "text")
                    text.note("text before the first block", done="kept raw, not used", line=section.number)
                continue
            messages = _messages(section.lines[1:], section.number)
            text.use(section.number, "context" if found[1] == "TO LLM" else "step", found[1])
            if found[1] == "TO LLM":
                _unanswered(talks, asked)
                asked = section.number, found[2], messages
                continue
            begun, context = (asked[1], asked[2]) if asked else (found[2], [])
            if not talks or not last or not any(last in message.text for message in context):
                missing = ("tool schemas",) if context else ("all messages",)
                fidelity = "exact-messages" if context else "none"
                talks.append((begun, Conversation(fidelity=fidelity, missing=missing)))
            talk = talks[-1][1]
            answer = "\n".join(message.text for message in messages)
            numbers = (*((asked[0],) if asked else ()), section.number)
            action = Action((Text(answer),) if answer else (), numbers, time=found[2])
            talk.act(action, context=talk.pool.extend(context))
            last, asked = answer.strip(), None
        _unanswered(talks, asked)
        traces = [talk.trace(source, begun, *talk.beginning, index=n) for n, (begun, talk) in enumerate(talks)]
        return text.result(source, [trace for trace in traces if trace])


def _unanswered(talks: Sequence[tuple[str, Conversation]], asked: tuple[int, str, list[Message]] | None) -> None:
    if asked is not None and talks:
        talks[-1][1].event("api_error", asked[0], "the request was not answered")


def _messages(lines: Sequence[str], number: int) -> list[Message]:
    """Messages of a block: apart by dashes, or by a change of role where there are none."""
    messages: list[tuple[str, list[str]]] = []
    fresh = True
    for line in lines:
        if line == "-------":
            fresh = True
            continue
        role, _, rest = line.partition(" ")
        if role not in _ROLES:
            if messages and line.strip():
                messages[-1][1].append(line)
            continue
        if fresh or messages[-1][0] != role:
            messages.append((role, []))
        messages[-1][1].append(rest)
        fresh = False
    said = [(cast(Role, role.lower()), "\n".join(parts)) for role, parts in messages]
    return [Message(role if role != "tool" else "user", (Text(text),), (number,)) for role, text in said if text]
