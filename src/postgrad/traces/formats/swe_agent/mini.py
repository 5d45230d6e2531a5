"""mini-swe-agent trajectories: a list of messages, alone or in an object with `info` and `trajectory_format`.

Version 1 writes its command as a fenced block into the text (a call made of it, see `text_actions`) and gets the
output back as a user message with `<returncode>`, or with the word that the command took too long; version 2 calls a
tool, and the output's message holds the return code in `extra`. A return code other than 0 is the flag. An answer
without exactly one command gets a user message that says so: a judgement on that answer. Contexts are the messages
before; records are the messages, by index.

"The same session" means: the same first context and action.

Not covered: commands of custom agents that use neither of the two forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgspec

from postgrad.core.message import Block, Message, Role, ToolResult
from postgrad.core.trace import Feedback, Source
from postgrad.traces.conversation import Action, Conversation, provider_key
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, moment, string, text
from postgrad.traces.formats.swe_agent.contexts import is_message
from postgrad.traces.formats.swe_agent.text_actions import fenced_action
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head

_CODE = re.compile(r"\A\s*<returncode>(-?\d+)</returncode>")
# Version 1 tells so in place of an output, with no return code.
_KILLED = re.compile(r"\A\s*The last command <command>.*?</command> timed out and has been killed", re.DOTALL)
_FENCES = frozenset({"bash", "sh", "mswea_bash_command"})
_OFF_FORMAT = re.compile(r"EXACTLY ONE action|exactly one action in triple backticks|Format error", re.IGNORECASE)
_NAME = "mini-swe-agent"


@dataclass(frozen=True)
class MiniSWEAgent:
    """Reader of mini-swe-agent trajectories."""

    format: str = "mini_swe_agent"

    def recognises(self, head: Head) -> bool:
        """The format's own name, or messages of which some are outputs with a return code after a fenced command."""
        document = head.document
        if isinstance(document, dict):
            named = string(document.get("trajectory_format")).startswith(_NAME)
            return named and isinstance(document.get("messages"), list)
        if not isinstance(document, list) or not document or not all(is_message(item) for item in document):
            return False
        pairs = pairwise(document)
        return any(a["role"] == "assistant" and b["role"] == "user" and _code(b) is not None for a, b in pairs)

    def read(self, path: Path) -> ReadResult:
        """Read a trajectory.

        Raises:
            DataError: it cannot be opened.
        """
        listed = not isinstance(Head(path).document, dict)
        document = JsonDocument(path, "" if listed else "messages")
        info = {} if listed else mapping(document.envelope.get("info"))
        talk = Conversation(fidelity="exact-messages", missing=("tool schemas",))
        model = text(mapping(mapping(mapping(info.get("config")).get("model"))).get("model_name"))
        for item in document.rows("" if listed else "messages"):
            use = _tell(talk, item.number, mapping(item.value), model)
            document.use(item.number, use, string(mapping(item.value).get("role")) or "?")
            if use == "unknown":
                document.note("the record is no message", done="kept raw, not used", line=item.number)
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "metadata", "document")
        if text(info.get("exit_status")):
            talk.event("exit", ENVELOPE, str(info["exit_status"]))
        source = Source(str(path), self.format, document.sha256, _NAME, text(info.get("mini_version")))
        trace = talk.trace(source)
        task = text(info.get("instance_id"))
        return document.result(source, [msgspec.structs.replace(trace, task_id=task)] if trace else [])


def _code(message: Mapping[str, Any]) -> int | None:
    """The return code of a command's output."""
    stated = mapping(message.get("extra")).get("returncode")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated
    found = _CODE.match(shown(read_content(message.get("content")).blocks))
    return int(found[1]) if found else None


def _tell(talk: Conversation, number: int, message: Mapping[str, Any], model: str | None) -> str:
    """One message, and what it was used as."""
    role = message.get("role")
    if role == "assistant":
        talk.act(_action(number, message, model))
        return "step"
    if role == "exit":
        talk.event("exit", number, shown(read_content(message.get("content")).blocks))
        return "event"
    if role not in ("system", "developer", "user", "tool"):
        return "unknown"
    blocks = read_content(message.get("content")).blocks
    code, killed = _code(message), role == "user" and _KILLED.match(shown(blocks)) is not None
    if talk.pending and (code is not None or killed or role == "tool"):
        waiting = talk.pending[0]
        key = text(message.get("tool_call_id")) or provider_key(waiting)
        failed = killed or bool(code) or bool(mapping(message.get("extra")).get("exception_info"))
        flag = failed if code is not None or failed else None
        talk.answer(ToolResult(key, shown(blocks), flag, "error" if failed else "ok"), record=number)
        return "result"
    said = shown(blocks)
    if talk.steps and role == "user" and not talk.pending and _OFF_FORMAT.search(said):
        talk.judge(Feedback("malformed_call", text=said, source=_NAME))
        talk.event("format_error", number, said)
    elif role == "user":
        talk.event("user_text" if not talk.steps else "app_text", number, said)
    talk.tell(Message(cast(Role, role if role != "tool" else "user"), blocks, (number,)))
    return "context"


def _action(number: int, message: Mapping[str, Any], model: str | None) -> Action:
    extra = mapping(message.get("extra"))
    response = mapping(extra.get("response"))
    content = read_content(message.get("content")).blocks
    blocks: list[Block] = [*read_content(message.get("thinking_blocks")).blocks]
    calls = mappings(message.get("tool_calls"))
    if calls:
        given = [mapping(item.get("function")) for item in calls]
        blocks += content
        blocks += [
            call(string(f.get("name")), f.get("arguments"), id=c.get("id")) for f, c in zip(given, calls, strict=True)
        ]
    else:
        blocks += fenced_action(shown(content), _FENCES, id=f"message-{number}")
    choice = next(iter(mappings(response.get("choices"))), {})
    return Action(
        blocks,
        (number,),
        text(response.get("model")) or model,
        text(choice.get("finish_reason")),
        mapping(response.get("usage")),
        moment(extra.get("timestamp")),
    )
