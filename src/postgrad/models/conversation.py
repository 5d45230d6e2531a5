"""A conversation as text pieces: what the chat template writes around each message, cut at the messages' edges.

The template is rendered once with a private mark in place of every content; the text between the marks is what the
template adds. So a conversation of K messages costs one rendering, not K, and message edges are exact. What a template
leaves out of earlier turns (their reasoning) is left out here too: the text is the template's own.

Templates that print today's date are given one fixed day: a run that goes on tomorrow must see the same tokens.

Not covered: templates that change a content beyond trimming it or writing it as a JSON string; it is kept as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import jinja2
import msgspec
from transformers import PreTrainedTokenizerBase

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.models.call_forms import Given, wire_id
from postgrad.models.call_probe import call_turn
from postgrad.models.calls import tool_object, tools_text
from postgrad.models.shape import Shape, shape_of
from postgrad.models.template_probe import MARKS, mark

DAY = date(2026, 1, 1)
"""What templates print as today."""

_PLAIN_NAME = re.compile(r"[\w.-]+")
_TODAY = re.compile(r"""strftime_now\((["'])(.*?)\1\)""")


@dataclass(frozen=True)
class Part:
    """One turn: `message` is the index of its message, -1 for a turn that was added; texts before and after it."""

    message: int
    role: str
    content: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class _Turn:
    """What the template is given. `folded` turns had another role, which the template does not take.

    A turn with a `call` is given to the template as calls are; the text that it writes for one stands for the content.
    """

    message: int
    role: str
    content: str
    reasoning: str = ""
    folded: bool = False
    call: ToolCall | None = None
    result_of: str = ""


class Template:
    """The chat template of a tokenizer.

    Raises:
        ConfigError: it cannot render a plain exchange of a user and an assistant.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        try:
            self.shape: Shape = shape_of(self._render, tokenizer)
        except jinja2.TemplateError as error:
            raise ConfigError(f"the chat template cannot render a plain exchange: {error}") from None

    def parts(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[Part]:
        """The turns of `messages`, each with what the template writes around it before an answer is asked for.

        Joined, and with the generation prompt, they are the whole text of the prompt.

        Raises:
            DataError: the template refuses this order of roles.
        """
        turns = self._turns(messages, tools)
        if not turns:
            return []
        native = tools if self.shape.renders_tools else ()
        try:
            texts, kept = self._texts(turns, native)
        except jinja2.TemplateError as error:
            roles = " ".join(turn.role for turn in turns)
            raise DataError(f"the chat template refuses this conversation: {error}", got=roles) from None
        cuts = [
            ("", texts[0]),
            *(self._cut(text, a, b) for text, a, b in zip(texts[1:-1], turns, turns[1:], strict=False)),
        ]
        closings = [closing for closing, _ in cuts[1:]] + [texts[-1]]
        return [
            Part(turn.message, turn.role, content, opening, closing)
            for turn, content, (_, opening), closing in zip(turns, kept, cuts, closings, strict=True)
        ]

    def written(self, message: Message) -> str:
        """What a model writes as `message` after the generation prompt, up to the end of the turn."""
        calls = self.shape.calls
        return self.shape.opened(_reasoning(message), leads=calls.leads(message)) + calls.written(message)

    def ending(self, message: Message) -> str:
        """What ends `message` in place of the template's end of a turn; empty where that does."""
        last = message.blocks[-1] if message.blocks else None
        return self.shape.calls.end if isinstance(last, ToolCall) else ""

    def read(self, text: str, *, call_prefix: str, tools: Sequence[Tool] = ()) -> Message:
        """The assistant message that a model wrote as `text`; never fails."""
        if self.shape.calls.whole:
            return self.shape.calls.read(text, call_prefix=call_prefix, tools=tools)
        reasoning, answer = self.shape.unwrapped(text)
        message = self.shape.calls.read(answer, call_prefix=call_prefix, tools=tools)
        return Message("assistant", (Reasoning(reasoning), *message.blocks)) if reasoning else message

    def _cut(self, text: str, turn: _Turn, following: _Turn) -> tuple[str, str]:
        """Split the text between two turns: the end of a turn belongs to it, the rest opens the next one."""
        shape = self.shape
        answered = (shape.turn_end, shape.earlier_end, shape.calls.end)
        ends = answered if turn.role == "assistant" else (shape.user_end,)
        closing = next((end for end in ends if end and text.startswith(end)), "")
        if turn.role != "assistant" and following.role == "assistant" and not shape.generation:
            closing = text if following.call else text.removesuffix(shape.answer)  # nothing else opens an answer
        if not closing and turn.role != "assistant" and following.role == "assistant" and shape.generation:
            closing = text.rpartition(shape.generation)[0]
        return closing, text[len(closing) :]

    def _texts(self, turns: Sequence[_Turn], tools: Sequence[Tool]) -> tuple[list[str], list[str]]:
        """The texts around the turns, one more than there are turns, and each turn's content as it stays."""
        given = [_given(i, turn, self.shape.calls.given) for i, turn in enumerate(turns)]
        text = self._render(given, tools=tools, generation=True)
        for i, turn in enumerate(turns):
            if turn.call is not None:
                asked = msgspec.structs.replace(turn.call, arguments={mark(2 * i + 1): ""})
                text = text.replace(self.shape.calls.written(Message("assistant", (asked,))), mark(2 * i + 1))
        pieces = MARKS.split(text.removesuffix(self.shape.generation))
        texts, found = pieces[0::2], [int(number) for number in pieces[1::2]]
        if [number // 2 for number in found if number % 2] != list(range(len(turns))):
            roles = " ".join(turn.role for turn in turns)
            raise DataError("the chat template leaves out, repeats or moves a message", got=roles)
        around, contents = [texts[0]], []
        held = ""
        for number, after in zip(found, texts[1:], strict=True):
            turn = turns[number // 2]
            if number % 2 == 0:  # a reasoning that the template keeps: it is part of the content
                held += turn.reasoning + after
                continue
            contents.append(held + turn.content)
            around.append(after)
            held = ""
        return around, contents

    def _turns(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[_Turn]:
        turns = [turn for i, message in enumerate(messages) for turn in self._message_turns(i, message)]
        if tools and not self.shape.renders_tools:
            calls = self.shape.calls
            text = tools_text(tools, example="{...}".join(calls.around("name"))) if calls.native else tools_text(tools)
            if turns and turns[0].role == "system":
                turns[0] = replace(turns[0], content=f"{turns[0].content}\n\n{text}")
            else:
                turns.insert(0, _Turn(-1, "system", text))
        ids = {call.id: wire_id(call.provider_id or call.id) for m in messages for call in m.tool_calls}
        turns = [
            replace(turn, result_of=ids.get(turn.result_of, wire_id(turn.result_of))) if turn.role == "tool" else turn
            for turn in turns
        ]
        turns = turns if self.shape.takes_system else _fold_system(turns)
        return turns if self.shape.takes_repeats else _joined(turns)

    def _message_turns(self, index: int, message: Message) -> list[_Turn]:
        if message.role == "assistant":
            return [self._answer_turn(index, message)]
        role = "system" if message.role == "developer" else message.role
        results = [self._result_turn(index, block) for block in message.blocks if isinstance(block, ToolResult)]
        text = "".join(block.text for block in message.blocks if isinstance(block, Text))
        if not results:
            return [_Turn(index, "user" if role == "tool" else role, text, folded=role == "tool")]
        if text:  # a hint, or words of the user beside the results
            results.append(_Turn(index, "user", text.strip(), folded=True))
        return results

    def _answer_turn(self, index: int, message: Message) -> _Turn:
        shape, reasoning = self.shape, _reasoning(message) if self.shape.thinking else ""
        content = shape.calls.written(message)
        if not message.tool_calls or not shape.calls.native:
            return _Turn(index, "assistant", content, reasoning)
        # The template writes a call, so it does not write what opens words.
        opening = shape.opened(reasoning, leads=False).removeprefix(shape.opened(reasoning, leads=True))
        opening = "" if shape.calls.leads(message) else opening
        first = message.tool_calls[0]
        name = first.name if _PLAIN_NAME.fullmatch(first.name) else "unknown"
        call = ToolCall(first.id, name, "{}", {}, provider_id=first.provider_id)
        return _Turn(index, "assistant", opening + content, reasoning, call=call)

    def _result_turn(self, index: int, result: ToolResult) -> _Turn:
        if not self.shape.takes_tool_role:
            return _Turn(index, "user", f"<tool_response>\n{result.text}\n</tool_response>", folded=True)
        text = json.dumps(result.text, ensure_ascii=False)[1:-1] if self.shape.quotes_results else result.text
        return _Turn(index, "tool", text, result_of=result.call_id)

    def _render(self, turns: list[dict[str, Any]], *, tools: Sequence[Tool] = (), generation: bool = False) -> str:
        offered = [{"type": "function", "function": tool_object(tool)} for tool in tools] or None
        text = self._tokenizer.apply_chat_template(
            turns,
            tools=offered,
            chat_template=_on_a_fixed_day(self._tokenizer.get_chat_template(tools=offered)),
            add_generation_prompt=generation,
            tokenize=False,
        )
        return str(text)


def _given(place: int, turn: _Turn, calls: Given) -> dict[str, Any]:
    """A turn as templates take it, with marks for its texts."""
    given: dict[str, Any] = {"role": turn.role, "content": mark(2 * place + 1)}
    if turn.call is not None:
        given = call_turn(turn.call, calls, key=mark(2 * place + 1))
    if turn.role == "tool":
        given["tool_call_id"] = turn.result_of
    if turn.reasoning:  # the two names that templates know
        given |= dict.fromkeys(("reasoning_content", "thinking"), mark(2 * place))
    return given


def _on_a_fixed_day(source: str) -> str:
    """A template in which the day is written out; what a template calls cannot be handed to it from outside."""
    return _TODAY.sub(lambda found: json.dumps(DAY.strftime(found[2])), source)


def _reasoning(message: Message) -> str:
    """All of a message's thinking in one piece, as templates write it."""
    texts = [block.text for block in message.blocks if isinstance(block, Reasoning) and block.text]
    return "\n\n".join(texts).strip("\n")


def _fold_system(turns: Sequence[_Turn]) -> list[_Turn]:
    """Put every system turn's text before the text of the next user turn."""
    folded: list[_Turn] = []
    waiting = ""
    for turn in turns:
        if turn.role == "system":
            waiting += turn.content + "\n\n"
        elif turn.role == "user" and waiting:
            folded.append(replace(turn, content=waiting + turn.content))
            waiting = ""
        else:
            folded.append(turn)
    if waiting:
        folded.append(_Turn(-1, "user", waiting.strip(), folded=True))
    return folded


def _joined(turns: Sequence[_Turn]) -> list[_Turn]:
    """Put user turns that follow each other into one, where one of them had another role: several results of tools.

    Two messages of the user in a row stay two, and the template says what it thinks of them.
    """
    joined: list[_Turn] = []
    for turn in turns:
        last = joined[-1] if joined else None
        if last is not None and last.role == turn.role == "user" and (last.folded or turn.folded):
            joined[-1] = replace(last, content=f"{last.content}\n\n{turn.content}", folded=True)
        else:
            joined.append(turn)
    return joined
