"""Tool schemas made from the calls that were seen: name, arguments, their types; required is what every call has.

Better than none where a log holds no definitions: a teacher that is asked at a step must be able to name the tools.
They are marked `inferred`, hold no descriptions, and say only what was observed: an argument that no call used is
missing, so they forbid nothing. Calls whose arguments do not parse, and calls of tools that the application did not
know, teach nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from postgrad.core.message import Tool, ToolCall
from postgrad.core.trace import Trace

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_UNKNOWN = ("unknown tool", "no such tool", "not found in registry", "unsupported call")


def infer_tools(trace: Trace) -> tuple[Tool, ...]:
    """A tool for every name that the trace calls, in order of first use."""
    calls: dict[str, list[Mapping[str, Any]]] = {}
    for call in _believed(trace):
        if call.arguments is not None:
            calls.setdefault(call.name, []).append(call.arguments)
    return tuple(Tool(name, parameters=_schema(seen), inferred=True) for name, seen in calls.items() if name)


def _believed(trace: Trace) -> Iterable[ToolCall]:
    for step in trace.steps:
        results = {result.call_id: result for result in step.results}
        for call in step.action.tool_calls:
            result = results.get(call.id)
            refused = result is not None and result.is_error is True
            said = result.text[:400].lower() if result is not None and refused else ""
            if not any(words in said for words in _UNKNOWN):
                yield call


def _schema(seen: list[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for arguments in seen for name in arguments)
    return {
        "type": "object",
        "properties": {name: _type([a[name] for a in seen if name in a]) for name in names},
        "required": [name for name in names if all(name in arguments for arguments in seen)],
    }


def _type(values: list[Any]) -> dict[str, Any]:
    """The types seen, null included; lists tell their items' types, objects only that they are objects."""
    found = dict.fromkeys(_TYPES.get(type(value), "null") for value in values)
    if "number" in found:
        found.pop("integer", None)
    schema: dict[str, Any] = {"type": next(iter(found)) if len(found) == 1 else list(found)}
    items = [item for value in values if isinstance(value, list) for item in value]
    return {**schema, "items": _type(items)} if items else schema
