"""What tools answer: readable errors, and steady results."""

from __future__ import annotations

import json

from postgrad.core.message import Message, Tool, ToolCall, ToolResult
from postgrad.envs.function_calling.results import respond

TOOL = Tool(
    "lights.set",
    "Set lights.",
    {
        "type": "object",
        "properties": {"room": {"type": "string", "enum": ["hall", "attic"]}, "level": {"type": "integer"}},
        "required": ["room"],
    },
)


def answer(name: str, raw: str) -> ToolResult:
    call = ToolCall.from_raw(id="call_7", name=name, raw=raw, provider_id="abc")
    (result,) = respond((TOOL,), Message("assistant", (call,)))
    assert (result.call_id, result.provider_id) == ("call_7", "abc")
    return result


def test_a_good_call_gets_a_steady_result() -> None:
    """Equal calls, equal results, whatever the order and spacing of the arguments; other calls, other results."""
    one = answer("lights.set", '{"room": "hall", "level": 5}')
    assert one.is_error is False
    assert one.status == "ok"
    assert json.loads(one.text)["status"] == "ok"
    assert one == answer("lights.set", '{"level":5,"room":"hall"}')
    assert one != answer("lights.set", '{"room": "hall", "level": 6}')


def test_errors_say_what_is_wrong() -> None:
    cases = {
        ("lamps", "{}"): "Error: unknown tool 'lamps'. Available tools: lights.set.",
        ("lights.set", "{}"): "Error: arguments: 'room' is a required property.",
        ("lights.set", '{"room": "cave"}'): "Error: room: 'cave' is not one of ['hall', 'attic'].",
        ("lights.set", '{"room": "hall", "level": "5"}'): "Error: level: '5' is not of type 'integer'.",
    }
    for (name, raw), text in cases.items():
        result = answer(name, raw)
        assert (result.text, result.is_error, result.status) == (text, True, "error")


def test_broken_json_and_unknown_arguments_are_errors() -> None:
    assert "not a JSON object" in answer("lights.set", '{"room": ').text
    assert "'colour' was unexpected" in answer("lights.set", '{"room": "hall", "colour": 1}').text


def test_all_faults_are_told_at_once() -> None:
    text = answer("lights.set", '{"room": "cave", "level": "x"}').text
    assert "room:" in text
    assert "level:" in text


def test_one_result_per_call() -> None:
    calls = tuple(ToolCall.from_raw(id=f"c{i}", name="lights.set", raw='{"room": "hall"}') for i in range(3))
    assert [result.call_id for result in respond((TOOL,), Message("assistant", calls))] == ["c0", "c1", "c2"]
    assert respond((TOOL,), Message.of("assistant", "Nothing to do.")) == ()
