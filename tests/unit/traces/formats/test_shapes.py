"""Messages, calls, results and answers in the shapes of frameworks: one wrong shape loses a call without a word."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from postgrad.core.message import Media, Opaque, Reasoning, Text, ToolCall
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.parts import parts
from postgrad.traces.formats.shapes.plain import moment, opened, seconds
from postgrad.traces.formats.shapes.said import RawResult, settle
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import turns
from unit.traces.formats import service_files as files

RAW = files.ARGUMENTS
FUNCTION = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": RAW}}
CALLS: dict[str, Any] = {
    "chat completions": {"role": "assistant", "content": "", "tool_calls": [FUNCTION]},
    "parts (langfuse PR#15426)": {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}],
    },
    "additional_kwargs": {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [FUNCTION]}},
    "langchain object": files.lc(
        "AIMessage", content="", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}]
    ),
    "langchain, written twice": files.lc(
        "AIMessageChunk",
        content=[{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
        tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
    ),
    "langchain, typed": {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}],
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
    },
    "bedrock": {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Oslo"}}}],
    },
    "vercel": {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Oslo"}}],
    },
    "vercel, a list of calls": [{"toolCallId": "c1", "toolName": "weather", "input": RAW}],
    "gemini": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}]},
    "gemini, a response": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}],
                },
                "finishReason": "STOP",
            }
        ]
    },
    "adk": {
        "content": {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}],
        }
    },
    "responses": {
        "object": "response",
        "output": [{"type": "function_call", "call_id": "c1", "name": "weather", "arguments": RAW}],
    },
    "a choice": {
        "choices": [{"message": {"role": "assistant", "tool_calls": [FUNCTION]}, "finish_reason": "tool_calls"}]
    },
    "an otel choice": {
        "index": 0,
        "message": {"role": "assistant", "tool_calls": [FUNCTION]},
        "finish_reason": "tool_calls",
    },
    "koog": [{"role": "assistant", "content": json.dumps([FUNCTION]), "finish_reason": "tool_calls"}],
    "generations": {
        "generations": [
            [{"text": "", "message": files.lc("AIMessage", content="", additional_kwargs={"tool_calls": [FUNCTION]})}]
        ]
    },
    "the old function_call": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "weather", "arguments": RAW},
    },
    "any-agent": [{"tool.name": "weather", "tool.args": RAW}],
    "json in a string": json.dumps({"role": "assistant", "tool_calls": [FUNCTION]}),
    "json in a string in a string": json.dumps(json.dumps({"role": "assistant", "tool_calls": [FUNCTION]})),
    "arguments quoted once more": {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(RAW)}}],
    },
}


@pytest.mark.parametrize("shape", CALLS)
def test_every_shape_of_a_call_is_one_call(shape: str) -> None:
    (said,) = answers(CALLS[shape])
    (call,) = said.calls
    assert (call.name, call.arguments) == ("weather", {"city": "Oslo"})
    assert call.id in ("c1", "")


RESULTS: dict[str, Any] = {
    "chat completions": {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
    "parts": {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "Rain"}]},
    "parts, the newest word": {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": "Rain"}],
    },
    "anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Rain"}]}],
    },
    "vercel": {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "weather",
                "output": {"type": "text", "value": "Rain"},
            }
        ],
    },
    "gemini": {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "weather", "response": "Rain"}}]},
    "responses": {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
    "langchain": files.lc("ToolMessage", content="Rain", tool_call_id="c1", name="weather"),
    "langchain.js names the role after the tool": {"role": "weather", "content": "Rain", "additional_kwargs": {}},
    "without an id, by name": {"role": "tool", "name": "weather", "content": "Rain"},
    "without id and name": {"role": "tool", "content": "Rain"},
}


@pytest.mark.parametrize("shape", RESULTS)
def test_every_shape_of_a_result_answers_the_call(shape: str) -> None:
    """haystack-core-integrations#3961: a tool message keeps id, name and content."""
    messages = settle(turns([files.USER, files.ASKED, RESULTS[shape]]), record=0)
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    (result,) = messages[2].tool_results
    assert (result.call_id, result.text) == (messages[1].tool_calls[0].id, "Rain")


@pytest.mark.parametrize(
    ("part", "flag"),
    [
        ({"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": True}, True),
        ({"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": False}, False),
        ({"type": "tool_result", "tool_use_id": "c", "content": "x"}, None),
        ({"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "x"}}, True),
        ({"type": "tool_result", "tool_use_id": "c", "content": "x", "status": "error"}, True),
    ],
)
def test_error_flags_stay_true_false_and_unknown(part: dict[str, Any], flag: bool | None) -> None:
    (result,) = parts(part)
    assert isinstance(result, RawResult)
    assert (result.text, result.is_error) == ("x", flag)


def test_arguments_are_kept_byte_for_byte() -> None:
    """W26, langfuse#10612: broken, glued and empty argument strings."""
    for raw in ('{"city": ', '{"a":1}{"b":2}', "", "{'city': 'Oslo'}", ' {"a" : 1}'):
        (said,) = answers(
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": raw}}]}
        )
        assert said.calls[0].arguments_raw == raw
    assert (ToolCall.from_raw(id="", name="f", raw="").arguments, said.calls[0].parse_error) == ({}, None)


def test_the_order_of_thoughts_texts_and_calls_is_kept() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        {"type": "text", "text": "Then."},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
    ]
    (said,) = turns({"role": "assistant", "content": content})
    assert [type(part).__name__ for part in said.parts] == [
        "Reasoning",
        "Text",
        "ToolCall",
        "Text",
        "Reasoning",
        "Opaque",
    ]
    assert said.parts[0] == Reasoning("Hm", signature="sig")
    assert said.parts[4] == Reasoning(encrypted="secret")
    assert said.parts[5] == Opaque("server_tool_use", content[5])


def test_items_of_one_responses_answer_are_one_message() -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "e"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]
    user, answer, result = turns(items)
    assert [type(part).__name__ for part in answer.parts] == ["Reasoning", "Text", "ToolCall"]
    assert answer.parts[0] == Reasoning("Hm", encrypted="e")
    assert (user.role, result.role) == ("user", "tool")


def test_several_choices_are_candidates_and_several_calls_of_one_answer_are_not() -> None:
    two = answers({"choices": [{"message": {"role": "assistant", "content": text}} for text in ("a", "b")]})
    assert [said.parts for said in two] == [[Text("a")], [Text("b")]]
    koog = [
        {"role": "assistant", "content": json.dumps([{**FUNCTION, "id": f"c{i}"}]), "finish_reason": "tool_calls"}
        for i in (1, 2)
    ]
    (one,) = answers(koog)
    assert [call.id for call in one.calls] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("value", "roles"),
    [
        ([[files.lc("SystemMessage", content="s"), files.lc("HumanMessage", content="h")]], ["system", "user"]),
        ({"contents": "hi", "config": {"system_instruction": "s"}}, ["system", "user"]),
        ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, ["user"]),
        ({"system": "s", "messages": [files.USER]}, ["system", "user"]),
        ({"prompt": "hi"}, ["user"]),
        ({"args": ["hi"], "kwargs": {}}, ["user"]),
        ({"prompts": ["hi"]}, ["user"]),
        ({"instructions": "s", "input": "hi"}, ["system", "user"]),
        ("hi", ["user"]),
        (None, []),
        ([], []),
        ({"role": "developer", "content": "d"}, ["developer"]),
    ],
)
def test_wrappers_of_messages(value: Any, roles: list[str]) -> None:
    assert [said.role for said in turns(value)] == roles


def test_images_become_hashes_and_references_stay() -> None:
    data = base64.b64encode(b"png").decode()
    digest = hashlib.sha256(b"png").hexdigest()
    inline = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"inline_data": {"mime_type": "image/png", "data": data}},
        {"type": "blob", "mime_type": "image/png", "content": data},
    ]
    assert [parts(part) for part in inline] == [[Media("image/png", digest)]] * 4
    reference = "@@@langfuseMedia:type=image/png|id=1|source=base64@@@"
    assert parts({"type": "image_url", "image_url": {"url": reference}}) == [Media("image/*", "", reference)]


def test_unknown_parts_stay_whole() -> None:
    odd = {"type": "hologram", "data": [1, 2]}
    assert parts([odd, 5]) == [Opaque("hologram", odd), Opaque("value", 5)]


TOOLS: list[Any] = [
    [{"type": "function", "function": {"name": "f", "description": "d", "parameters": files.SCHEMA}}],
    [{"type": "function", "name": "f", "description": "d", "parameters": files.SCHEMA}],
    [{"name": "f", "description": "d", "input_schema": files.SCHEMA}],
    [{"name": "f", "description": "d", "inputSchema": files.SCHEMA}],
    [{"function_declarations": [{"name": "f", "description": "d", "parameters": files.SCHEMA}]}],
    [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": files.SCHEMA}}}],
    [{"name": "f", "description": "d", "parameters_json_schema": files.SCHEMA}],
    [json.dumps({"type": "function", "name": "f", "description": "d", "parameters": files.SCHEMA})],
    {"f": {"description": "d", "parameters": files.SCHEMA}},
]


@pytest.mark.parametrize("value", TOOLS)
def test_tool_definitions(value: Any) -> None:
    (tool,) = tools(value)
    assert (tool.name, tool.description, tool.parameters) == ("f", "d", files.SCHEMA)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_times_in_any_unit(unit: int) -> None:
    """W25: 2026-01-01T00:00:00Z is 1,767,225,600 seconds."""
    assert seconds(1_767_225_600 * unit) == 1_767_225_600
    assert moment(1_767_225_600 * unit) == "2026-01-01T00:00:00+00:00"
    assert moment(str(1_767_225_600 * unit)) == "2026-01-01T00:00:00+00:00"


def test_other_forms_of_times() -> None:
    assert seconds([1_767_225_600, 5 * 10**8]) == 1_767_225_600.5
    assert seconds("2026-01-01T01:00:00+01:00") == 1_767_225_600
    assert moment("2026-01-01T00:00:00Z") == "2026-01-01T00:00:00Z"
    assert [seconds(value) for value in ("yesterday", None, True, {})] == [None] * 4


def test_json_in_texts_is_opened_and_texts_are_not() -> None:
    assert opened('"{\\"a\\": [1]}"') == {"a": [1]}
    assert opened("{broken") == "{broken"
    assert opened("plain") == "plain"
    assert opened("[" * 300 + "]" * 300) == "[" * 300 + "]" * 300
