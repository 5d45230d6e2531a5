"""The grammar: what the renderer writes for a valid call is in it, what breaks the schema is not."""

from __future__ import annotations

from typing import Any

import pytest
import xgrammar

from postgrad.core.errors import DataError
from postgrad.core.message import Message, Tool, ToolCall
from postgrad.models.calls import action_text
from postgrad.models.grammar import tool_grammar
from postgrad.models.tiny import byte_tokenizer

WEATHER = Tool(
    "get_weather",
    "",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "at": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["city"],
    },
)
ADD = Tool("add", "", {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})


def written(name: str, **arguments: Any) -> str:
    return action_text(Message("assistant", (ToolCall("c", name, "", arguments),)))


def accepts(text: str, *, require_call: bool = False) -> bool:
    grammar = tool_grammar([WEATHER, ADD], byte_tokenizer(), require_call=require_call)
    matcher = xgrammar.GrammarMatcher(grammar)
    return bool(matcher.accept_string(text)) and bool(matcher.is_completed())


@pytest.mark.parametrize(
    "text",
    [
        written("get_weather", city="Paris <3"),
        written("get_weather", city="दिल्ली", days=3, unit="C", at=[1.5, 2]),
        written("add", a=-2.5),
        written("add", a=1) + "\n" + written("get_weather", city="x"),
        "I cannot do that.",
    ],
)
def test_what_the_renderer_writes_is_allowed(text: str) -> None:
    assert accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        written("get_weather"),
        written("get_weather", city=1),
        written("get_weather", city="x", unit="K"),
        written("get_weather", city="x", days=1.5),
        written("get_weather", city="x", other=1),
        written("get_time", city="x"),
        written("add", a=1).replace(": ", ":"),
        "First. " + written("add", a=1),
        written("add", a=1)[:-3],
        "",
    ],
)
def test_what_breaks_form_or_schema_is_not(text: str) -> None:
    assert not accepts(text)


def test_words_can_be_forbidden() -> None:
    assert not accepts("I cannot do that.", require_call=True)
    assert accepts(written("add", a=1), require_call=True)


def test_a_schema_without_meaning_names_its_tool() -> None:
    broken = Tool("odd", "", {"type": "object", "properties": {"a": {"type": "no such type"}}})
    with pytest.raises(DataError, match="odd"):
        tool_grammar([broken], byte_tokenizer())


def test_a_required_call_needs_a_tool() -> None:
    with pytest.raises(DataError, match="no tool is offered"):
        tool_grammar([], byte_tokenizer(), require_call=True)
