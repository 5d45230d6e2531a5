"""`Inline`: calls as they stand in an answer, from what one chat template writes around names and arguments.

    Llama 3    {"name": "f", "parameters": {...}}                    also read behind <|python_tag|>
    Mistral    [TOOL_CALLS] [{"name": "f", "arguments": {...}, "id": "a1b2c3d4e"}],  [TOOL_CALLS]f[ARGS]{...}
    DeepSeek   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f ... <｜tool▁calls▁end｜>

All are one pattern: first, name, middle, arguments, then `between` and the next call, and `last`. It is written to the
byte as the template does; a model is read with more patience: blank space, the order of keys, and either name for the
arguments do not matter. A call that was cut off, or is none behind a mark that promises one, is kept with
`parse_error`. Without such a mark (Llama) a call takes a whole line, and an object that is none is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

from postgrad.core.message import Block, Message, Text, Tool, ToolCall
from postgrad.models.call_forms import WORDS, Given, arguments_text, unreadable, wire_id
from postgrad.models.calls import dumps, raw_arguments

ID = "\ue002"
"""Stands for a call's id in the texts around it."""

_OBJECT = re.compile(r'\{\s*"name"\s*:\s*"\Z')
_BARE = re.compile(r"^[ \t]*(?:<\|python_tag\|>\s*)?(?=\{)", re.MULTILINE)
_ARGUMENT_KEYS = ("arguments", "parameters")
_LITERAL_NAME = r"(?P<name>[^\s<>\[\]{}\"｜]+)"


@dataclass(frozen=True)
class Inline:
    """The texts around names and arguments.

    Attributes:
        given: how the template takes calls.
        plain: an answer that begins with a call is opened as one in words is.
    """

    first: str
    middle: str
    between: str
    last: str
    given: Given = field(default_factory=Given)
    plain: bool = False
    native: ClassVar[bool] = True
    whole: ClassVar[bool] = False
    end: ClassVar[str] = ""
    style: ClassVar[str] = "json"

    @property
    def readable(self) -> bool:
        """Whether something shows where a call begins: a mark, or the object that it stands in."""
        return self._is_object or bool(self._mark)

    def leads(self, message: Message) -> bool:
        """An answer that begins with a call, where the template opens such a one otherwise."""
        begins = next((block for block in message.blocks if isinstance(block, Text | ToolCall)), None)
        return isinstance(begins, ToolCall) and not self.plain

    def written(self, message: Message) -> str:
        """Text and runs of calls; without a mark before them calls take a line of their own."""
        parts = [block for block in message.blocks if isinstance(block, Text | ToolCall)]
        pieces: list[str] = []
        for is_call, run in groupby(parts, key=lambda block: isinstance(block, ToolCall)):
            blocks = list(run)
            if is_call:
                pieces.append(self._calls_text([block for block in blocks if isinstance(block, ToolCall)]))
            else:
                pieces.append("\n".join(block.text for block in blocks if isinstance(block, Text)))
        return ("" if self._mark else "\n").join(pieces)

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """Text and calls in order. Text beside calls is kept without the blank space that touches them."""
        return spoken(text, self._runs(text), call_prefix=call_prefix)

    def around(self, name: str) -> tuple[str, str]:
        """With an id of zeros, where the form has ids."""
        before, after = (text.replace(ID, "0" * 9) for text in (self.middle, self.last))
        return self.first + self._name(name) + before, after

    @property
    def words(self) -> str:
        """Text that opens no call."""
        return r"[^{<][^<]*" if not self._mark else WORDS if self._mark.startswith("<") else r"[^\[<]+"

    @property
    def _mark(self) -> str:
        """What announces calls: all before the first name, without the object that it stands in."""
        return _OBJECT.sub("", self.first).strip().rstrip("[").rstrip()

    @property
    def _is_object(self) -> bool:
        return _OBJECT.search(self.first) is not None

    def _name(self, name: str) -> str:
        return dumps(name)[1:-1] if self._is_object else name

    def _calls_text(self, calls: Sequence[ToolCall]) -> str:
        if any(unreadable(call) for call in calls):  # kept whole, marks included; what stood beside it stands in it
            return "".join(call.arguments_raw if unreadable(call) else self._calls_text([call]) for call in calls)
        text = self.first
        for place, call in enumerate(calls):
            after = self.last if place == len(calls) - 1 else self.between
            own = wire_id(call.provider_id or call.id)
            text += self._name(call.name) + self.middle.replace(ID, own)
            text += arguments_text(call) + after.replace(ID, own)
        return text

    def _runs(self, text: str) -> Iterator[tuple[int, int, list[ToolCall]]]:
        """Where calls stand in a row: start, stop, and the calls."""
        at = 0
        opening = _BARE if not self._mark else self._opening
        while match := opening.search(text, at):
            read = self._objects if self._is_object else self._literals
            calls, stop = read(text, match)
            if calls:
                yield match.start(), stop, calls
            at = max(stop, match.end(), match.start() + 1)

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return re.compile(patient(self._mark) if self._is_object else patient(self.first))

    def _objects(self, text: str, match: re.Match[str]) -> tuple[list[ToolCall], int]:
        """Objects behind the mark, in a list or one after the other."""
        at = match.end()
        calls: list[ToolCall] = []
        while (begin := re.compile(r"[\s\[;,]*(?=\{)").match(text, at)) is not None:
            try:
                value, end = json.JSONDecoder().raw_decode(text, begin.end())
            except (ValueError, RecursionError):
                break
            call = _object_call(value, text[begin.end() : end])
            if call is None:
                break
            calls.append(call)
            at = end
        if not self._mark:
            alone = not text[at:].partition("\n")[0].strip()
            return (calls, at) if alone else ([], match.end())
        closing = re.compile(patient(self.last.rpartition("}")[2])).match(text, at)
        if calls and closing:
            return calls, closing.end()
        return broken(text, match)

    def _literals(self, text: str, match: re.Match[str]) -> tuple[list[ToolCall], int]:
        """Names and arguments between fixed texts."""
        calls: list[ToolCall] = []
        at, following = match.end(), re.compile(patient(self.between) + f"(?={_LITERAL_NAME})")
        head = re.compile(r"\s*" + _LITERAL_NAME + patient(self.middle))
        closing = re.compile(patient(self.last) if self.last else r"\Z|\s*")
        while named := head.match(text, at):
            raw, end = _value(text, named.end(), (following, closing) if self.last else (following,))
            after = following.match(text, end) or closing.match(text, end)
            key = named.groupdict().get("id") or (after.groupdict().get("id") if after else None)
            call = ToolCall.from_raw(id="", name=named["name"], raw=raw.strip(), provider_id=key)
            calls.append(call)
            if after is None:
                break
            if after.re is closing:
                return calls, after.end()
            at = after.end()
        return broken(text, match)


def _object_call(value: Any, body: str) -> ToolCall | None:
    """An object as a call; None where it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if key is None or not set(value) <= {"name", "id", "type", key}:
        return None
    if not isinstance(value[key], dict):
        return ToolCall("", value["name"], dumps(value[key]), None, "no arguments object")
    own = value.get("id")
    raw = raw_arguments(body, value[key])
    return ToolCall.from_raw(id="", name=value["name"], raw=raw, provider_id=own if isinstance(own, str) else None)


def broken(text: str, match: re.Match[str]) -> tuple[list[ToolCall], int]:
    """What follows a mark and is no call, or does not end: kept whole, the mark included."""
    return [ToolCall("", "", text[match.start() :], None, "no call that ends")], len(text)


def _value(text: str, at: int, ends: Sequence[re.Pattern[str]]) -> tuple[str, int]:
    """The JSON value at a place and where it ends; what is none reaches to the next text that ends a call."""
    start = at + len(text[at:]) - len(text[at:].lstrip())
    try:
        end = json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        found = [match.start() for pattern in ends if (match := pattern.search(text, at))]
        end = min(found, default=len(text))
    return text[start:end], end


def patient(text: str) -> str:
    """A pattern for a fixed text in which blank space may come, go and be of any kind."""
    parts = re.findall(r"\s+|[\[\]{}:,]|.", text)
    pattern = ""
    for part in parts:
        if part.isspace():
            pattern += r"\s*"
        elif part == ID:
            pattern += r"(?P<id>[\w.:-]+)"
        else:
            pattern += re.escape(part)
    return r"\s*" + pattern if text else ""


def spoken(text: str, runs: Iterable[tuple[int, int, Sequence[ToolCall]]], *, call_prefix: str) -> Message:
    """An answer of words and calls in order, the calls numbered; `runs` say where calls stand: start, stop, calls."""
    blocks: list[Block] = []
    at = calls = 0
    for start, stop, found in runs:
        blocks += said(text[at:start])
        for call in found:
            blocks.append(numbered(call, f"{call_prefix}_{calls}"))
            calls += 1
        at = stop
    if not calls:
        return Message("assistant", (Text(text),) if text else ())
    return Message("assistant", (*blocks, *said(text[at:])))


def numbered(call: ToolCall, call_id: str) -> ToolCall:
    """The call under another id."""
    return ToolCall(call_id, call.name, call.arguments_raw, call.arguments, call.parse_error, call.provider_id)


def said(text: str) -> list[Block]:
    """The words beside calls, without the blank space around them; no block where there are none."""
    return [Text(text.strip())] if text.strip() else []
