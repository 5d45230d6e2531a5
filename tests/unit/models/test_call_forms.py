"""Each family's own calls: written as its template writes them, read back as the model writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st

from postgrad.core.message import Block, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.models.call_forms import Harmony, Hermes, wire_id
from postgrad.models.inline_calls import Inline
from postgrad.models.render import Renderer
from unit.models.chat_templates import FAMILIES, Family

NATIVE = ("llama 3", "mistral", "mistral args", "deepseek v3", "deepseek r1", "gpt-oss")
RENDERERS = {name: Renderer(FAMILIES[name].tokenizer()) for name in FAMILIES}
every_native = pytest.mark.parametrize("name", NATIVE)
ADD = Tool("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
SUB = Tool("sub", "", {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]})
USER = Message.of("user", "U")


def call(name: str = "add", arguments: str = '{"a": 1}', *, id: str = "callnum01") -> ToolCall:
    return ToolCall.from_raw(id=id, name=name, raw=arguments, provider_id=id)


def calling(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def written(name: str, message: Message) -> str:
    render = RENDERERS[name]
    return str(render.tokenizer.decode(render.action(message), clean_up_tokenization_spaces=False))


def template_s_own(name: str, message: Message) -> str:
    """What the template itself writes as an answer with calls."""
    render = RENDERERS[name]
    wire: dict[str, Any] = {"role": "assistant", "content": ""}
    textual = name.startswith("deepseek")
    wire["tool_calls"] = [
        {
            "id": one.provider_id,
            "type": "function",
            "function": {"name": one.name, "arguments": one.arguments_raw if textual else one.arguments},
        }
        for one in message.tool_calls
    ]
    text = str(render.tokenizer.apply_chat_template([{"role": "user", "content": "U"}, wire], tokenize=False))
    opening = FAMILIES[name].generation.removesuffix("<think>\n")
    return text.partition("U")[2].partition(opening or "[/INST]")[2]


def test_the_form_is_the_template_s() -> None:
    kinds = {name: type(render.calls) for name, render in RENDERERS.items()}
    assert {name for name, kind in kinds.items() if kind is not Hermes} == set(NATIVE)
    assert {name for name, kind in kinds.items() if kind is Harmony} == {"gpt-oss"}


@every_native
def test_an_answer_that_is_a_call_is_the_template_s_own_text(name: str) -> None:
    opened = "\n</think>\n\n" if name == "deepseek r1" else ""
    assert written(name, calling(call())) == opened + template_s_own(name, calling(call()))


@pytest.mark.parametrize("name", ["mistral", "mistral args", "deepseek v3"])
def test_so_are_several_calls(name: str) -> None:
    """Llama's and GPT-OSS's templates write one call an answer; what several look like there is ours."""
    several = calling(call(), call("sub", '{"b": "x"}', id="callnum02"))
    assert written(name, several) == template_s_own(name, several)


def test_the_texts_by_hand() -> None:
    both = calling(Text("T"), call(), call("sub", '{"b": "x"}', id="callnum02"))
    assert written("llama 3", both) == (
        'T\n{"name": "add", "parameters": {"a": 1}}; {"name": "sub", "parameters": {"b": "x"}}<|eot_id|>'
    )
    assert written("mistral", both) == (
        ' T[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "callnum01"}, '
        '{"name": "sub", "arguments": {"b": "x"}, "id": "callnum02"}]</s>'
    )
    assert written("mistral args", both) == 'T[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]sub[ARGS]{"b": "x"}</s>'
    assert written("gpt-oss", calling(Reasoning("R"), *both.blocks)) == (
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>T<|end|>"
        '<|start|>assistant to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|end|>'
        '<|start|>assistant to=functions.sub<|channel|>commentary json<|message|>{"b": "x"}<|call|>'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4).filter(
    lambda value: not any(mark in repr(value) for mark in ("<|", "<｜", "\\ud"))
)
WORDS = st.text("abc .\nXYZ0", min_size=1, max_size=12).map(str.strip).filter(bool)


@every_native
@settings(max_examples=25, deadline=None)
@given(
    words=st.none() | WORDS,
    calls=st.lists(st.tuples(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), ARGUMENTS), min_size=1, max_size=3),
)
def test_what_is_written_is_read_back(name: str, words: str | None, calls: list[tuple[str, dict[str, Any]]]) -> None:
    made = [ToolCall(f"c_{k}", n, json.dumps(a, ensure_ascii=False), a) for k, (n, a) in enumerate(calls)]
    message = calling(*([Text(words)] if words else []), *made)
    render = RENDERERS[name]
    read = render.parse(render.decode(render.action(message)), call_prefix="c")
    assert read.text == (words or "")
    assert [(c.id, c.name, c.arguments, c.parse_error) for c in read.tool_calls] == [
        (c.id, c.name, c.arguments, None) for c in made
    ]
    assert render.action(read) == render.action(message)


@every_native
def test_the_next_prompt_goes_on_where_a_call_ended(name: str) -> None:
    """The rule for multi-turn tool use: prompt and sampled call are a prefix of the prompt with the call's result.

    R1 opens a thinking part that its template drops from earlier answers, so there the two branch.
    """
    render, answer = RENDERERS[name], calling(call())
    done = [*render.prompt([USER], [ADD]), *render.action(answer)]
    after = render.prompt([USER, answer, Message("tool", (ToolResult("callnum01", "3"),))], [ADD])
    assert (after[: len(done)] == done) == (name != "deepseek r1")
    text = str(render.tokenizer.decode(after, clean_up_tokenization_spaces=False))
    assert "<tool_response>" not in text
    assert text.count("3") == str(render.tokenizer.decode(done)).count("3") + 1


@every_native
def test_with_words_and_reasoning_beside_the_call_it_goes_on_as_well(name: str) -> None:
    render, answer = RENDERERS[name], calling(Reasoning("Hm."), Text("I add."), call())
    done = [*render.prompt([USER], [ADD]), *render.action(answer)]
    after = render.prompt([USER, answer, Message("tool", (ToolResult("callnum01", "3"),))], [ADD])
    assert (after[: len(done)] == done) == (name != "deepseek r1")


@every_native
def test_every_token_of_a_turn_with_calls_has_its_place(name: str) -> None:
    """The action's span holds what the model wrote, its stop token too, and not what the template puts before it."""
    render, answer = RENDERERS[name], calling(call())
    messages = [USER, answer, Message("tool", (ToolResult("callnum01", "3"),)), Message.of("assistant", "Three.")]
    whole = render.spans(messages, [ADD])
    assert whole.spans[-1][1] == len(whole.tokens)
    spans = [span for span in whole.actions if span]
    own = [list(whole.tokens[start:stop]) for start, stop in spans]
    first = render.action(answer)
    assert own[0] == (first[len(render._encode("\n</think>\n\n")) :] if name == "deepseek r1" else first)
    assert own[1] == render.action(messages[-1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("llama 3", '{"name": "add", "parameters": {"a": 1}}'),
        ("llama 3", '<|python_tag|>{"name": "add", "parameters": {"a": 1}}'),
        ("llama 3", '{"parameters": {"a": 1}, "name": "add"}'),
        ("llama 3", '{"type": "function", "name": "add", "arguments": {"a":1}}\n'),
        ("mistral", '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}]'),
        ("mistral", '[TOOL_CALLS][{"id": "abcdefghi", "arguments": {"a": 1}, "name": "add"}]'),
        ("mistral", '[TOOL_CALLS][\n {"name":"add","arguments":{"a":1}} ]'),
        ("mistral args", '[TOOL_CALLS] add [ARGS] {"a": 1}'),
        ("deepseek v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n"
         '{\n "a": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
        ("gpt-oss", ' to=functions.add<|channel|>commentary json<|message|>{"a": 1}'),
        ("gpt-oss", '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a":1}'),
        ("gpt-oss", '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary '
         'to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>'),
    ],
)  # fmt: skip
def test_calls_as_models_write_them(name: str, text: str) -> None:
    read = RENDERERS[name].parse(text)
    (found,) = read.tool_calls
    assert (found.id, found.name, found.arguments, found.parse_error) == ("call_0", "add", {"a": 1}, None)
    assert not read.text


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("mistral", '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1', "no call that ends"),
        ("mistral", '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}', "no call that ends"),
        ("mistral", "[TOOL_CALLS] add(1)", "no call that ends"),
        ("mistral args", '[TOOL_CALLS]add[ARGS]{"a": ', "Expecting value"),
        ("mistral args", "[TOOL_CALLS]", "no call that ends"),
        (
            "deepseek v3",
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}',
            "end",
        ),
        ("gpt-oss", ' to=functions.add<|channel|>commentary json<|message|>{"a": ', "Expecting value"),
    ],
)
def test_a_broken_call_is_kept_with_its_error_and_is_written_as_it_was(name: str, text: str, error: str) -> None:
    read = RENDERERS[name].parse(text)
    assert error in (read.tool_calls[-1].parse_error or "")
    assert read.tool_calls[-1].arguments is None
    again = RENDERERS[name].parse(RENDERERS[name].decode(RENDERERS[name].action(read)))
    assert [one.parse_error is None for one in again.tool_calls] == [one.parse_error is None for one in read.tool_calls]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada"}',
        'See {"name": "add", "parameters": {}}',
        '{"name": "f", "parameters": {}} is how',
        "{",
        "plain",
    ],
)
def test_llama_s_words_stay_words(text: str) -> None:
    read = RENDERERS["llama 3"].parse(text)
    assert read.blocks == (Text(text),)


def test_ids_are_the_model_s_or_made_of_ours() -> None:
    """Nine letters and digits; one that a model sampled comes back to the byte."""
    assert wire_id("a1B2c3D4e") == "a1B2c3D4e"
    assert len(wire_id("toolu_01ABC")) == 9
    (sampled,) = (
        RENDERERS["mistral"].parse('[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "Zz9Zz9Zz9"}]').tool_calls
    )
    assert sampled.provider_id == "Zz9Zz9Zz9"
    prompt = RENDERERS["mistral"].prompt([USER, calling(sampled), Message("tool", (ToolResult(sampled.id, "r"),))])
    assert str(RENDERERS["mistral"].tokenizer.decode(prompt)).count("Zz9Zz9Zz9") == 2


def test_a_template_whose_arguments_are_no_json_is_taught_the_hermes_form() -> None:
    """Its values cannot be told from each other, so the tools are shown in our words instead."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
        "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments|items %}"
        "{{ k }} {{ v }} {% endfor %}</function>\n</tool_call>{% endfor %}"
        "<|im_end|>\n{% endfor %}"
        "{% if tools %}Answer so: <tool_call>... {{ tools|tojson }}{% endif %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    render = Renderer(Family(template, "<|im_end|>", "<|im_start|>assistant\n").tokenizer())
    text = str(render.tokenizer.decode(render.prompt([USER], [ADD])))
    assert isinstance(render.calls, Hermes)
    assert "Answer with <tool_call>" in text


def test_a_notation_of_a_template_s_own_is_not_taken_for_the_text_that_it_would_copy() -> None:
    """Gemma 4 writes {a:1} for an object and copies a text: the copy of our JSON is not what such a model writes."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
        "<|tool_call>call:{{ c.function.name }}{{ '{' }}{% if c.function.arguments is mapping %}"
        "{% for k, v in c.function.arguments|items %}{{ k }}:{{ v }}{% endfor %}"
        "{% else %}{{ c.function.arguments }}{% endif %}{{ '}' }}<tool_call|>{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    assert isinstance(Renderer(Family(template, "<|im_end|>", "<|im_start|>assistant\n").tokenizer()).calls, Hermes)


def test_arguments_that_a_template_prints_as_they_are_are_given_as_text() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
        "[CALL]{{ c.function.name }}={{ c.function.arguments }}{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    render = Renderer(Family(template, "<|im_end|>", "<|im_start|>assistant\n").tokenizer())
    assert render.decode(render.action(calling(call()))) == '[CALL]add={"a": 1}'
    assert render.parse('[CALL]add={"a": 1}').tool_calls[0].arguments == {"a": 1}


def test_tools_that_a_template_does_not_show_are_taught_with_the_form_that_it_writes() -> None:
    text = str(RENDERERS["deepseek v3"].tokenizer.decode(RENDERERS["deepseek v3"].prompt([USER], [ADD])))
    assert (
        "Answer with <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name\n```json\n{...}\n```" in text
    )


@every_native
def test_the_grammar_has_the_family_s_calls_and_plain_words(name: str) -> None:
    render = RENDERERS[name]
    grammar = render.grammar([ADD, SUB], vocabulary=None)

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(grammar)
        return bool(matcher.accept_string(text)) and bool(matcher.is_completed())

    zeros = call("sub", '{"b": "x"}', id="000000000")
    assert accepts(render.decode(render.action(calling(zeros))).removeprefix("\n</think>\n\n"))
    assert not accepts(render.decode(render.action(calling(call("add", '{"a": "x"}')))))
    assert not accepts(render.decode(render.action(calling(call("mul")))))
    assert accepts("<|channel|>final<|message|>No." if name == "gpt-oss" else "No.")


def test_an_inline_form_writes_a_name_as_json_where_it_stands_in_json() -> None:
    form = RENDERERS["llama 3"].calls
    assert isinstance(form, Inline)
    odd = ToolCall("c", 'a"b', "{}", {})
    assert form.written(calling(odd)) == '{"name": "a\\"b", "parameters": {}}'
    assert form.read(form.written(calling(odd)), call_prefix="c").tool_calls[0].name == 'a"b'
