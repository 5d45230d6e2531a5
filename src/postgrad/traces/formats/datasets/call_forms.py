"""One call as a model writes it: as a JSON object, as a Python dictionary, or as a Python call.

The arguments are cut out of the text as they stand there, so that the raw string is the model's own. What cannot be
read is a call with `parse_error`, all of its text as raw string, and the name as far as it can be read.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from postgrad.core.message import ToolCall
from postgrad.traces.formats.shapes.plain import string, written

_NAME = re.compile(r"""["'](?:name|tool|function)["']\s*:\s*["']([^"'\n]*)["']""")
_KEYS = ("arguments", "parameters", "args", "kwargs")


def json_calls(text: str) -> list[ToolCall]:
    """The calls in a text that is one call, or a list of them; one with `parse_error` if it is none."""
    text = text.strip()
    items = _elements(text) if text.startswith("[") else [text]
    return [object_call(item) for item in items]


def object_call(text: str) -> ToolCall:
    """A call written as one object; its arguments are cut out of the text as they stand there."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        return _python_object(text) or ToolCall("", _readable_name(text), text, None, f"not JSON: {error}")
    if isinstance(value, dict) and isinstance(inner := value.get("function"), dict):
        value = {"id": value.get("id"), **inner}
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall("", "", text, None, "not an object with a name")
    arguments: Any = next((value[key] for key in _KEYS if key in value), {})
    raw = arguments if isinstance(arguments, str) else _cut(text, arguments)
    key = value.get("id") or value.get("tool_call_id")
    return ToolCall.from_raw(id=string(key), name=value["name"], raw=raw)


def _cut(text: str, arguments: object) -> str:
    """The arguments as they were written, where they can be found."""
    for match in re.finditer(r'"(?:arguments|parameters|args|kwargs)"\s*:\s*', text):
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if value == arguments:
            return text[match.end() : end]
    return written(arguments)


def with_raw(name: str, raw: str) -> ToolCall:
    """A call of that name with this argument string, JSON or Python."""
    call = ToolCall.from_raw(id="", name=name, raw=raw)
    if call.parse_error is not None and (value := _literal(raw)) is not None:
        return ToolCall("", name, raw, value)
    return call


def _python_object(text: str) -> ToolCall | None:
    """A call written as Python writes a dictionary (single quotes, True, None); None if it is none."""
    try:
        tree = _parsed(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Dict):
        return None
    nodes = {
        key.value: value for key, value in zip(tree.keys, tree.values, strict=True) if isinstance(key, ast.Constant)
    }
    name = nodes.get("name")
    inner = next((nodes[key] for key in _KEYS if key in nodes), None)
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or inner is None:
        return None
    raw = ast.get_source_segment(text.strip(), inner) or ""
    return with_raw(name.value, raw)


def python_calls(text: str) -> Iterator[ToolCall]:
    """Calls written as a Python list: ``[search(query="x"), now()]``."""
    try:
        tree = _parsed(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        yield ToolCall("", "", text, None, f"not a list of calls: {error}")
        return
    for node in tree.elts if isinstance(tree, ast.List) else [tree]:
        if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
            yield ToolCall("", "", text, None, "not a list of calls with named arguments")
            return
        words = {str(word.arg): _literal(ast.unparse(word.value), any_type=True) for word in node.keywords}
        name = ast.unparse(node.func).removesuffix(".call")
        yield ToolCall.from_raw(id="", name=name, raw=json.dumps(words, ensure_ascii=False))


def _parsed(text: str) -> ast.expr:
    """Foreign text as a Python expression; what Python would warn about in it is not our user's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(text, mode="eval").body


def _literal(text: str, *, any_type: bool = False) -> Any:
    """The value of a Python literal as plain JSON data, None if it is none (or no dictionary)."""
    try:
        value = json.loads(json.dumps(ast.literal_eval(_parsed(text.strip()))))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return value if any_type or isinstance(value, dict) else None


def _readable_name(text: str) -> str:
    match = _NAME.search(text)
    return match[1] if match else ""


def end_of_value(text: str) -> int:
    """Where the JSON value at the start of a text ends, 0 if there is none."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text.lstrip())[1] + len(text) - len(text.lstrip())
    except (ValueError, RecursionError):
        return 0


def objects(text: str) -> Iterator[str]:
    """Objects that stand one after the other; what is left and is none comes last."""
    while text:
        end = end_of_value(text) or len(text)
        yield text[:end]
        text = text[end:].lstrip("; \n,")


def _elements(text: str) -> list[str]:
    """The texts of a list's elements; the whole text where it is no list that ends."""
    found: list[str] = []
    rest = text[1:].lstrip()
    while rest and not rest.startswith("]"):
        end = end_of_value(rest)
        if not end:
            return [*found, rest] if found else [text]
        found.append(rest[:end])
        rest = rest[end:].lstrip().removeprefix(",").lstrip()
    return found or [text]
