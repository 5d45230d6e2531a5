"""`CallForm`: how a family writes tool calls in an answer; the Hermes form, and Harmony.

A form writes the text and the calls of an answer behind its reasoning, and reads back what a model wrote. Which one a
model has is read off its chat template (`call_probe`): the form whose text the template itself writes for a call.

    Hermes      <tool_call>...</tool_call>: of Qwen and Hermes, and of all whose template writes no calls (`calls`)
    Inline      one piece of JSON arguments a call between fixed texts: Llama 3, Mistral, DeepSeek (`inline_calls`)
    Parameters  a tag an argument: Qwen3-Coder, Nemotron, GLM, MiniMax (`parameter_calls`)
    Notation    objects with quotes of their own: Gemma (`notation_calls`)
    Harmony     messages with channels and recipients: GPT-OSS

Not covered: other ways to write calls; such a model is shown and taught the Hermes form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from postgrad.core.message import Block, Message, Reasoning, Text, Tool, ToolCall
from postgrad.models.calls import CLOSE, OPEN, action_text, dumps, parse_action

WORDS = "[^<]+"
_WIRE_ID = re.compile(r"[A-Za-z0-9]{9}")


@dataclass(frozen=True)
class Given:
    """How a template takes calls: with which content beside them, and arguments as an object or as its JSON text."""

    beside: str | None = ""
    textual: bool = False


class CallForm(Protocol):
    """One way to write calls."""

    @property
    def native(self) -> bool:
        """Whether the template is given the calls themselves, and not their text."""
        ...

    @property
    def whole(self) -> bool:
        """Whether it reads the reasoning too."""
        ...

    @property
    def end(self) -> str:
        """What ends an answer whose last block is a call; empty where it ends as any other."""
        ...

    @property
    def given(self) -> Given:
        """How the template takes calls."""
        ...

    @property
    def words(self) -> str:
        """The regular expression of an answer without calls, for grammars."""
        ...

    @property
    def style(self) -> str:
        """The notation of arguments, as xgrammar calls it; empty where it knows none."""
        ...

    def leads(self, message: Message) -> bool:
        """Whether the answer begins without what the template writes before a plain one."""
        ...

    def written(self, message: Message) -> str:
        """Text and calls of an answer, in order."""
        ...

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """The answer that `text` stands for; never fails. `tools` tell forms in which a value does not say its type."""
        ...

    def around(self, name: str) -> tuple[str, str]:
        """What stands before and after the arguments of the only call in an answer."""
        ...


@dataclass(frozen=True)
class Hermes:
    """Calls between tags, as text of the answer."""

    native: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    end: ClassVar[str] = ""
    style: ClassVar[str] = "json"
    given: ClassVar[Given] = Given()
    words: ClassVar[str] = WORDS

    def leads(self, message: Message) -> bool:
        """No: a call is a part of the answer's text."""
        return False

    def written(self, message: Message) -> str:
        """See `calls`."""
        return action_text(message)

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """See `calls`."""
        return parse_action(text, call_prefix=call_prefix)

    def around(self, name: str) -> tuple[str, str]:
        """The tags and the object."""
        return f'{OPEN}{{"name": {dumps(name)}, "arguments": ', "}" + CLOSE


CALLED, JSON_BODY = " to=functions.", "<|channel|>commentary json<|message|>"
JOIN = "<|end|><|start|>assistant"
FINAL, PREAMBLE = "<|channel|>final<|message|>", "<|channel|>commentary<|message|>"
_BREAK = re.compile(r"<\|(?:end|call|return)\|>(?:\s*<\|start\|>assistant)?|<\|start\|>assistant")
_RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]+)")


@dataclass(frozen=True)
class Harmony:
    """Every part of an answer is a message of its own: analysis, words beside calls (commentary), a call, the answer.

    A model is free to name the recipient before or after the channel; both are read, the template's is written.
    """

    given: Given = Given()
    native: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    end: ClassVar[str] = "<|call|>"
    style: ClassVar[str] = "json"
    words: ClassVar[str] = r"<\|channel\|>final<\|message\|>[^<]+"

    def leads(self, message: Message) -> bool:
        """Beside calls even words have another channel than a plain answer."""
        return bool(message.tool_calls)

    def written(self, message: Message) -> str:
        """The messages; words that no call follows are the final answer, opened by the template where they are all."""
        if not message.tool_calls:
            return action_text(message)
        blocks = [block for block in message.blocks if isinstance(block, Text | ToolCall)]
        last = max(place for place, block in enumerate(blocks) if isinstance(block, ToolCall))
        parts = []
        for place, block in enumerate(blocks):
            if isinstance(block, Text):
                parts.append((PREAMBLE if place < last else FINAL) + block.text)
            else:
                parts.append(block.arguments_raw if unreadable(block) else "".join(self._around(block)))
        return JOIN.join(parts)

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """The messages of one answer; what stands in no message is its words."""
        blocks: list[Block] = []
        calls = 0
        for part in _BREAK.split(text):
            head, found, body = part.partition("<|message|>")
            recipient = _RECIPIENT.search(head)
            if not found:
                said = part if part.strip() else ""
                blocks += [Text(said)] if said else []
            elif recipient:
                name, raw = recipient[1], body.strip()
                blocks.append(ToolCall.from_raw(id=f"{call_prefix}_{calls}", name=name, raw=raw))
                calls += 1
            elif "analysis" in head:
                blocks.append(Reasoning(body))
            elif body:
                blocks.append(Text(body))
        return Message("assistant", tuple(blocks))

    def around(self, name: str) -> tuple[str, str]:
        """Recipient, channel and the mark of the body."""
        return CALLED + name + JSON_BODY, ""

    def _around(self, call: ToolCall) -> tuple[str, str, str]:
        before, after = self.around(call.name)
        return before, arguments_text(call), after


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as they are written: those that cannot be read as they stand there."""
    return call.arguments_raw if call.arguments is None else dumps(call.arguments)


def unreadable(call: ToolCall) -> bool:
    """Whether nothing of a call is known but its text."""
    return call.arguments is None and not call.name


def wire_id(call_id: str) -> str:
    """An id of nine letters and digits, which is what templates with ids ask for: the given one, or one made of it."""
    if _WIRE_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
