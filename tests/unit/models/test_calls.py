"""Calls as text and back: what is written is read, and what cannot be read is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postgrad.core.message import Message, Opaque, Text, ToolCall
from postgrad.models.calls import action_text, parse_action

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
# A tag inside a JSON string would end the block: the form cannot carry it.
PLAIN = JSON.filter(lambda value: "</tool_call>" not in repr(value))


@settings(deadline=None)
@given(name=st.text(min_size=1, max_size=12), arguments=st.dictionaries(st.text(max_size=6), PLAIN, max_size=4))
def test_a_call_is_read_back_as_it_was_written(name: str, arguments: dict[str, object]) -> None:
    written = action_text(Message("assistant", (ToolCall("x", name, "{}", arguments),)))
    (call,) = parse_action(written).tool_calls
    assert (call.name, call.arguments, call.parse_error) == (name, arguments, None)
    assert action_text(Message("assistant", (call,))) == written


def test_the_arguments_are_kept_byte_for_byte() -> None:
    (call,) = parse_action('<tool_call>\n{"name": "f",  "arguments": {"a":1,\t"b": 2.0}}\n</tool_call>').tool_calls
    assert call.arguments_raw == '{"a":1,\t"b": 2.0}'
    assert call.arguments == {"a": 1, "b": 2.0}


def test_text_and_several_calls_keep_their_order() -> None:
    first = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    second = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
    text = f"First.\n{first}\nThen.\n{second}"
    message = parse_action(text, call_prefix="s3")
    assert [type(block).__name__ for block in message.blocks] == ["Text", "ToolCall", "Text", "ToolCall"]
    assert [call.id for call in message.tool_calls] == ["s3_0", "s3_1"]
    assert action_text(message) == text


@pytest.mark.parametrize(
    ("body", "name", "error"),
    [
        ('{"name": "f", "arguments": {"a": }}', "f", "not JSON"),
        ('{"arguments": {}}', "", "not an object with a name"),
        ('["f"]', "", "not an object with a name"),
        ('{"name": "f"}', "f", "no arguments object"),
        ('{"name": "f", "arguments": "{}"}', "f", "no arguments object"),
        ('{"name": "f", "arguments": {}, "id": 1}', "f", "unexpected keys"),
        ("f(a=1)", "", "not JSON"),
    ],
)
def test_a_malformed_call_is_kept_with_its_error(body: str, name: str, error: str) -> None:
    text = f"<tool_call>\n{body}\n</tool_call>"
    message = parse_action(text)
    (call,) = message.tool_calls
    assert (call.name, call.arguments, call.arguments_raw) == (name, None, body)
    assert error in (call.parse_error or "")
    assert action_text(message) == text


def test_a_call_that_was_cut_off_is_malformed() -> None:
    (call,) = parse_action('<tool_call>\n{"name": "f", "arguments": {}}').tool_calls
    assert call.parse_error == "no </tool_call> after the call"


def test_bare_json_is_text_with_a_note() -> None:
    message = parse_action('{"name": "f", "arguments": {}}')
    assert not message.tool_calls
    text, note = message.blocks
    assert isinstance(text, Text)
    assert isinstance(note, Opaque)
    assert note.type == "parse_note"


def test_a_broken_argument_string_of_another_provider_is_written_inside_the_call() -> None:
    call = ToolCall.from_raw(id="1", name="f", raw='{"a": ')
    assert action_text(Message("assistant", (call,))) == '<tool_call>\n{"name": "f", "arguments": {"a": }\n</tool_call>'
