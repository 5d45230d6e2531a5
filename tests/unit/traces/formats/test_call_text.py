"""Calls, thoughts and results in texts, in every syntax that `call_text` names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.message import Block, Reasoning, Text, Tool, ToolCall
from postgrad.traces.formats.datasets.call_forms import json_calls
from postgrad.traces.formats.datasets.call_text import read_text, result_texts, tools_in

WEATHER = Tool(
    "weather", "", {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
)
ROME = {"city": "Rome", "days": 3}

SYNTAXES = {
    "hermes": '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}\n</tool_call>',
    "keys the other way round": '<tool_call>{"arguments": {"city": "Rome", "days": 3}, "name": "weather"}</tool_call>',
    "string in string": (
        '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Rome\\", \\"days\\": 3}"}</tool_call>'
    ),
    "function wrapper": (
        '<tool_call>{"id": "c", "function": {"name": "weather", "arguments": {"city": "Rome", "days": 3}}}'
    ),
    "python": "<tool_call>\n{'name': 'weather', 'arguments': {'city': 'Rome', 'days': 3}}\n</tool_call>",
    "no closing tag": '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}',
    "qwen3 coder": (
        "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>"
    ),
    "bare function": "<function=weather><parameter=city>Rome</parameter><parameter=days>3</parameter></function>",
    "llama function": '<function=weather>{"city": "Rome", "days": 3}</function>',
    "llama tag": '<|python_tag|>{"name": "weather", "parameters": {"city": "Rome", "days": 3}}<|eom_id|>',
    "llama bare": '{"name": "weather", "parameters": {"city": "Rome", "days": 3}}',
    "llama pythonic": '[weather(city="Rome", days=3)]',
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Rome", "days": 3}, "id": "a1b2c3d4e"}]</s>',
    "mistral args": '[TOOL_CALLS]weather[ARGS]{"city": "Rome", "days": 3}',
    "functionary": '>>>weather\n{"city": "Rome", "days": 3}',
    "glm": (
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>"
    ),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
        '{"city": "Rome", "days": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
}


def calls(text: str, *tools: Tool) -> list[tuple[str, Any]]:
    return [(b.name, b.arguments) for b in read_text(text, tools) if isinstance(b, ToolCall)]


@pytest.mark.parametrize("text", SYNTAXES.values(), ids=SYNTAXES)
def test_every_syntax_gives_the_same_call(text: str) -> None:
    assert calls(text, WEATHER) == [("weather", ROME)]
    assert all(isinstance(block, ToolCall) for block in read_text(text, [WEATHER]))


def test_text_thoughts_and_calls_keep_their_order() -> None:
    text = '<think>\nhm\n</think>\n\nLet me look.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\nDone.'
    kinds = [Reasoning("hm"), Text("Let me look."), ToolCall.from_raw(id="", name="f", raw="{}"), Text("Done.")]
    assert list(read_text(text)) == kinds


def test_a_thought_whose_opening_tag_the_template_wrote() -> None:
    assert read_text("hm\n</think>\n\nyes") == (Reasoning("hm"), Text("yes"))


def test_the_argument_string_is_the_models_own() -> None:
    (block,) = read_text('<tool_call>{"name": "f", "arguments": {"a":1,  "b" : 2}}</tool_call>')
    assert isinstance(block, ToolCall)
    assert block.arguments_raw == '{"a":1,  "b" : 2}'
    (block,) = read_text("<tool_call>{'name': 'f', 'arguments': {'a': True}}</tool_call>")
    assert isinstance(block, ToolCall)
    assert (block.arguments_raw, block.arguments) == ("{'a': True}", {"a": True})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<tool_call>{"name": "f", "arguments": {bad}}</tool_call>', "f"),
        ('<tool_call>{"name": "f", "arguments": {}}}</tool_call>', "f"),
        ("<tool_call>hello</tool_call>", ""),
        ('<tool_call>["f"]</tool_call>', ""),
        ("<tool_call></tool_call>", ""),
    ],
)
def test_a_broken_call_is_a_call_with_its_text_and_an_error(text: str, name: str) -> None:
    (block,) = read_text(text)
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments, block.parse_error is not None) == (name, None, True)


def test_several_calls_in_a_turn() -> None:
    two = '<tool_call>{"name": "f", "arguments": {"n": 1}}\n<tool_call>{"name": "g", "arguments": {}}</tool_call> tail'
    assert calls(two) == [("f", {"n": 1}), ("g", {})]
    listed = '<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"s": "[x]"}}]</tool_call>'
    assert calls(listed) == [("f", {}), ("g", {"s": "[x]"})]
    lines = '<tool_call>\n{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {}}\n</tool_call>'
    assert calls(lines) == [("f", {}), ("g", {})]
    tagged = '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"n": 1}}<|eot_id|>'
    assert calls(tagged) == [("f", {}), ("g", {"n": 1})]
    mistral = 'ok [TOOL_CALLS]f[ARGS]{"n": 1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}'
    assert calls(mistral) == [("f", {"n": 1}), ("g", {})]


def test_text_about_calls_is_text() -> None:
    """W33: a marker in a fence or behind a back-tick, and a bare object where no such tool is on offer."""
    quoted = 'Write `<tool_call>` so:\n```\n<tool_call>{"name": "f", "arguments": {}}</tool_call>\n```'
    for text in (quoted, '{"name": "f", "parameters": {}}', "[f(x=1)]", ">>> print(1)\n1", "no marks"):
        assert read_text(text, [WEATHER]) == (Text(text),)


def test_code_after_llamas_tag_and_its_built_in_tools() -> None:
    assert calls("<|python_tag|>print(1)<|eom_id|>") == [("code_interpreter", {"code": "print(1)"})]
    assert calls('<|python_tag|>brave_search.call(query="x")<|eom_id|>') == [("brave_search", {"query": "x"})]


def test_results_and_tools_in_texts() -> None:
    text = '<tool_response>\n{"a": 1}\n</tool_response>\n<tool_response>\n\n two \n</tool_response>\nand then?'
    assert result_texts(text) == (['{"a": 1}', "\n two "], "and then?")
    assert result_texts("[TOOL_RESULTS]{}[/TOOL_RESULTS]") == (["{}"], "")
    assert result_texts("nothing") == ([], "nothing")
    lines = '<tools>\n{"type": "function", "function": {"name": "f", "parameters": {}}}\n{"name": "g"}\n</tools>'
    assert [tool.name for tool in tools_in(lines)] == ["f", "g"]
    assert [tool.name for tool in tools_in('<tools> [{"function": {"name": "f"}, "type": "function"}] </tools>')] == [
        "f"
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
)


@given(st.dictionaries(st.text(), _JSON), st.text(min_size=1))
def test_what_is_written_in_hermes_form_is_read_back(arguments: dict[str, Any], name: str) -> None:
    import json

    (call,) = json_calls(json.dumps({"name": name, "arguments": arguments}))
    assert (call.name, call.arguments, call.parse_error) == (name, arguments, None)


@given(
    st.text() | st.lists(st.sampled_from([*SYNTAXES.values(), "<tool_call>", "{", "'", "[", "</think>"])).map("".join)
)
def test_no_text_breaks_the_reading(text: str) -> None:
    blocks: tuple[Block, ...] = read_text(text, [WEATHER])
    assert all(isinstance(block, Text | Reasoning | ToolCall) for block in blocks)
