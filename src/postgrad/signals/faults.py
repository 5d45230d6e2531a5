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
from postgrad.signals.phrases import Phrases

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
    "empty_patch",
    "patch_mismatch",
    "bad_edit",
    "no_change",
    "bad_range",
    "bad_value",
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

# Wordings of several agents; each is matched only in a result that failed, or at the start of an edit tool's result.
_TEXTS: tuple[tuple[FaultKind, str], ...] = (
    ("patch_mismatch", r"apply_?patch verification failed(?!.{0,200}no such file)"),
    (
        "edit_not_found",
        r"(string|text|content|snippet|code)\b.{0,40}\bto (replace|edit|search for)\b.{0,40}\b(not|n't) (found"
        r"|appear|exist|match)"
        r"|(old_?(str|string|text|content)|search (block|text|string|content|pattern)|target content|context lines?)\b"
        r".{0,400}?(did not appear|did not match|not found|no match|does not match|doesn't match|not in (the )?(file"
        r"|content)|could not be found)"
        r"|no replacement (was )?(performed|made)|no (exact|sufficiently similar) match(es)? found"
        r"|no match(es)? (was |were )?found (for|in)"
        r"|(could not|couldn't|failed to|unable to) (find|locate|match) .{0,60}"
        r"(string|text|block|lines?|context|snippet|hunk|content to (replace|edit))|0 (occurrences|matches"
        r"|replacements)( found| of| made|\b)"
        r"|searchreplacenoexactmatch|zeichenfolge.{0,40}nicht gefunden"
        r"|未找到(要)?替换|找不到要替换|找不到(原|旧|指定)?(文本|字串|字符串)"
        r"|置換対象.{0,20}見つかりません",
    ),
    (
        "edit_not_unique",
        r"found \d+ matches of the string|multiple (occurrences|matches)( of| found|\b)|(is )?not unique"
        r"|matches? (in )?(multiple|several)"
        r"|found multiple|ambiguous (match|edit|search)|expected \d+ (occurrences?|replacements?) but found \d+"
        r"|more than one (match|occurrence)",
    ),
    (
        "file_not_read",
        r"file has not been read yet|must (first )?(be )?read .{0,60}\b(before|first)"
        r"|modified since (it was )?(last )?read"
        r"|unexpectedly modified|(you )?must read (the )?file|has been modified since",
    ),
    (
        "too_large",
        r"exceeds maximum allowed|exceeds the maximum|too (large|long|big) to (read|open|display|edit)"
        r"|exceeds .{0,40}(limit|size)\b"
        r"|(file|content|input|output|response) (is )?too (large|long|big)|maximum (context|allowed) .{0,20}(length"
        r"|tokens|size)",
    ),
    (
        "empty_patch",
        r"empty patch|patch (is|was) empty|no (hunks|changes|edits) (in|were found in) (the )?patch"
        r"|no diff (blocks? )?found",
    ),
    (
        "patch_mismatch",
        r"(invalid|malformed|corrupt) (patch|hunk|diff)|patch (does not apply"
        r"|failed|rejected)"
        r"|failed to apply (the )?(patch|diff|edit|hunk)|hunk #?\d+ (failed|rejected)|invalid (context|add file line"
        r"|update file line)"
        r"|context mismatch|not a valid (patch|diff)",
    ),
    (
        "bad_edit",
        r"edit has introduced (new )?(syntax|lint)\w* error|your (proposed )?(edit|changes?) (has"
        r"|have) not been applied"
        r"|e\d{3} (indentation|syntax)error",
    ),
    (
        "no_change",
        r"no changes? (to (make|apply)|were made|made|detected|needed)|(are|is) (exactly )?(the same"
        r"|identical)\b.{0,60}|would (result in|make) no changes?"
        r"|old_?str(ing)? and new_?str(ing)?.{0,40}(same|identical|different)|applied 0 (of|edits|changes|hunks)",
    ),
    (
        "bad_range",
        r"invalid .{0,30}(view_range|range|line number|offset|insert_line)|(line|offset|range|index|position).{0,60}"
        r"(out of (range|bounds)|beyond|exceeds|past the end|greater than|smaller than the number|shorter than)"
        r"|start .{0,30}must be (less|smaller|before)|file has only \d+ lines",
    ),
    (
        "missing_file",
        r"(file|path|directory|folder) .{0,200}does(n't| not) exist|no such (file|directory)|enoent"
        r"|(file|path|directory|folder) (was )?not found|cannot find (the )?(file|path)|could not find (the )?(file"
        r"|path)|(file|path|directory|folder) .{1,200} (was |is )?not found|non-?existent (file|path|directory|folder)",
    ),
    (
        "unknown_tool",
        r"no such (tool|function)|(unknown|unsupported|unrecognized|undefined) (tool|function|call)|(tool"
        r"|function) .{0,80}"
        r"(not found|not available|does not exist|is not (defined|registered|supported|available)|isn't available)"
        r"|not found in registry|is not a valid (tool|function)|model tried to call unavailable tool|unsupported call",
    ),
    (
        "missing_argument",
        r"required (parameter|argument|property|field)|missing \d* ?(required|value|parameter|argument)|(is"
        r"|was) (missing|required)\b|field required"
        r"|without (a )?value for|must (have required property|provide)|must be provided|required for command",
    ),
    (
        "unexpected_argument",
        r"unexpected (parameter|keyword|argument|property)|unrecognized key|additional ?properties|extra (inputs"
        r"|fields) (are )?not|unknown (parameter|argument|field)",
    ),
    (
        "wrong_type",
        r"expected (type )?\W?(string|number|integer|boolean|array|object)|is not of type|invalid(_| )type"
        r"|must be (a |an |of type )"
        r"?(string|number|integer|boolean|array|object|absolute)|(should be|is not) a valid|validation error"
        r"|inputvalidationerror",
    ),
    (
        "bad_value",
        r"is expected to be one of|(file|path) .{0,200}already exists"
        r"|(cannot (create|overwrite)|attempted to create).{0,60}(exists"
        r"|create)|exists.{0,80}cannot (create|overwrite)"
        r"|must be one of|(is )?not (one of|a valid (choice|option|value))|invalid (option|enum|value|parameter"
        r"|argument|choice)"
        r"|not allowed in a regex|invalid (regex|pattern|regular expression)|failed to parse (regex|pattern)"
        r"|-3260[0-3]",
    ),
    (
        "malformed_json",
        r"invalid json|json ?parse|failed to parse|could not be parsed|jsondecodeerror|unterminated string"
        r"|parsing (error|failed)"
        r"|you did not use a tool|did not (use|call|include) (a|any) (tool|function|action)|format ?error|malformed"
        r"|(解析|parse).{0,10}失败|JSON.{0,6}(错误|錯誤|エラー)",
    ),
)
_PATTERNS = tuple((kind, Phrases(pattern, re.IGNORECASE | re.DOTALL)) for kind, pattern in _TEXTS)


def call_fault(call: ToolCall, tools: Sequence[Tool]) -> Fault | None:
    """The first fault of `call` by itself. With no tools known, only its JSON can be judged.

    A schema inferred from calls forbids nothing, and where one is inferred there may be tools that nobody called.
    """
    if call.parse_error is not None:
        detail = f"the arguments of {call.name} are not a JSON object: {call.parse_error}"
        return Fault("malformed_json", detail, call.name)
    if not tools:
        return None
    tool = next((tool for tool in tools if tool.name == call.name), None)
    known = all(not offered.inferred for offered in tools)
    if (tool is None and not known) or (tool is not None and tool.inferred):
        return None
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
