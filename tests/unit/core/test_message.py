"""A message's id: from what it says, and the same by the short way as by the long one."""

from __future__ import annotations

import math

import pytest

from postgrad.core.canonical import struct_id
from postgrad.core.message import Block, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult


@pytest.mark.parametrize(
    "block",
    [
        *(Text("a"), Text("a:null,"), Text("\ud800"), Reasoning("r"), Reasoning(encrypted="e"), Media("m", "00")),
        *(ToolResult("c", "null"), ToolResult("c", "a", is_error=False, status="error"), Opaque("x", {"a": None})),
        *(ToolCall("c", "t", "{", None, "broken"), ToolCall("c", "t", "{}", {}), ToolCall("c", "t", "{}", {"a": None})),
        *(ToolCall("c", "t", "{}", {"a": "null", "b": "é"}), ToolCall("c", "t", "{}", {"a": math.nan, "b": "null"})),
        ToolCall("c", "t", "{}", {"a": [1.5, {"b": "null"}]}),
    ],
)
def test_texts_alone_need_no_look_for_nan(block: Block) -> None:
    message = Message("assistant", (block,), (1,))
    assert message.id == struct_id(["assistant", (block,)]) == Message("assistant", (block,)).id
    assert Message("user", (block,)).id != message.id


def test_nan_is_not_null() -> None:
    """JSON has no NaN: msgspec writes null for it."""
    nan, null = (Message("assistant", (ToolCall("c", "t", "{}", {"a": [value]}),)) for value in (math.nan, None))
    assert nan.id != null.id


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_no_arguments(word: str) -> None:
    call = ToolCall.from_raw(id="c", name="t", raw=f'{{"days": {word}}}')
    assert (call.arguments, call.parse_error) == (None, f"{word} is no JSON")
