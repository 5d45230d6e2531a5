"""Calls whose arguments are spelled one by one: written as the template does, to the byte, and read with patience."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from postgrad.core.message import Message, Text, Tool, ToolCall, ToolResult
from postgrad.models.notation_calls import Notation
from postgrad.models.parameter_calls import Parameters
from postgrad.models.render import Renderer
from unit.models.spelled_templates import SPELLED

ARGUMENTS: dict[str, Any] = {
    "city": "Zürich",
    "days": 3,
    "exact": True,
    "none": None,
    "path": "a\n  b <c> 'd' \"e\", {f: 1}",
    "of": ["x", 1.5, False, {"k": "v"}],
    "empty": "",
}
PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "exact": {"type": "boolean"},
    "none": {"type": ["string", "null"]},
    "path": {"type": "string"},
    "of": {"type": "array"},
    "empty": {"type": "string"},
}
TOOL = Tool("get_weather", "Weather.", {"type": "object", "properties": PROPERTIES})
ASK = Message.of("user", "weather?")


@cache
def renderer(family: str) -> Renderer:
    return Renderer(SPELLED[family].tokenizer())


def call(name: str, place: int, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{place}", name, "", arguments)


def content(message: Message) -> list[object]:
    return [(b.name, b.arguments, b.parse_error) if isinstance(b, ToolCall) else b for b in message.blocks]


def read(family: str, text: str) -> Message:
    return renderer(family).parse(text, tools=(TOOL,))


FORMS = {
    "qwen 3 coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=of>\n"
    '["a", true]\n'
    "</parameter>\n<parameter=ok>\nTrue\n</parameter>\n</function>\n</tool_call>",
    "qwen 3.5": "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=of>\n"
    '["a", true]\n'
    "</parameter>\n<parameter=ok>\ntrue\n</parameter>\n</function>\n</tool_call>",
    "glm 4.5": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>of</arg_key>\n"
    '<arg_value>["a", true]</arg_value>\n<arg_key>ok</arg_key>\n<arg_value>true</arg_value>\n</tool_call>',
    "minimax": '\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Bern</parameter>\n'
    '<parameter name="of">["a", true]</parameter>\n<parameter name="ok">true</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "gemma 4": '<|tool_call>call:get_weather{city:<|"|>Bern<|"|>,of:[<|"|>a<|"|>,true],ok:true}<tool_call|>',
}


@pytest.mark.parametrize("family", SPELLED)
def test_a_call_is_written_as_the_family_documents_it(family: str) -> None:
    one = Message("assistant", (call("get_weather", 0, city="Bern", of=["a", True], ok=True),))
    assert renderer(family).calls.written(one) == FORMS[family]


@pytest.mark.parametrize("family", SPELLED)
@pytest.mark.parametrize(
    "calls",
    [
        (call("get_weather", 0, **ARGUMENTS),),
        (call("get_weather", 0),),
        (call("get_weather", 0, city="Bern"), call("other", 1), call("get_weather", 2, days=0)),
    ],
    ids=["every type", "no arguments", "three"],
)
def test_the_text_is_the_templates_own(family: str, calls: tuple[ToolCall, ...]) -> None:
    """The template itself is given the calls as a client would; what it writes is what is learnt."""
    own = renderer(family)
    wire = [
        {"id": f"abcdefgh{k}", "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for k, c in enumerate(calls)
    ]
    turns = [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": "", "tool_calls": wire}]
    text = own.tokenizer.apply_chat_template(turns, tokenize=False)
    action = own.decode(own.action(Message("assistant", calls)))
    assert action in text.replace("\ufeff", "")
    assert text.partition(action)[2] in ("", "\n", own.calls.end, "<|im_end|>\n", "[e~[\n")


@pytest.mark.parametrize("family", SPELLED)
def test_what_is_written_is_read_back_with_its_types(family: str) -> None:
    """With the tool's schema a text that looks like a number, a truth value or JSON stays a text."""
    tricky = {"city": "3", "path": '{"a": 1}', "days": 3, "empty": "True", "none": None}
    calls = (call("get_weather", 0, **ARGUMENTS), call("get_weather", 1, **tricky), call("get_weather", 2))
    own = renderer(family)
    message = Message("assistant", (Text("I look."), *calls))
    found = read(family, own.decode(own.action(message)))
    assert content(found) == content(message)
    assert [c.id for c in found.tool_calls] == ["call_0", "call_1", "call_2"]
    assert own.action(found) == own.action(message)


@pytest.mark.parametrize("family", SPELLED)
def test_a_prompt_and_its_action_are_the_beginning_of_the_whole(family: str) -> None:
    own = renderer(family)
    act = Message("assistant", (call("get_weather", 0, **ARGUMENTS), call("get_weather", 1)))
    result = Message("tool", (ToolResult("call_0", "sunny"), ToolResult("call_1", "rain")))
    messages = [ASK, act, result, Message.of("assistant", "Sunny."), Message.of("user", "thanks")]
    for stop in (1, 3):
        prompt = own.prompt(messages[:stop], (TOOL,))
        whole = own.spans(messages[: stop + 1], (TOOL,)).tokens
        assert list(whole[: len(prompt)]) == prompt
        assert list(whole[len(prompt) :])[: len(own.action(messages[stop]))] == own.action(messages[stop])
    text = own.decode(own.spans(messages, (TOOL,)).tokens)
    assert text.index("Bern" if "Bern" in text else "Zürich") < text.index("sunny") < text.index("thanks")


def test_without_a_schema_what_reads_as_json_is_taken_for_it() -> None:
    text = renderer("glm 4.5").calls.written(Message("assistant", (call("f", 0, a="3", b="x", c="[1]"),)))
    (found,) = renderer("glm 4.5").parse(text).tool_calls
    assert found.arguments == {"a": 3, "b": "x", "c": [1]}


PATIENT = {
    "qwen 3 coder": "<tool_call><function=get_weather> <parameter=city>Bern</parameter><parameter=days>3\n</parameter>"
    "</function></tool_call>",
    "glm 4.5": "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key>"
    "<arg_value>3</arg_value></tool_call>",
    "gemma 4": '<|tool_call>call:get_weather { "city" : "Bern", days: 3 }\n<tool_call|>',
}


@pytest.mark.parametrize("family", PATIENT)
def test_blank_space_does_not_matter(family: str) -> None:
    (found,) = read(family, "So:\n" + PATIENT[family]).tool_calls
    assert (found.name, found.arguments) == ("get_weather", {"city": "Bern", "days": 3})


BROKEN = {
    "qwen 3 coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nBe",
    "glm 4.5": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Be",
    "minimax": '\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Be',
    "gemma 4": '<|tool_call>call:get_weather{city:<|"|>Be',
}


@pytest.mark.parametrize("family", BROKEN)
def test_a_call_that_was_cut_off_is_kept_whole(family: str) -> None:
    found = read(family, "Well.\n" + BROKEN[family])
    (one,) = found.tool_calls
    assert one.parse_error is not None
    assert one.arguments is None
    assert one.arguments_raw == BROKEN[family].lstrip("\n")


def test_an_argument_given_twice_is_no_call() -> None:
    text = FORMS["qwen 3 coder"].replace("<parameter=of>", "<parameter=city>")
    (one,) = read("qwen 3 coder", text).tool_calls
    assert one.parse_error == "argument 'city' is given twice"
    assert renderer("qwen 3 coder").calls.written(Message("assistant", (one,))) == text


def test_a_gemma_object_that_is_none_is_written_back_as_it_was() -> None:
    text = "<|tool_call>call:f{city Bern}<tool_call|>"
    (one,) = read("gemma 4", text).tool_calls
    assert (one.name, one.arguments, one.arguments_raw) == ("f", None, "city Bern")
    assert renderer("gemma 4").calls.written(Message("assistant", (one,))) == text


def test_the_forms_are_found_and_a_call_of_gemma_ends_in_its_own_mark() -> None:
    kinds = {family: type(renderer(family).calls) for family in SPELLED}
    assert kinds == dict.fromkeys(SPELLED, Parameters) | {"gemma 4": Notation}
    own = renderer("gemma 4")
    stop = own.action(Message("assistant", (call("f", 0),)))[-1]
    assert own.tokenizer.convert_ids_to_tokens(stop) == "<|tool_response>"
    assert stop in own.stop_ids


@pytest.mark.parametrize("family", ["qwen 3 coder", "glm 4.5", "minimax", "gemma 4"])
def test_the_grammar_takes_what_the_family_writes(family: str) -> None:
    """Token by token; a value of a wrong type is refused."""
    import xgrammar

    own = renderer(family)
    tool = Tool("f", "", {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]})
    grammar = own.grammar((tool,), vocabulary=len(own.tokenizer), require_call=True)

    def taken(value: object) -> bool:
        matcher = xgrammar.GrammarMatcher(grammar)
        text = own.calls.written(Message("assistant", (call("f", 0, days=value),)))
        return all(matcher.accept_token(t) for t in own.tokenizer.encode(text, add_special_tokens=False))

    assert taken(12)
    assert not taken("many")
