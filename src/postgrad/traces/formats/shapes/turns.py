"""Lists of messages in the shapes of all known frameworks, as `Said`s: the input side of an LLM call.

    OpenAI, Anthropic, OTel    {"role", "content" | "parts", "tool_calls", "tool_call_id", ...}
    LangChain                  {"lc", "id": [..., "AIMessage"], "kwargs"}, {"type": "human" | "ai" | ..., "content"}
    Responses                  messages and items ({"type": "function_call" | "function_call_output" | "reasoning"})
    Gemini                     {"contents": [{"role": "model", "parts"}], "config": {"system_instruction"}}
    wrappers                   {"messages"}, {"prompt"}, {"input"}, {"args", "kwargs"}, [[...]], JSON inside a string

A value in none of these shapes is one user message with its JSON as text; a bare text is what the user said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from postgrad.core.message import Opaque, Reasoning, Role, Text, ToolCall
from postgrad.traces.formats.shapes.parts import Part, call, parts, result
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, opened, string, text, written
from postgrad.traces.formats.shapes.said import RawResult, Said
from postgrad.traces.formats.shapes.tools import is_tool

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "SystemMessage", "SystemMessageChunk"), "system"),
    "developer": "developer",
    **dict.fromkeys(("user", "human", "HumanMessage", "HumanMessageChunk", "input"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "AIMessage", "AIMessageChunk", "CHATBOT"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage", "ToolMessageChunk"), "tool"),
}
_ITEMS: dict[str, Role] = {
    **dict.fromkeys(("function_call", "custom_tool_call", "reasoning", "local_shell_call"), "assistant"),
    **dict.fromkeys(("web_search_call", "file_search_call", "computer_call", "code_interpreter_call"), "assistant"),
    **dict.fromkeys(("mcp_call", "mcp_list_tools", "mcp_approval_request", "image_generation_call"), "assistant"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), "tool"),
    **dict.fromkeys(("local_shell_call_output", "computer_call_output"), "tool"),
}
_REASONING = ("reasoning_content", "reasoning", "thinking")


def turns(value: object, *, role: Role = "user") -> list[Said]:
    """All messages of a value. `role` is that of a bare text or of bare parts."""
    value = opened(value)
    if value is None or value == "" or value == [] or value == {}:
        return []
    if isinstance(value, list):
        return _listed(value, role)
    if not isinstance(value, dict):
        return [Said(role, [Text(written(value))])]
    if (said := message(value)) is not None:
        return said
    if (inner := _wrapped(value)) is not None:
        return inner
    found = parts(value) if "type" in value or value.keys() <= {"text"} else []
    return [Said(role, found if found else [Text(written(value))])]


def _listed(value: list[Any], role: Role) -> list[Said]:
    if len(value) == 1 and isinstance(opened(value[0]), list):
        return _listed(opened(value[0]), role)
    items = [opened(item) for item in value]
    if any(isinstance(item, dict) and message(item) is not None for item in items):
        return merged(said for item in items for said in turns(item, role=role))
    if all(isinstance(item, str) for item in items):
        return [Said(role, [Text(item)]) for item in items]
    if all(isinstance(item, dict) and (is_call(item) or "type" in item or "text" in item) for item in items):
        calls = all(is_call(item) for item in items)
        return [Said("assistant" if calls else role, [call(item) for item in items] if calls else parts(items))]
    return [Said(role, [Text(written(value))])]


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an object without a role is a call: a tool's name with its arguments."""
    source: Mapping[str, Any] = mapping(value.get("function")) or value
    named = text(first(source, "name", "toolName", "tool_name", "tool.name"))
    said = first(source, "arguments", "args", "input", "tool.args")
    return bool(named) and said is not None and "role" not in value and "description" not in source


def _wrapped(value: dict[str, Any]) -> list[Said] | None:
    """The messages inside one of the known wrappers, what the system says first."""
    config = mapping(first(value, "config", "generation_config"))
    system = first(value, "system", "instructions", "system_instruction", "systemInstruction")
    system = first(config, "system_instruction", "systemInstruction") if system is None else system
    for key in ("messages", "contents", "prompt", "prompts", "input", "new_message", "chat_history"):
        if value.get(key) is not None:
            inner = opened(value[key])
            if isinstance(inner, dict) and message(inner) is None and (nested := _wrapped(inner)) is not None:
                return instructions(system) + nested
            return instructions(system) + turns(inner)
    if isinstance(value.get("args"), list) and (value["args"] or value.get("kwargs")):
        return turns(value["args"]) if value["args"] else turns(value["kwargs"])
    return None


def instructions(value: object) -> list[Said]:
    """A system prompt: a text, parts, or a message."""
    value = opened(value)
    if isinstance(value, dict) and ("parts" in value or "content" in value):
        value = first(value, "parts", "content")
    found = parts(value)
    return [Said("system", found)] if found else []


def message(value: Mapping[str, Any]) -> list[Said] | None:
    """One message object, None if the object is none."""
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        return _message({**value["kwargs"], "type": str(value["id"][-1:] and value["id"][-1])})
    if isinstance(value.get("role"), str) or (isinstance(value.get("kind"), str) and "parts" in value):
        return _message(value)
    kind = value.get("type")
    if isinstance(kind, str) and (kind in _ITEMS or (kind in _ROLES and ("content" in value or "data" in value))):
        return _message({**value["data"], "type": kind} if isinstance(value.get("data"), dict) else value)
    if isinstance(value.get("message"), dict) and value.keys() & {"index", "finish_reason", "event.name"}:
        return message(value["message"])
    return None


def _message(value: Mapping[str, Any]) -> list[Said]:
    kind = string(value.get("type"))
    if kind in _ITEMS:
        return [_item(value, kind)]
    name = string(value.get("role")) or kind
    role = _ROLES.get(name) or _ROLES.get(string(value.get("type")), "user")
    content = first(value, "content", "parts", "message")
    if role == "tool" and is_tool(content):
        return []  # LangChain's callbacks list the tools on offer among the messages
    found = _content(content)
    if name not in _ROLES and string(value.get("tool_call_id") or value.get("name") or name) and _like_result(value):
        return [_tool(value, content, name)]
    if role == "tool" and not (found and all(isinstance(part, RawResult | ToolCall) for part in found)):
        return [_tool(value, content, "")]
    if name and name not in _ROLES:
        found = [Opaque(f"role {name}", dict(value))]
    if found and role in ("user", "tool") and all(isinstance(part, ToolCall) for part in found):
        role = "assistant"  # Koog writes its calls under the role "tool"
    finish = first(value, "finish_reason", "finishReason", "stop_reason")
    agent = text(value.get("name")) if role == "assistant" else None
    return [Said(role, _with_calls(value, _thoughts(value) + found), text(finish), agent)]


def _like_result(value: Mapping[str, Any]) -> bool:
    """LangChain for JavaScript writes the tool's name as the role of its result."""
    return "additional_kwargs" in value or "tool_call_id" in value


def _tool(value: Mapping[str, Any], content: object, name: str) -> Said:
    wrapped = {**value, "content": opened_parts(content), "id": None, "type": None, "response": None, "output": None}
    tool = string(value.get("name")) or name
    return Said("tool", [result(wrapped, id=string(value.get("tool_call_id") or value.get("id")), name=tool)])


def opened_parts(content: object) -> object:
    """A tool message's own parts: a result in them is unpacked, everything else is left as it is."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        inner = parts(content)
        if len(inner) == 1 and isinstance(inner[0], RawResult):
            return inner[0].text
    return content


def _content(content: object) -> list[Part]:
    """A content; a text that is a list of calls is those calls."""
    if isinstance(content, str) and content.startswith("["):
        listed = opened(content)
        if (
            isinstance(listed, list)
            and listed
            and all(isinstance(item, dict) and item.get("type") == "function" and is_call(item) for item in listed)
        ):
            return [call(item) for item in listed]
    if isinstance(content, dict) and not content.keys() & {"type", "text", "content"}:
        return parts(first(content, "parts")) if "parts" in content else [Text(written(content))]
    return parts(content)


def _thoughts(value: Mapping[str, Any]) -> list[Part]:
    said = next((value[key] for key in _REASONING if isinstance(value.get(key), str) and value[key]), None)
    extra = string(mapping(value.get("additional_kwargs")).get("reasoning_content"))
    found: list[Part] = [Reasoning(said or extra)] if said or extra else []
    details = value.get("reasoning_details")
    return found + ([Opaque("reasoning_details", details)] if details else [])


def _with_calls(value: Mapping[str, Any], found: list[Part]) -> list[Part]:
    """The parts with the calls that stand beside them; one that is written in several places counts once."""
    extra = mapping(value.get("additional_kwargs"))
    known = {part.id for part in found if isinstance(part, ToolCall)}
    if isinstance(value.get("refusal"), str):
        found = [*found, Opaque("refusal", value["refusal"])]
    for source in (
        extra.get("tool_calls"),
        value.get("tool_calls"),
        value.get("toolCalls"),
        value.get("invalid_tool_calls"),
    ):
        beside = [call(item) for item in mappings(opened(source))]
        found = [*found, *(item for item in beside if not item.id or item.id not in known)]
        if beside and not known and not all(item.id for item in beside):
            return found
        known |= {item.id for item in beside}
    old = first(value, "function_call") or extra.get("function_call")
    if isinstance(old, dict) and not known:
        found = [*found, call(old)]
    return found


def _item(value: Mapping[str, Any], kind: str) -> Said:
    role = _ITEMS[kind]
    if role == "tool" and "output" in value and kind in ("function_call_output", "custom_tool_call_output"):
        return Said("tool", [result(value)])
    return Said(role, parts(dict(value)))


def merged(said: Iterable[Said]) -> list[Said]:
    """Items that follow each other and belong to the assistant are one message (Responses write one item a block)."""
    out: list[Said] = []
    for item in said:
        if out and item.role == "assistant" and out[-1].role == "assistant" and _loose(out[-1], item):
            out[-1] = Said("assistant", [*out[-1].parts, *item.parts], item.finish or out[-1].finish, out[-1].agent)
        else:
            out.append(item)
    return out


def _loose(before: Said, item: Said) -> bool:
    """Whether two assistant messages are items of one answer: reasoning before, or calls after, the text."""
    thought = all(isinstance(part, Reasoning) for part in before.parts)
    calls = bool(item.parts) and all(isinstance(part, ToolCall | Opaque) for part in item.parts)
    return thought or calls
