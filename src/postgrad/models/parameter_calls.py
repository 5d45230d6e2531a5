"""`Parameters`: every argument in tags of its own, as one chat template writes them.

    Qwen3-Coder, Nemotron 3   <tool_call> <function=f> <parameter=k> v </parameter> </function> </tool_call>
    GLM-4.5 to 4.7            <tool_call>f <arg_key>k</arg_key> <arg_value>v</arg_value> </tool_call>
    MiniMax M2                <invoke name="f"> <parameter name="k">v</parameter> </invoke>

(with line breaks for the blanks). All are one pattern around names, keys and values. Text is written as it is and
everything else as JSON, or, where the template prints values as Python does, as that (`True`, `None`). So a value does
not say whether it was text: the tool's schema does, where it is known; without it what reads as JSON is taken for that.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from postgrad.core.message import Tool
from postgrad.models.calls import dumps
from postgrad.models.inline_calls import patient
from postgrad.models.marked_calls import Marked

_WORDS = {"True": True, "False": False, "None": None}
_STYLES = {"<parameter=": "qwen_xml", "<arg_key>": "glm_xml", '<parameter name="': "minimax_xml"}
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


@dataclass(frozen=True)
class Tags:
    """The texts between name, keys and values.

    Attributes:
        opening: from the name to the first key.
        value: from a key to its value.
        following: from a value to the next key.
        closing: from the last value to the end of the call.
        empty: from the name to the end of a call without arguments.
        python: truth values and nothing are printed as Python does.
        nested: so are lists and objects.
    """

    opening: str
    value: str
    following: str
    closing: str
    empty: str
    python: bool = False
    nested: bool = False


@dataclass(frozen=True, kw_only=True)
class Parameters(Marked):
    """Calls with an argument a tag."""

    tags: Tags

    @property
    def style(self) -> str:
        """By the tag before a key."""
        return next((style for tag, style in _STYLES.items() if self.tags.opening.endswith(tag)), "")

    def around(self, name: str) -> tuple[str, str]:
        """What stands before and after the arguments, tags of arguments not included."""
        head, tail = self._shell()
        return self.first + name + head, tail + self.last

    def body(self, name: str, arguments: dict[str, Any] | str) -> str:
        """See `Marked`."""
        tags = self.tags
        if isinstance(arguments, str):
            head, tail = self._shell()
            return name + head + arguments + tail
        pairs = [key + tags.value + self._written_value(value) for key, value in arguments.items()]
        return name + (tags.opening + tags.following.join(pairs) + tags.closing if pairs else tags.empty)

    def read_arguments(self, text: str, at: int, tool: Tool | None) -> tuple[dict[str, Any] | str, str, int] | None:
        """To the byte as the template writes it, or else with patience for blank space."""
        for texts in (self._exact, self._patient):
            found = _pairs(text, at, texts)
            if found is not None:
                break
        else:
            return None
        pairs, end = found
        keys = [key for key, _ in pairs]
        double = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if double is not None:
            head, tail = self._shell()
            return text[at:end].removeprefix(head).removesuffix(tail), f"argument '{double}' is given twice", end
        schemas = (tool.parameters.get("properties") if tool else None) or {}
        return {key: self._read_value(raw, schemas.get(key)) for key, raw in pairs}, "", end

    @cached_property
    def _exact(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(re.escape(part)) for part in self._parts)

    @cached_property
    def _patient(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(patient(part)) for part in self._parts)

    @property
    def _parts(self) -> tuple[str, ...]:
        return self.tags.opening, self.tags.value, self.tags.following, self.tags.closing, self.tags.empty

    def _shell(self) -> tuple[str, str]:
        """The call without arguments, where these would begin: both texts behind the name begin alike."""
        pairs = zip(self.tags.opening, self.tags.empty, strict=False)
        same = next((k for k, (one, other) in enumerate(pairs) if one != other), len(self.tags.empty))
        head = self.tags.empty[:same].removesuffix("<")
        return head, self.tags.empty[len(head) :]

    def _written_value(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (dict, list)):
            return str(value) if self.tags.nested else dumps(value)
        return str(value) if self.tags.python else dumps(value)

    def _read_value(self, raw: str, schema: object) -> Any:
        kinds = _kinds(schema)
        if kinds == {"string"}:
            return raw
        value = self._guessed(raw)
        fits = not kinds or bool(kinds & _kinds_of(value))
        return value if fits or "string" not in kinds else raw

    def _guessed(self, raw: str) -> Any:
        if self.tags.python and raw in _WORDS:
            return _WORDS[raw]
        try:
            value = json.loads(raw, parse_constant=str) if raw == raw.strip() else raw
        except (ValueError, RecursionError):
            value = _python(raw) if self.tags.nested and raw[:1] in ("[", "{") else raw
        return raw if isinstance(value, str) else value


def _pairs(text: str, at: int, texts: tuple[re.Pattern[str], ...]) -> tuple[list[tuple[str, str]], int] | None:
    """Keys and values that stand behind a name, and where the call ends; None where it is none."""
    opening, to_value, following, closing, empty = texts
    pairs: list[tuple[str, str]] = []
    step = opening.match(text, at)
    while step is not None:
        to = to_value.search(text, step.end())
        key = text[step.end() : to.start()].strip() if to else ""
        if to is None or not key or "<" in key or "\n" in key:
            return None
        more, end = following.search(text, to.end()), closing.search(text, to.end())
        goes_on = more is not None and (end is None or more.start() < end.start())
        stop = more if goes_on else end
        if stop is None:
            return None
        pairs.append((key, text[to.end() : stop.start()]))
        at, step = stop.end(), (stop if goes_on else None)
    if pairs:
        return pairs, at
    none = empty.match(text, at)
    return ([], none.end()) if none else None


def _python(raw: str) -> Any:
    try:
        return ast.literal_eval(raw)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return raw


def _kinds(schema: object) -> set[str]:
    """The types that a schema allows, as far as it says so."""
    if not isinstance(schema, Mapping):
        return set()
    kinds = schema.get("type")
    found = {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else set()
    if isinstance(schema.get("enum"), list):
        found = found or _of(schema["enum"])
    for name in ("anyOf", "oneOf"):
        for option in schema.get(name) or ():
            found |= _kinds(option)
    return {str(kind) for kind in found}


def _of(values: Iterable[object]) -> set[str]:
    return {kind for value in values for kind in _kinds_of(value)}


def _kinds_of(value: object) -> set[str]:
    """Names that schemas have for a value's type; a whole number is a number too."""
    if value is None:
        return {"null"}
    kind = _KINDS.get(type(value), "")
    return {kind, "number"} if kind == "integer" else {kind}
