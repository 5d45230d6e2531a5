"""Tools as signatures: every thing that a schema says is in the text."""

from __future__ import annotations

from typing import Any

from postgrad.core.message import Tool
from postgrad.models.signatures import signature


def shown(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> str:
    """The arguments of a tool with these properties."""
    tool = Tool("f", "", {"type": "object", "properties": properties, "required": required or [], **more})
    return signature(tool).removeprefix('{"name": "f", "arguments": ').removesuffix("}")


def test_a_tool_reads_as_its_call() -> None:
    text = {"type": "string", "description": "Start."}
    tool = Tool("plan_route", "Route by\n public transport.", {"properties": {"start": text}, "required": ["start"]})
    assert signature(tool) == (
        '# Route by public transport.\n{"name": "plan_route", "arguments": {"start": string /* Start. */}}'
    )
    assert signature(Tool("now")) == '{"name": "now", "arguments": {}}'


def test_types() -> None:
    assert shown({"a": {"type": "integer"}, "b": {}}, ["a"]) == '{"a": integer, "b"?: any}'
    assert shown({"a": {"enum": ["x", 2, None]}}) == '{"a"?: "x" | 2 | null}'
    assert shown({"a": {"type": ["string", "null"]}}) == '{"a"?: string | null}'
    assert shown({"a": {"type": "array", "items": {"type": "number"}}}) == '{"a"?: number[]}'
    either = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"enum": ["x", "y"]}}]}
    assert shown({"a": either}) == '{"a"?: string | ("x" | "y")[]}'
    assert shown({"a": {"const": 1}}) == '{"a"?: 1}'


def test_nested_objects_maps_and_references() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    assert shown({"a": inner}) == '{"a"?: {"x": number}}'
    assert shown({"a": {"type": "dict", "properties": inner["properties"]}}) == '{"a"?: {"x"?: number}}'
    assert shown({"a": {"type": "object", "additionalProperties": {"type": "string"}}}) == '{"a"?: {[key]: string}}'
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}}
    assert shown({"a": {"$ref": "#/$defs/Tree"}}, **{"$defs": {"Tree": tree}}) == '{"a"?: {"next"?: any}}'
    assert shown({"a": {"$ref": "#/$defs/None"}}) == '{"a"?: any}'


def test_limits_and_defaults_stay_in_the_comment() -> None:
    schema = {"type": "integer", "description": "Nights, 1*/2.", "minimum": 1, "default": 2}
    assert shown({"a": schema}) == '{"a"?: integer /* Nights, 1* /2. minimum: 1 default: 2 */}'
