"""Tool definitions in all known shapes.

OpenAI {"type": "function", "function": {...}}, Responses and OTel {"type": "function", "name", "parameters"}, Anthropic
{"name", "input_schema"}, MCP and Vercel {"name", "inputSchema"}, Gemini {"function_declarations": [...]}, pydantic-ai
{"name", "parameters_json_schema"}, Bedrock {"toolSpec": {"inputSchema": {"json"}}}. Entries without a name are left
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postgrad.core.message import Tool
from postgrad.traces.formats.shapes.plain import first, mapping, opened, string

_SCHEMAS = (
    *("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema"),
    *("json_schema", "args_schema", "schema"),
)


def tools(value: object) -> tuple[Tool, ...]:
    """The tools in a list, in an object by name, or in the JSON text of one of them."""
    value = opened(value)
    if isinstance(value, dict):
        if any(
            key in value for key in ("function_declarations", "functionDeclarations", "toolSpec", "name", "function")
        ):
            value = [value]
        else:
            value = (
                [
                    {"name": name, **item} if isinstance(item, dict) else None
                    for name, item in value.get("tools", value).items()
                ]
                if isinstance(value.get("tools", value), dict)
                else value.get("tools")
            )
    if not isinstance(value, list):
        return ()
    return tuple(tool for item in value for tool in _tools(opened(item)))


def is_tool(value: object) -> bool:
    """Whether an object defines a tool, and is no call of one."""
    if not isinstance(value, Mapping) or not isinstance(inner := value.get("function"), Mapping):
        return False
    return "arguments" not in inner and bool({"parameters", "description"} & inner.keys())


def _tools(item: object) -> list[Tool]:
    if not isinstance(item, dict):
        return []
    declared = first(item, "function_declarations", "functionDeclarations")
    if isinstance(declared, list):
        return [tool for inner in declared for tool in _tools(inner)]
    source: dict[str, Any] = mapping(first(item, "function", "toolSpec")) or item
    name = string(source.get("name"))
    if not name and isinstance(source.get("json_schema"), str | dict):
        return _tools(opened(source["json_schema"]))  # OpenInference
    schema = mapping(opened(first(source, *_SCHEMAS)))
    return [Tool(name, string(source.get("description")), mapping(schema.get("json")) or schema)] if name else []
