"""Tools as signatures: the call that each one wants, with types where the values go.

    # Route by public transport.
    {"name": "plan_route", "arguments": {"start": string /* Start. */, "depart_at"?: string /* Departure as HH:MM. */}}

This is what a model is shown whose own template knows no tools. The shape is that of the answer, so that even a small
model can copy it, and it takes a fifth fewer tokens than the JSON schema. Types are written as in TypeScript: ``?``
may be left out, ``|`` or, ``[]`` a list of, ``[key]`` any key. Whatever else a schema says about a value (limits,
patterns, defaults) stands in its comment as JSON Schema names it; only titles are left out. References inside the
schema are followed, recursive ones once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.message import Tool

_NAMES = ("$ref", "$defs", "definitions", "title")
_TYPES = ("type", "enum", "const", "anyOf", "oneOf", "items", "properties", "required")
_SHOWN = frozenset((*_TYPES, *_NAMES, "description"))


def signature(tool: Tool) -> str:
    """One tool: its description as a comment line, and its call."""
    schema = tool.parameters
    call = f'{{"name": {_json(tool.name)}, "arguments": {_object(schema, schema, ())}}}'
    return f"# {_line(tool.description)}\n{call}" if tool.description else call


def _type(schema: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> str:
    """The type of a value. `inside` are the references on the way here."""
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(reference := schema.get("$ref"), str):
        target = _target(reference, root)
        return "any" if target is None or reference in inside else _type(target, root, (*inside, reference))
    if "const" in schema:
        return _json(schema["const"])
    if isinstance(schema.get("enum"), list):
        return " | ".join(_json(value) for value in schema["enum"])
    for either in ("anyOf", "oneOf"):
        if isinstance(schema.get(either), list):
            return " | ".join(dict.fromkeys(_type(part, root, inside) for part in schema[either]))
    kind = schema.get("type", "object" if "properties" in schema else "any")
    kinds = [kind] if isinstance(kind, str) else kind
    return " | ".join(_named(str(name), schema, root, inside) for name in kinds)


def _named(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], inside: tuple[str, ...]) -> str:
    if kind == "array":
        item = _type(schema.get("items"), root, inside)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind in ("object", "dict") and (schema.get("properties") or schema.get("additionalProperties")):
        return _object(schema, root, inside)
    return kind


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], inside: tuple[str, ...]) -> str:
    required = schema.get("required")
    needed = required if isinstance(required, Sequence) else ()
    members = [
        f"{_json(name)}{'' if name in needed else '?'}: {_type(value, root, inside)}{_comment(value)}"
        for name, value in (schema.get("properties") or {}).items()
    ]
    rest = schema.get("additionalProperties")
    if isinstance(rest, Mapping):
        members.append(f"[key]: {_type(rest, root, inside)}{_comment(rest)}")
    return "{" + ", ".join(members) + "}"


def _comment(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    words = [_line(str(schema["description"]))] if schema.get("description") else []
    limits = {name: value for name, value in schema.items() if name not in _SHOWN and not isinstance(value, Mapping)}
    words += [f"{name}: {_json(value)}" for name, value in limits.items()]
    text = " ".join(words).replace("*/", "* /")
    return f" /* {text} */" if text else ""


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    """What ``#/$defs/Name`` stands for, None when it is not there."""
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _line(text: str) -> str:
    return " ".join(text.split())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
