"""One part of a message's content, in the shapes of all known frameworks, as a block.

    text         {"type": "text" | "input_text" | "output_text", "text" | "content"}, {"text"}, a bare string
    reasoning    {"type": "thinking" | "reasoning" | "redacted_thinking", ...}, {"thought": true, "text"} (Gemini)
    call         tool_call (OTel, LangChain), tool_use (Anthropic, Bedrock), tool-call (Vercel), function_call
    (Responses,
                 Gemini), custom_tool_call
    result       tool_call_response, tool_result, tool-result, function_call_output, function_response
    media        image, image_url, input_image, blob, inline_data, document

Anything else stays whole as an opaque block, calls that the provider itself ran among it (web search, MCP): their
results are a part of the same answer.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from postgrad.core.message import Block, Media, Opaque, Reasoning, Text, ToolCall
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, string, text, written
from postgrad.traces.formats.shapes.said import RawResult

Part = Block | RawResult
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "text-delta"})
_THOUGHTS = frozenset({"thinking", "reasoning", "reasoning_text", "redacted_thinking", "reasoning_content"})
_CALLS = frozenset(
    {
        *("tool_call", "tool_use", "tool-call", "function_call", "function"),
        *("custom_tool_call", "tool-invocation", "toolCall", "toolUse"),
    }
)
_RESULTS = frozenset(
    {
        *("tool_call_response", "tool_result", "tool-result", "function_call_output", "custom_tool_call_output"),
        *("function_result", "toolResult", "tool_response"),
    }
)
_WRAPPED = {
    "functionCall": "tool_call",
    "function_call": "tool_call",
    "toolUse": "tool_use",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
    "toolResult": "tool_result",
}


def parts(content: object) -> list[Part]:
    """All parts of a content: null, a text, a part, or a list of them (nested lists are flattened)."""
    if content is None or content == "":
        return []
    if isinstance(content, list):
        return [block for item in content for block in parts(item)]
    return _part(content)


def call(value: Mapping[str, Any]) -> ToolCall:
    """A call in any shape. The argument string is kept where there is one, else made from the object."""
    inner = value.get("function")
    source = inner if isinstance(inner, Mapping) else value
    if isinstance(custom := value.get("custom"), Mapping):
        return free_text_call(string(value.get("id")), string(custom.get("name")), string(custom.get("input")))
    name = string(first(source, "name", "toolName", "tool_name", "tool.name"))
    arguments = next((source[key] for key in _ARGUMENTS if source.get(key) is not None), "")
    key = first(value, "call_id", "id", "toolCallId", "tool_call_id", "toolUseId")
    key = key if isinstance(key, str) else "" if key is None else str(key)
    if value.get("type") == "custom_tool_call":
        return free_text_call(key, name, written(arguments))
    return ToolCall.from_raw(id=key, name=name, raw=_unquoted(arguments))


_ARGUMENTS = ("arguments", "input", "args", "arguments_json", "argsText", "tool.args", "partial_json")


def free_text_call(id: str, name: str, raw: str) -> ToolCall:
    """A call whose input is free text by design and no JSON."""
    return ToolCall(id, name, raw, None, "free text by design")


def _unquoted(arguments: object) -> str:
    """The argument string; one that was written as a JSON string once more loses that layer."""
    raw = written(arguments)
    if raw.startswith('"'):
        try:
            inner = json.loads(raw)
        except ValueError:
            return raw
        return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else raw
    return raw


def result(value: Mapping[str, Any], *, id: str = "", name: str = "") -> RawResult:
    """A tool's result in any shape."""
    key = first(value, "call_id", "tool_use_id", "tool_call_id", "toolCallId", "toolUseId", "id")
    content = next((value[key] for key in _OUTPUTS if value.get(key) is not None), None)
    flag = first(value, "is_error", "isError")
    if isinstance(content, Mapping) and str(content.get("type", "")) in _OUTPUT_TYPES:
        flag = flag if flag is not None else ("error" in str(content["type"]) or None)
        content = content.get("value")
    shown = parts(content) if _is_content(content) else []
    said = "\n".join(_shown(block) for block in shown) if shown else written(content)
    status = value.get("status")
    if flag is None and status in ("error", "success"):
        flag = status == "error"
    return RawResult(
        string(key) or id,
        string(first(value, "name", "toolName", "tool_name")) or name,
        said,
        flag if isinstance(flag, bool) else None,
        tuple(block for block in shown if isinstance(block, Media)),
    )


_OUTPUTS = ("response", "result", "output", "content")
_OUTPUT_TYPES = frozenset({"text", "json", "error-text", "error-json", "content", "execution-denied"})


def _is_content(value: object) -> bool:
    """Whether a result is a list of content parts and not the tool's own data."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and isinstance(item.get("type"), str) and len(item) > 1 for item in value)
    )


def _shown(block: Part) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Media):
        return f"[{block.mime} sha256:{block.sha256}]" if block.sha256 else f"[{block.mime} {block.uri}]"
    return written(block.raw) if isinstance(block, Opaque) else ""


def _part(value: object) -> list[Part]:
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, dict):
        return [Opaque("value", value)]
    kind = string(value.get("type"))
    for key, kind_of in _WRAPPED.items():
        if isinstance(inner := value.get(key), dict):
            return _kept(value, [call(inner) if kind_of != "tool_result" else result(inner)])
    if kind in _CALLS and _named(value):
        return [call(value)]
    if kind in _RESULTS:
        return [result(value)]
    if value.get("thought") is True and isinstance(value.get("text"), str):
        return [Reasoning(value["text"], signature=_signature(value))]
    if kind in _THOUGHTS:
        return _thought(value)
    said = first(value, "text", "content") if kind in _TEXTS or not kind else None
    if isinstance(said, str):
        return _kept(value, [Text(said)])
    return [_media(value) or Opaque(kind or "?", value)]


def _named(value: Mapping[str, Any]) -> bool:
    inner = value.get("function")
    return bool(text(first(value, "name", "toolName", "tool_name")) or text(mapping(inner).get("name")))


def _kept(value: Mapping[str, Any], found: list[Part]) -> list[Part]:
    """Gemini puts the signature of a thought beside the part that follows from it."""
    signature = _signature(value)
    return [Reasoning(signature=signature), *found] if signature else found


def _signature(value: Mapping[str, Any]) -> str | None:
    return text(first(value, "signature", "thoughtSignature", "thought_signature"))


def _thought(value: Mapping[str, Any]) -> list[Part]:
    """Responses keep a summary and an encrypted part; Anthropic a signature, or all of it as `data`."""
    said = next((value[key] for key in ("thinking", "reasoning", "text", "content", "summary") if value.get(key)), "")
    if isinstance(said, dict):
        said = said.get("text") or said.get("reasoningText", {})
    if isinstance(said, list):
        said = "\n\n".join(string(item.get("text")) for item in mappings(said))
    encrypted = text(first(value, "encrypted_content", "data", "encrypted"))
    return [Reasoning(string(said), _signature(value), encrypted)]


def _media(value: Mapping[str, Any]) -> Block | None:
    """Inline bytes become their hash (the bytes stay in the raw layer); an address is kept."""
    source = mapping(first(value, "source", "inline_data", "inlineData", "input_audio", "file_data"))
    image = first(value, "image_url", "image", "url", "uri")
    address = mapping(image).get("url") if isinstance(image, dict) else image
    address = address if isinstance(address, str) else first(source, "url", "file_uri", "fileUri")
    kind = string(value.get("type"))
    mime = text(first(source, "media_type", "mime_type", "mimeType", "format")) or text(
        first(value, "mime_type", "mimeType", "mediaType", "media_type")
    )
    data = source.get("data") if source else value.get("content") if kind == "blob" else value.get("data")
    if isinstance(address, str) and address.startswith("data:"):
        header, _, data = address[5:].partition(",")
        mime = header.split(";")[0] or mime
    if isinstance(data, str) and (source or kind in ("blob", "image", "file", "image_url", "input_image")):
        try:
            content = base64.b64decode(data)
        except (binascii.Error, ValueError):
            return None
        return Media(mime or "application/octet-stream", hashlib.sha256(content).hexdigest())
    if isinstance(address, str) and ("image" in kind or kind in ("uri", "document", "file") or source):
        return Media(mime or ("image/*" if "image" in kind else "application/octet-stream"), "", address)
    return None
