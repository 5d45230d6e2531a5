"""Rendering: the prompt and the action are the beginning of the whole, on any template; edges are exact."""

from __future__ import annotations

import jinja2
import pytest

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.models.render import Renderer
from postgrad.models.templates import CHATML
from postgrad.models.tiny import byte_tokenizer

# A template like SmolLM2's: a default system turn when none is given.
DEFAULT_SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}" + CHATML
)
# Like Gemma's: no system role, users and assistants in turn, contents trimmed.
STRICT = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<|im_start|>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{{ m['content'] | trim + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}"
)
# Like Qwen's: tools in the system turn in the Hermes form, results of tools inside a user turn.
HERMES = (
    "{% if tools %}{{ '<|im_start|>system\nTools: ' }}{% for t in tools %}{{ t | tojson }}{% endfor %}"
    "{{ 'Answer with <tool_call></tool_call><|im_end|>\n' }}{% endif %}"
    "{% for m in messages %}{% if m['role'] == 'tool' %}"
    "{{ '<|im_start|>user\n<tool_response>\n' + m['content'] + '\n</tool_response><|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Like Qwen3's: an empty thinking part before the answer of the last turn only.
THINKING = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['role'] == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "default system": DEFAULT_SYSTEM,
    "strict": STRICT,
    "hermes": HERMES,
    "thinking": THINKING,
    "none": None,
}

TOOL = Tool("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = Message("assistant", (Text("Let me see."), ToolCall.from_raw(id="c0", name="add", raw='{"a": 1}')))
RESULT = Message("tool", (ToolResult("c0", "3"),))


def renderer(template: str | None) -> Renderer:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    return Renderer(tokenizer)


def text_of(render: Renderer, tokens: tuple[int, ...] | list[int]) -> str:
    return str(render.tokenizer.decode(list(tokens), skip_special_tokens=False))


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@pytest.mark.parametrize("tools", [(), (TOOL,)], ids=["no tools", "tools"])
def test_prompt_and_action_begin_the_whole(template: str | None, tools: tuple[Tool, ...]) -> None:
    render = renderer(template)
    conversation: list[Message] = []
    turns = [Message.of("user", "1 + 2?"), CALL, RESULT, Message.of("assistant", "3 "), Message.of("user", "Thanks")]
    for turn in turns:
        if turn.role == "assistant":
            prompt, action = render.prompt(conversation, tools), render.action(turn)
            whole = render.spans([*conversation, turn], tools)
            assert (*prompt, *action) == whole.tokens[: len(prompt) + len(action)]
            assert whole.actions[-1] == (len(prompt), len(prompt) + len(action))
            assert action[-1] in render.stop_ids
        conversation.append(turn)
    whole = render.spans(conversation, tools)
    assert whole.spans[-1][1] == len(whole.tokens)
    for (_, stop), (start, _) in zip(whole.spans, whole.spans[1:], strict=False):
        assert stop == start, "every token after the first message belongs to one message"


@pytest.mark.parametrize("name", ["chatml", "default system", "hermes"])
def test_the_tokens_are_the_templates_own(name: str) -> None:
    render = renderer(TEMPLATES[name])
    messages = [Message.of("user", "hi"), Message.of("assistant", "yes"), Message.of("user", "ok")]
    plain = [{"role": message.role, "content": message.text} for message in messages]
    expected = render.tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    assert text_of(render, render.prompt(messages)) == expected


def test_spans_hold_each_messages_own_text() -> None:
    render = renderer(CHATML)
    whole = render.spans([Message.of("system", "S"), Message.of("user", "U"), Message.of("assistant", "A")])
    texts = [text_of(render, whole.tokens[start:stop]) for start, stop in whole.spans]
    assert texts == [
        f"<|im_start|>{role}\n{letter}<|im_end|>\n"
        for role, letter in (("system", "S"), ("user", "U"), ("assistant", "A"))
    ]
    start, stop = whole.actions[2] or (0, 0)
    assert text_of(render, whole.tokens[start:stop]) == "A<|im_end|>"


def test_tools_go_into_the_system_message_where_the_template_knows_none() -> None:
    render = renderer(CHATML)
    text = text_of(render, render.prompt([Message.of("system", "Be brief."), Message.of("user", "U")], [TOOL]))
    assert text.count("<|im_start|>system") == 1
    assert text.startswith("<|im_start|>system\nBe brief.\n\n")
    assert '# Add two numbers.\n{"name": "add", "arguments": {"a"?: integer}}\n' in text
    whole = render.spans([Message.of("user", "U")], [TOOL])
    start, _ = whole.spans[0]
    assert text_of(render, whole.tokens[start:]) == "<|im_start|>user\nU<|im_end|>\n"


def test_a_template_that_renders_tools_is_used_as_it_is() -> None:
    render = renderer(HERMES)
    text = text_of(render, render.prompt([Message.of("user", "U"), CALL, RESULT], [TOOL]))
    assert text.startswith("<|im_start|>system\nTools: ")
    assert "if no tool fits" not in text
    assert "<tool_response>\n3\n</tool_response>" in text


def test_roles_that_the_template_refuses_are_folded() -> None:
    render = renderer(STRICT)
    text = text_of(render, render.prompt([Message.of("system", "S"), Message.of("user", "U"), CALL, RESULT]))
    assert "<|im_start|>user\nS\n\nU<|im_end|>" in text
    assert "<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>" in text


def test_an_order_of_roles_that_the_template_refuses_is_the_users_error() -> None:
    with pytest.raises(DataError, match="roles must alternate"):
        renderer(STRICT).prompt([Message.of("user", "a"), Message.of("user", "b")])


def test_a_hint_is_appended_to_the_last_message() -> None:
    render = renderer(CHATML)
    hinted = text_of(render, render.prompt([Message.of("user", "U")], hint="Mind the units."))
    assert hinted == "<|im_start|>user\nU\n\nMind the units.<|im_end|>\n<|im_start|>assistant\n"
    after_result = text_of(render, render.prompt([Message.of("user", "U"), CALL, RESULT], hint="Look again."))
    assert after_result.endswith("Look again.<|im_end|>\n<|im_start|>assistant\n")


def test_a_lone_surrogate_is_rendered_as_the_replacement_character() -> None:
    """Traces hold them (cut emoji); no tokenizer takes them. A pair stands for its character."""
    renderer = Renderer(byte_tokenizer())
    for odd, plain in (("hi \ud83d!", "hi \ufffd!"), ("hi \ud83d\ude00!", "hi \U0001f600!")):
        assert renderer.prompt([Message.of("user", odd)]) == renderer.prompt([Message.of("user", plain)])
        assert renderer.action(Message.of("assistant", odd)) == renderer.action(Message.of("assistant", plain))


def test_reasoning_is_left_out() -> None:
    render = renderer(CHATML)
    assert render.action(Message("assistant", (Reasoning("hm"), Text("A")))) == render.action(
        Message.of("assistant", "A")
    )


def test_what_was_sampled_is_read_back() -> None:
    render = renderer(CHATML)
    text = render.decode(render.action(CALL))
    assert [type(block).__name__ for block in render.parse(text).blocks] == ["Text", "ToolCall"]
    assert render.action(render.parse(text)) == render.action(CALL)


def test_a_mark_of_a_converted_tokenizer_ends_a_turn_and_plain_text_does_not() -> None:
    """GGUF conversion keeps marks such as <end_of_turn> as ordinary tokens."""
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["<end_of_turn>"])
    tokenizer.chat_template = CHATML.replace("<|im_end|>", "<end_of_turn>")
    render = Renderer(tokenizer)
    mark = tokenizer.convert_tokens_to_ids("<end_of_turn>")
    assert mark not in tokenizer.all_special_ids
    assert render.action(Message.of("assistant", "A"))[-1] == mark
    assert render.stop_ids == {mark, tokenizer.eos_token_id}
    plain = renderer(CHATML.replace("<|im_end|>", "###"))
    assert plain.action(Message.of("assistant", "A"))[-1] == plain.tokenizer.eos_token_id
    assert plain.stop_ids == {plain.tokenizer.eos_token_id}


@pytest.mark.parametrize("writes_bos", [True, False])
def test_one_begin_of_text_token(writes_bos: bool) -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    tokenizer.chat_template = ("{{ bos_token }}" if writes_bos else "") + CHATML
    prompt = Renderer(tokenizer).prompt([Message.of("user", "U")])
    assert prompt[0] == tokenizer.bos_token_id
    assert prompt.count(tokenizer.bos_token_id) == 1


def test_a_broken_template_is_an_error_of_the_model() -> None:
    with pytest.raises(ConfigError, match="cannot render a plain exchange"):
        renderer("{{ raise_exception('never') }}")
    assert issubclass(jinja2.TemplateSyntaxError, jinja2.TemplateError)
