"""Answers in forms without closing tags: read when they are complete, broken calls as text, cut ones as unfinished."""

from __future__ import annotations

from postgrad.models.render import Renderer
from postgrad.serve.engine import TextDelta, ToolCallDone
from postgrad.serve.reading import ActionReader
from unit.models.chat_templates import FAMILIES


def events(name: str, text: str, *, cut: bool = False) -> tuple[list[tuple[str, object]], str]:
    reader = ActionReader(parse=Renderer(FAMILIES[name].tokenizer()).parse, whole=True)
    pushed = [event for letter in text for event in reader.push(letter)]
    assert not pushed
    found, unfinished = reader.close(cut=cut)
    told: list[tuple[str, object]] = []
    for event in found:
        if isinstance(event, TextDelta):
            told.append(("text", event.text))
        elif isinstance(event, ToolCallDone):
            told.append((event.call.name, event.call.arguments))
    return told, unfinished


def test_words_and_calls_are_told_apart() -> None:
    one = '{"name": "add", "parameters": {"a": 1}}'
    assert events("llama 3", f"Well.\n{one}") == ([("text", "Well."), ("add", {"a": 1})], "")
    assert events("llama 3", "Well.") == ([("text", "Well.")], "")
    assert events("mistral args", 'Well.[TOOL_CALLS]add[ARGS]{"a": 1}') == ([("text", "Well."), ("add", {"a": 1})], "")


def test_channels_are_not_shown() -> None:
    call = ' to=functions.add<|channel|>commentary json<|message|>{"a": 1}'
    said = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    assert events("gpt-oss", said + "<|channel|>final<|message|>Two.") == ([("text", "Two.")], "")
    assert events("gpt-oss", said + call) == ([("add", {"a": 1})], "")


def test_half_a_call_is_text_or_unfinished() -> None:
    half = '[TOOL_CALLS] [{"name": "add", "arg'
    assert events("mistral", half) == ([("text", half)], "")
    assert events("mistral", half, cut=True) == ([], half)
