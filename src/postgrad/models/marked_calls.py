"""`Marked`: calls behind a mark, each argument written by itself; the base of `Parameters` and `Notation`.

What is written is the template's text to the byte. A model is read with more patience: blank space may come and go.
What follows a mark and is no call, or does not end, is kept whole with `parse_error`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from postgrad.core.message import Message, Text, Tool, ToolCall
from postgrad.models.call_forms import WORDS, Given, unreadable
from postgrad.models.calls import dumps
from postgrad.models.inline_calls import broken, patient, spoken

_NAME = re.compile(r"\s*([^\s<>{}\[\]\"=|]+)")


@dataclass(frozen=True)
class Marked(ABC):
    """Texts around calls.

    Attributes:
        first: before the first call's name.
        between: from the end of a call to the next one's name.
        last: after the last call.
        beside: between words and the first call.
        given: how the template takes calls.
        plain: an answer that begins with a call is opened as one in words is.
        end: what ends an answer whose last block is a call; empty where it ends as any other.
    """

    first: str
    between: str
    last: str
    beside: str = "\n"
    given: Given = field(default_factory=Given)
    plain: bool = False
    end: str = ""
    native: ClassVar[bool] = True
    whole: ClassVar[bool] = False
    words: ClassVar[str] = WORDS

    @property
    @abstractmethod
    def style(self) -> str:
        """What xgrammar calls the arguments' notation; empty where it knows none."""

    @abstractmethod
    def body(self, name: str, arguments: dict[str, Any] | str) -> str:
        """Name and arguments (a text stands for arguments that nobody could read), up to the end of the call."""

    @abstractmethod
    def read_arguments(self, text: str, at: int, tool: Tool | None) -> tuple[dict[str, Any] | str, str, int] | None:
        """The arguments that stand at a place behind a name: their text and why where they are none, and their end."""

    def leads(self, message: Message) -> bool:
        """An answer that begins with a call, where the template opens such a one otherwise."""
        begins = next((block for block in message.blocks if isinstance(block, Text | ToolCall)), None)
        return isinstance(begins, ToolCall) and not self.plain

    def written(self, message: Message) -> str:
        """Words and runs of calls, in order."""
        blocks = [block for block in message.blocks if isinstance(block, Text | ToolCall)]
        text = ""
        for is_call, run in groupby(blocks, key=lambda block: isinstance(block, ToolCall)):
            part = list(run)
            if is_call:
                text += (self.beside if text else "") + self._calls([b for b in part if isinstance(b, ToolCall)])
            else:
                text += ("\n" if text else "") + "\n".join(block.text for block in part if isinstance(block, Text))
        return text

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """Words and calls in order; `tools` say which arguments are text. Words lose blank space that touches calls."""
        return spoken(text, self._runs(text, {tool.name: tool for tool in tools}), call_prefix=call_prefix)

    def _calls(self, calls: Sequence[ToolCall]) -> str:
        if any(unreadable(call) for call in calls):  # kept whole, marks included; what stood beside it stands in it
            return "".join(call.arguments_raw if unreadable(call) else self._calls([call]) for call in calls)
        bodies = [self.body(c.name, c.arguments_raw if c.arguments is None else c.arguments) for c in calls]
        return self.first + self.between.join(bodies) + self.last

    def _runs(self, text: str, tools: dict[str, Tool]) -> Iterator[tuple[int, int, list[ToolCall]]]:
        """Where calls stand in a row: start, stop, and the calls."""
        opening = re.compile(patient(self.first.lstrip()).removeprefix(r"\s*"))
        between, last = re.compile(patient(self.between)), re.compile(patient(self.last))
        at = 0
        while match := opening.search(text, at):
            calls: list[ToolCall] = []
            following: re.Match[str] | None = match
            at = match.end()
            while following and (one := self._call(text, following.end(), tools)):
                calls.append(one[0])
                at, following = one[1], between.match(text, one[1])
            closing = last.match(text, at) if calls and not following else None
            if closing is None:
                (calls, at) = broken(text, match)
            else:
                at = closing.end() if self.last else at
            yield match.start(), at, calls

    def _call(self, text: str, at: int, tools: dict[str, Tool]) -> tuple[ToolCall, int] | None:
        name = _NAME.match(text, at)
        found = self.read_arguments(text, name.end(), tools.get(name[1])) if name else None
        if name is None or found is None:
            return None
        arguments, why, end = found
        if isinstance(arguments, str):
            return ToolCall("", name[1], arguments, None, why), end
        return ToolCall("", name[1], dumps(arguments), arguments), end
