"""`Notation`: arguments as an object with quotes of its own and bare keys, as Gemma writes them.

    Gemma 4        <|tool_call>call:f{city:<|"|>Bern<|"|>,days:3,exact:true}<tool_call|>
    FunctionGemma  <start_function_call>call:f{city:<escape>Bern<escape>}<end_function_call>

Keys come in order of the alphabet, nothing is escaped: a text that holds the quote itself cannot be written so. A model
is read with more patience: blank space, keys in quotes, and JSON's own quotes do not matter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from postgrad.core.message import Tool
from postgrad.models.calls import dumps
from postgrad.models.marked_calls import Marked

_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_BARE = re.compile(r"[^,{}\[\]]*")


class _NoValue(Exception):
    """What stands at a place is no value."""


@dataclass(frozen=True, kw_only=True)
class Notation(Marked):
    """Calls with arguments in braces.

    Attributes:
        opening: from the name to the first key; it ends with a brace.
        closing: from the last value to the end of the call; it begins with a brace.
        quote: what stands before and after a text.
        nothing: how the template writes nothing.
    """

    opening: str
    closing: str
    quote: str
    nothing: str = "None"

    @property
    def style(self) -> str:
        """Known for Gemma 4's quotes."""
        return "gemma" if self.quote == '<|"|>' else ""

    def around(self, name: str) -> tuple[str, str]:
        """What stands before and after the braces."""
        return self.first + name + self.opening.removesuffix("{"), self.closing.removeprefix("}") + self.last

    def body(self, name: str, arguments: dict[str, Any] | str) -> str:
        """See `Marked`."""
        inner = arguments if isinstance(arguments, str) else self._pairs(arguments)
        return name + self.opening + inner + self.closing

    def read_arguments(self, text: str, at: int, tool: Tool | None) -> tuple[dict[str, Any] | str, str, int] | None:
        """The object; where it is none, its text up to what ends a call."""
        ending = self.closing.removeprefix("}")
        begin = re.compile(r"\s*(?=\{)").match(text, at)
        if begin is None:
            return None
        parsed = self._parsed(text, begin.end(), ending)
        if parsed is not None:
            value, end = parsed
            return value, "", end
        stop = text.find(ending, begin.end()) if ending else -1
        if stop < 0:
            return None
        return text[begin.end() + 1 : stop].removesuffix("}"), "not the arguments of a call", stop + len(ending)

    def _parsed(self, text: str, at: int, ending: str) -> tuple[dict[str, Any], int] | None:
        """The object and where its call ends; None where it is none, is nested too deep, or the call goes on."""
        try:
            value, end = self._value(text, at)
        except (_NoValue, RecursionError):
            return None
        closing = re.compile(r"\s*" + re.escape(ending)).match(text, end)
        return None if closing is None else (value, closing.end())

    def _pairs(self, arguments: dict[str, Any]) -> str:
        ordered = sorted(arguments.items(), key=lambda pair: pair[0].lower())
        return ",".join(f"{key}:{self._written(value)}" for key, value in ordered)

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return self.quote + value + self.quote
        if isinstance(value, dict):
            return "{" + self._pairs(value) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self._written, value)) + "]"
        return self.nothing if value is None else dumps(value)

    @cached_property
    def _space(self) -> re.Pattern[str]:
        return re.compile(r"\s*")

    def _skip(self, text: str, at: int) -> int:
        found = self._space.match(text, at)
        return found.end() if found else at

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        """The value at a place and where it ends."""
        at = self._skip(text, at)
        if text.startswith(self.quote, at):
            return self._quoted(text, at)
        if text.startswith('"', at):
            return _json_text(text, at)
        if text.startswith("{", at):
            return self._object(text, at + 1)
        if text.startswith("[", at):
            return self._list(text, at + 1)
        found = _BARE.match(text, at)
        word = found[0].strip() if found else ""
        if found is None or not word:
            raise _NoValue
        if word in _WORDS:
            return _WORDS[word], found.end()
        try:
            return json.loads(word), found.end()
        except ValueError:
            return word, found.end()  # a text whose quotes were forgotten

    def _quoted(self, text: str, at: int) -> tuple[str, int]:
        stop = text.find(self.quote, at + len(self.quote))
        if stop < 0:
            raise _NoValue
        return text[at + len(self.quote) : stop], stop + len(self.quote)

    def _key(self, text: str, at: int) -> tuple[str, int]:
        at = self._skip(text, at)
        if text.startswith(self.quote, at):
            key, at = self._quoted(text, at)
        elif text.startswith('"', at):
            key, at = _json_text(text, at)
        else:
            stop = text.find(":", at)
            if stop < 0:
                raise _NoValue
            key, at = text[at:stop].strip(), stop
        at = self._skip(text, at)
        if not key or not text.startswith(":", at):
            raise _NoValue
        return key, at + 1

    def _object(self, text: str, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(text, at)
        while not text.startswith("}", at):
            key, at = self._key(text, at)
            if key in found:
                raise _NoValue
            found[key], at = self._value(text, at)
            at = self._separated(text, at, "}")
        return found, at + 1

    def _list(self, text: str, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip(text, at)
        while not text.startswith("]", at):
            value, at = self._value(text, at)
            found.append(value)
            at = self._separated(text, at, "]")
        return found, at + 1

    def _separated(self, text: str, at: int, end: str) -> int:
        """Past the comma behind a value, or at the end."""
        at = self._skip(text, at)
        if text.startswith(",", at):
            return self._skip(text, at + 1)
        if not text.startswith(end, at):
            raise _NoValue
        return at


def _json_text(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except ValueError:
        raise _NoValue from None
    return str(value), end
