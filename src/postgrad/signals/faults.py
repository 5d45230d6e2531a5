"""What is wrong with a call, seen from its tool's schema and from the environment's own words.

`call_fault` looks at the call alone and needs no result; `text_fault` reads what came back. Both name a kind of the
closed list below, which is what hints are written for. This is a plain reading of the schema (required,
properties, type, enum); the full JSON-schema check of teachers' answers is `teachers.validity`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from postgrad.core.message import Tool, ToolCall

FaultKind = Literal[
    "malformed_json",
    "unknown_tool",
    "missing_argument",
    "unexpected_argument",
    "wrong_type",
    "edit_not_found",
    "edit_not_unique",
    "file_not_read",
    "missing_file",
    "too_large",
]


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of a call. `detail` is a sentence, `name` the tool or argument, `expected` its schema."""

    kind: FaultKind
    detail: str
    name: str = ""
    expected: dict[str, Any] = {}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}

# Wordings of several agents; each is matched only in a result that failed.
_TEXTS: tuple[tuple[FaultKind, str], ...] = (
    ("edit_not_found", r"string to replace not found|old_str.{0,40}(did not appear|not found|no match)|no replacement"),
    ("edit_not_unique", r"found \d+ matches of the string|multiple occurrences of|not unique in the file"),
    ("file_not_read", r"file has not been read yet|modified since (it was )?(last )?read|unexpectedly modified"),
    ("too_large", r"exceeds maximum allowed|exceeds the maximum|too large to read"),
    ("missing_file", r"file does not exist|no such file or directory|path .{0,200} does not exist|enoent"),
    ("unknown_tool", r"no such tool|unknown tool|tool .{0,80} not found|not found in registry|is not a valid tool"),
    ("missing_argument", r"required parameter|missing required|is missing|field required"),
    ("unexpected_argument", r"unexpected parameter|unexpected keyword|unrecognized key|additional properties"),
    ("wrong_type", r"expected (type )?\W?(string|number|integer|boolean|array|object)|is not of type|invalid type"),
    ("malformed_json", r"invalid json|json parse|failed to parse|could not be parsed|jsondecodeerror"),
)
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _TEXTS)


def call_fault(call: ToolCall, tools: Sequence[Tool]) -> Fault | None:
    """The first fault of `call` by itself. With no tools known, only its JSON can be judged."""
    if call.parse_error is not None:
        detail = f"the arguments of {call.name} are not a JSON object: {call.parse_error}"
        return Fault("malformed_json", detail, call.name)
    if not tools:
        return None
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return Fault("unknown_tool", f"there is no tool named {call.name}", call.name)
    return _schema_fault(call.arguments or {}, tool)


def _schema_fault(arguments: dict[str, Any], tool: Tool) -> Fault | None:
    properties = tool.parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for name in tool.parameters.get("required") or ():
        if name not in arguments:
            return Fault("missing_argument", f"{tool.name} needs the argument {name}", name, _schema(known.get(name)))
    for name, value in arguments.items():
        if name not in known:
            if known and tool.parameters.get("additionalProperties") in (None, False):
                return Fault("unexpected_argument", f"{tool.name} has no argument {name}", name)
            continue
        schema = _schema(known[name])
        if not _fits(value, schema):
            got = type(value).__name__
            return Fault("wrong_type", f"the argument {name} of {tool.name} is a {got}", name, schema)
    return None


def _schema(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _fits(value: object, schema: dict[str, Any]) -> bool:
    """Type and enum only; a type word that is not JSON Schema's is not judged."""
    if "enum" in schema and isinstance(schema["enum"], list) and value not in schema["enum"]:
        return False
    wanted = schema.get("type")
    names = [name for name in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(name, str)]
    if not names or any(name not in _TYPES for name in names):
        return True
    return any(_is(value, name) for name in names)


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def text_fault(text: str) -> Fault | None:
    """The fault that a failed result's own words name, if any."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return Fault(kind, first_words(text))
    return None


def first_words(text: str, *, limit: int = 600) -> str:
    """The text without the tags some agents put around it, cut to `limit` characters."""
    bare = re.sub(r"</?tool_use_error>", "", text).strip()
    return bare if len(bare) <= limit else bare[: limit - 1].rstrip() + "…"
