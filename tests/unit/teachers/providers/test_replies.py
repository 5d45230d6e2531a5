"""What endpoints say, in the forms that servers of one API differ in."""

from __future__ import annotations

from typing import Any

import pytest

from postgrad.core.message import Message, Reasoning, Text
from postgrad.teachers.providers.replies import read_message, split_thought
from postgrad.teachers.providers.streams import joined_completion
from postgrad.teachers.providers.wire import ToolNames


def message(**raw: Any) -> Message:
    return read_message(raw, ToolNames(["get.weather"]))


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("hello", "", "hello"),
        ("<think>\nwell\n</think>\n\nhello", "well", "hello"),
        ("  <thinking>a</thinking>b", "a", "b"),
        ("<think>cut off", "cut off", ""),
        ("<think></think>\nhello", "", "hello"),
        ("well, so\n</think>\n\nhello", "well, so", "hello"),
        ("well, so</think>\nhello", "well, so", "hello"),
        ("the tag </think> ends a thought", "", "the tag </think> ends a thought"),
        ("write <think>x</think> here", "", "write <think>x</think> here"),
        ("<think>a <b>c</b></think>d<think>e</think>", "a <b>c</b>", "d<think>e</think>"),
    ],
)
def test_a_thought_is_told_from_what_is_said(text: str, thought: str, said: str) -> None:
    assert split_thought(text) == (thought, said)


def test_a_thought_is_no_part_of_the_action() -> None:
    """In the text, in a field of its own under any of its names, or in both."""
    assert message(content="<think>a</think>hi").blocks == (Reasoning("a"), Text("hi"))
    for name in ("reasoning_content", "reasoning", "thinking"):
        assert message(content="hi", **{name: "b"}).blocks == (Reasoning("b"), Text("hi"))
    assert message(content="<think>a</think>hi", reasoning="b").blocks == (Reasoning("b\n\na"), Text("hi"))
    assert message(content="hi", reasoning={"effort": "low"}).blocks == (Text("hi"),)


def test_the_old_form_of_a_call_is_a_call() -> None:
    """`function_call` without id; where both forms are given they are the same call, and the new one counts."""
    old = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    (call,) = message(content=None, function_call=old).tool_calls
    assert (call.name, call.arguments, call.provider_id) == ("get.weather", {"city": "Rome"}, None)
    new = {"id": "p1", "function": old}
    assert [one.provider_id for one in message(tool_calls=[new], function_call=old).tool_calls] == ["p1"]
    assert message(content="hi", function_call=None).tool_calls == ()


@pytest.mark.parametrize(
    ("arguments", "raw", "fault"),
    [
        ({"a": 1}, '{"a": 1}', False),
        (None, "{}", False),
        ("", "", False),
        ([1], "[1]", True),
        ("{oops", "{oops", True),
    ],
)
def test_arguments_as_text_or_as_an_object(arguments: object, raw: str, fault: bool) -> None:
    (call,) = message(tool_calls=[{"id": 7, "function": {"name": "f", "arguments": arguments}}]).tool_calls
    assert (call.arguments_raw, call.parse_error is not None, call.provider_id) == (raw, fault, "7")


def test_calls_of_one_id_stay_two_calls() -> None:
    """Ids in a trace are counted; the provider's stay beside them."""
    twice = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    calls = message(tool_calls=[twice, twice]).tool_calls
    assert [(one.id, one.provider_id) for one in calls] == [("call_0", "same"), ("call_1", "same")]


def test_a_stream_of_the_old_form_and_of_thoughts() -> None:
    parts = [
        {"choices": [{"delta": {"reasoning_content": "let "}}]},
        {"choices": [{"delta": {"reasoning_content": "me"}}]},
        {"choices": [{"delta": {"function_call": {"name": "f", "arguments": ""}}}]},
        {"choices": [{"delta": {"function_call": {"arguments": '{"a"'}}}]},
        {"choices": [{"delta": {"function_call": {"arguments": ": 1}"}}, "finish_reason": "function_call"}]},
    ]
    joined = joined_completion(parts)["choices"][0]
    said = read_message(joined["message"], ToolNames([]))
    assert said.blocks[0] == Reasoning("let me")
    assert [(call.name, call.arguments) for call in said.tool_calls] == [("f", {"a": 1})]
    assert joined["finish_reason"] == "function_call"
