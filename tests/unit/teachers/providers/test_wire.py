"""Traces in the form that chat-completions APIs accept."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from postgrad.core.actor import Ask
from postgrad.core.message import Media, Message, Reasoning, Text, ToolCall, ToolResult
from postgrad.teachers.providers.replies import read_message
from postgrad.teachers.providers.wire import NO_RESULT, ToolNames, wire_messages, wire_tools
from unit.signals.traces_by_hand import act, call


def sent(*messages: Message, hint: str | None = None) -> list[dict[str, Any]]:
    return wire_messages(Ask(messages, hint=hint), ToolNames([]))


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


USER = Message.of("user", "go")


def test_every_call_gets_its_answer_and_every_answer_has_its_call() -> None:
    """An orphan result is dropped, a call without result is answered with a note, before the next words."""
    orphan = Message("user", (ToolResult("gone", "old"), Text("go on")))
    action = act(call("f", {}, "a"), call("f", {}, "b"))
    result = Message("tool", (ToolResult("a", "fine"),))
    messages = sent(orphan, action, result, USER)
    assert roles(messages) == ["user", "assistant", "tool", "tool", "user"]
    assert messages[0]["content"] == "go on"
    assert [(m["tool_call_id"], m["content"]) for m in messages[2:4]] == [("a", "fine"), ("b", NO_RESULT)]


def test_results_and_words_of_one_message_are_parted() -> None:
    both = Message("user", (ToolResult("a", "fine"), Text("now stop")))
    assert roles(sent(USER, act(call("f", {}, "a")), both)) == ["user", "assistant", "tool", "user"]


def test_results_may_come_in_several_messages() -> None:
    action = act(call("f", {}, "a"), call("f", {}, "b"))
    one, two = (Message("tool", (ToolResult(name, name),)) for name in "ab")
    assert [m.get("content") for m in sent(USER, action, one, two)[2:]] == ["a", "b"]


def test_broken_arguments_are_sent_as_json() -> None:
    (_, action) = sent(USER, act(call("f", "{oops")))[:2]
    assert json.loads(action["tool_calls"][0]["function"]["arguments"]) == {"malformed": "{oops"}
    (_, empty) = sent(USER, act(call("f", "")))[:2]
    assert empty["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_that_the_trace_understood_are_sent_as_json_whatever_they_were_written_in() -> None:
    """XML and text actions are parsed by their readers; NaN is no JSON; JSON stays byte for byte."""
    as_xml = ToolCall("a", "f", "<f><b>1</b></f>", {"b": "1", "a": "2"})
    not_a_number = ToolCall("b", "f", '{"x": [NaN, 1]}', {"x": [math.nan, 1]})
    plain = ToolCall.from_raw(id="c", name="f", raw='{"z":1,  "a": "\\u00e9"}')
    action = sent(USER, Message("assistant", (as_xml, not_a_number, plain)))[1]
    texts = [one["function"]["arguments"] for one in action["tool_calls"]]
    assert texts == ['{"b": "1", "a": "2"}', '{"x": [null, 1]}', plain.arguments_raw]


def test_developer_is_system_and_reasoning_and_media_are_not_sent() -> None:
    shown = Message("user", (Text("see"), Media("image/png", "0" * 64)))
    messages = sent(Message.of("developer", "be brief"), shown, act(Reasoning("hm"), Text("ok")))
    assert [(m["role"], m["content"]) for m in messages] == [
        ("system", "be brief"),
        ("user", "see\n[image/png not shown]"),
        ("assistant", "ok"),
    ]


def test_a_hint_stands_after_the_last_words() -> None:
    assert sent(USER, hint="care")[-1] == {"role": "user", "content": "go\n\ncare"}
    result = Message("tool", (ToolResult("a", "fine"),))
    assert sent(USER, act(call("f", {}, "a")), result, hint="care")[-1]["content"] == "fine\n\ncare"
    assert sent(USER, act(Text("ok")), hint="care")[-1] == {"role": "user", "content": "care"}


def test_tool_names_are_made_acceptable_and_put_back() -> None:
    from postgrad.core.message import Tool

    long = "x" * 80
    names = ToolNames([])
    tools = wire_tools([Tool("math.sum"), Tool("math_sum"), Tool(long), Tool(long + "y")], names)
    given = [tool["function"]["name"] for tool in tools]
    assert given == ["math_sum", "math_sum_2", "x" * 64, "x" * 60 + "_2"]
    assert [names.original(name) for name in given] == ["math.sum", "math_sum", long, long + "y"]
    raw = {"content": None, "tool_calls": [{"function": {"name": "math_sum", "arguments": "{}"}}]}
    message = read_message(raw, names)
    assert message.tool_calls[0].name == "math.sum"


@pytest.mark.parametrize("calls", ["x", 5, [None], ["x"], [{"function": None}], [{"function": "f"}], {}])
def test_calls_that_are_none_are_left_out(calls: object) -> None:
    assert read_message({"content": None, "tool_calls": calls}, ToolNames([])).blocks == ()


def test_text_that_comes_in_parts_is_one() -> None:
    raw = {"content": [{"type": "text", "text": "a"}, None, {"type": "image"}, {"type": "text", "text": "b"}]}
    assert read_message(raw, ToolNames([])).text == "ab"


def test_arguments_that_come_as_an_object_are_read() -> None:
    raw = {"content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}]}
    (read,) = read_message(raw, ToolNames([])).tool_calls
    assert (read.arguments, read.arguments_raw) == ({"b": 1, "a": 2}, '{"b": 1, "a": 2}')
