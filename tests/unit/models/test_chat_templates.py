"""What the big families' templates do, through the renderer: tokens, stop tokens, calls, results, reasoning."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.models.render import Renderer
from unit.models.chat_templates import FAMILIES

TOOL = Tool("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = ToolCall.from_raw(id="c0", name="add", raw='{"a": 1}')
CALLING = Message("assistant", (Reasoning("I should add."), Text("Let me see."), CALL, CALL))
RESULTS = (Message("tool", (ToolResult("c0", "3"),)), Message("tool", (ToolResult("c1", 'a "b"\nc'),)))
ANSWER = Message("assistant", (Reasoning("It is three."), Text("3")))
CONVERSATION = [
    Message.of("system", "Be brief."),
    Message.of("user", "1 + 2?"),
    CALLING,
    *RESULTS,
    ANSWER,
    Message.of("user", "Thanks"),
    Message.of("assistant", "You are welcome."),
]
# How the families whose templates write calls write one, as far as it is the same in any place.
CALLS = {
    "llama 3": '{"name": "add", "parameters": {"a": 1}}',
    "mistral": '{"name": "add", "arguments": {"a": 1}, "id": "122c59708"}',
    "mistral args": '[TOOL_CALLS]add[ARGS]{"a": 1}',
    "deepseek v3": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>',
    "deepseek r1": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>',
    "gpt-oss": ' to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|',
}
every_family = pytest.mark.parametrize("name", FAMILIES)


def renderer(name: str) -> Renderer:
    return Renderer(FAMILIES[name].tokenizer())


def text_of(render: Renderer, tokens: tuple[int, ...] | list[int]) -> str:
    return str(render.tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def template_s_own(render: Renderer, turns: list[dict[str, str]], **options: bool) -> str:
    """What the library makes of the template, on the first day of 2026."""
    source = str(render.tokenizer.chat_template)
    for call, day in (('strftime_now("%d %b %Y")', '"01 Jan 2026"'), ('strftime_now("%Y-%m-%d")', '"2026-01-01"')):
        source = source.replace(call, day)
    return str(render.tokenizer.apply_chat_template(turns, chat_template=source, tokenize=False, **options))


@every_family
@pytest.mark.parametrize("tools", [(), (TOOL,)], ids=["no tools", "tools"])
def test_a_prompt_and_its_action_begin_the_whole(name: str, tools: tuple[Tool, ...]) -> None:
    render = renderer(name)
    answers = 0
    for place, message in enumerate(CONVERSATION):
        if message.role != "assistant":
            continue
        answers += 1
        prompt, action = render.prompt(CONVERSATION[:place], tools), render.action(message)
        whole = render.spans(CONVERSATION[: place + 1], tools)
        assert (*prompt, *action) == whole.tokens[: len(prompt) + len(action)]
        assert whole.actions[place] == (len(prompt), len(prompt) + len(action))
        assert text_of(render, prompt).endswith(FAMILIES[name].generation)
    assert answers == 3


@every_family
def test_the_family_s_mark_ends_an_answer_and_nothing_else_stops(name: str) -> None:
    render, family = renderer(name), FAMILIES[name]
    action = render.action(Message.of("assistant", "A"))
    assert text_of(render, action[-1:]) == family.stop
    stops = {text_of(render, [token]) for token in render.stop_ids}
    assert stops == {family.stop, family.eos or family.stop} | ({"<|call|>"} if name == "gpt-oss" else set())
    assert not render.stop_ids & set(action[:-1])


@every_family
def test_prompts_are_the_template_s_own_text(name: str) -> None:
    """Of user and assistant turns alone, before and after an answer; the date is the one fixed day."""
    render = renderer(name)
    messages = [Message.of("user", "U"), Message.of("assistant", "A"), Message.of("user", "V")]
    plain = [{"role": message.role, "content": message.text} for message in messages]
    for count in (1, 3):
        expected = template_s_own(render, plain[:count], add_generation_prompt=True)
        assert text_of(render, render.prompt(messages[:count])) == expected


@every_family
def test_what_was_written_is_read_back(name: str) -> None:
    """Reasoning where the template has a place for it; calls and text everywhere."""
    render = renderer(name)
    for message in (CALLING, ANSWER, Message.of("assistant", "plain"), Message("assistant", (CALL,))):
        read = render.parse(render.decode(render.action(message)), call_prefix="c")
        thought = [block.text for block in read.blocks if isinstance(block, Reasoning)]
        expected = [block.text for block in message.blocks if isinstance(block, Reasoning)]
        assert thought == (expected if FAMILIES[name].thinks else [])
        assert read.text == message.text
        assert [call.arguments for call in read.tool_calls] == [call.arguments for call in message.tool_calls]
        assert render.action(read) == render.action(message)


@pytest.mark.parametrize("name", ["qwen 3", "qwen 3 thinking", "gpt-oss"])
def test_the_last_answer_is_the_template_s_own_text(name: str) -> None:
    """These write the reasoning of the last answer; an answer without one gets what the template puts there."""
    render = renderer(name)
    for answer in (ANSWER, Message.of("assistant", "3")):
        fields = {"role": "assistant", "content": answer.text}
        if answer is ANSWER:
            fields |= {"reasoning_content": "It is three.", "thinking": "It is three."}
        expected = template_s_own(render, [{"role": "user", "content": "U"}, fields])
        whole = render.spans([Message.of("user", "U"), answer])
        assert text_of(render, whole.tokens) == expected


@every_family
def test_a_template_that_drops_earlier_reasoning_branches(name: str) -> None:
    """The next prompt goes on from this prompt and action exactly where the template writes earlier turns alike.

    By hand: Qwen 3 and R1 open the last answer with a thinking part, GPT-OSS ends it with another mark; the others
    write every answer in one way.
    """
    render = renderer(name)
    first = [Message.of("user", "U")]
    done = (*render.prompt(first), *render.action(ANSWER))
    after = tuple(render.prompt([*first, ANSWER, Message.of("user", "V")]))
    goes_on = after[: len(done)] == done
    assert goes_on == (name not in ("qwen 3", "qwen 3 thinking", "deepseek r1", "gpt-oss"))
    if FAMILIES[name].thinks:
        assert "It is three." not in text_of(render, after)


def test_qwen_3_keeps_the_reasoning_of_a_step_while_its_calls_are_answered() -> None:
    render = renderer("qwen 3")
    context = [Message.of("user", "1 + 2?"), CALLING]
    done = (*render.prompt(context[:1], [TOOL]), *render.action(CALLING))
    after = render.prompt([*context, RESULTS[0]], [TOOL])
    assert tuple(after[: len(done)]) == done
    assert text_of(render, after).count("I should add.") == 1


@every_family
def test_results_of_parallel_calls_are_all_shown(name: str) -> None:
    """Two results in a row, which templates with strict alternation get in one turn."""
    render = renderer(name)
    text = text_of(render, render.prompt([Message.of("user", "1 + 2?"), CALLING, *RESULTS], [TOOL]))
    shown = 'a \\"b\\"\\nc' if name in ("llama 3", "gpt-oss") else 'a "b"\nc'
    assert shown in text
    assert text.index("Let me see.") < text.index(shown)
    assert text.count(CALLS.get(name, '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>')) == 2


@every_family
def test_results_keep_the_order_of_their_calls(name: str) -> None:
    render = renderer(name)
    calls = [ToolCall.from_raw(id=f"callnum0{k}", name="add", raw=f'{{"a": {k}}}') for k in (1, 2)]
    both = Message("tool", (ToolResult("callnum01", "first"), ToolResult("callnum02", "second")))
    for results in ([both], [Message("tool", (block,)) for block in both.blocks]):
        prompt = render.prompt([Message.of("user", "U"), Message("assistant", tuple(calls)), *results], [TOOL])
        text = text_of(render, prompt)
        assert text.index("first") < text.index("second")


@every_family
def test_every_token_belongs_to_one_message(name: str) -> None:
    render = renderer(name)
    whole = render.spans(CONVERSATION, [TOOL])
    assert whole.spans[-1][1] == len(whole.tokens)
    for (_, stop), (start, _) in zip(whole.spans, whole.spans[1:], strict=False):
        assert stop == start
    for message, span, action in zip(CONVERSATION, whole.spans, whole.actions, strict=True):
        assert (action is not None) == (message.role == "assistant")
        if action is not None:
            assert span[0] <= action[0] < action[1] <= span[1]
            assert message.text in text_of(render, whole.tokens[action[0] : action[1]])


def test_a_system_message_stays_where_it_was() -> None:
    """Mistral's template would move it to the last user turn, so that every step had another prefix."""
    render = renderer("mistral")
    asked = [Message.of("system", "S"), Message.of("user", "U")]
    done = (*render.prompt(asked), *render.action(Message.of("assistant", "A")))
    later = render.prompt([*asked, Message.of("assistant", "A"), Message.of("user", "V")])
    assert tuple(later[: len(done)]) == done
    assert text_of(render, done) == "<s>[INST] S\n\nU[/INST] A</s>"


def test_a_thought_that_was_cut_off_is_no_answer() -> None:
    read = renderer("qwen 3").parse("<think>\nFirst I")
    assert read.blocks == (Reasoning("First I"),)
    assert renderer("deepseek r1").parse("plain words").text == "plain words"
