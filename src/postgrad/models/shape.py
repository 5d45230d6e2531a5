"""What a chat template does, found by rendering small exchanges with marks in place of contents.

Nothing is looked up by a family's name: a template may be anyone's. What it opens an answer with, what it writes before
a plain answer (an empty thinking part, the name of a channel), around a reasoning and after a turn is read off the text
between the marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
from transformers import PreTrainedTokenizerBase

from postgrad.core.errors import ConfigError
from postgrad.core.message import ToolCall
from postgrad.models.call_forms import CallForm
from postgrad.models.call_probe import call_form, call_turn, writes_otherwise
from postgrad.models.template_probe import MARKS, PROBE_TOOL, Render, mark

_USER, _ANSWER, _THOUGHT, _NEXT = 0, 1, 2, 3


@dataclass(frozen=True)
class Shape:
    """What a template does.

    Attributes:
        generation: the text that opens an answer.
        answer: what the model writes before a plain answer; empty for most.
        thinking: what it writes before a reasoning, and between that and the answer; None where it knows none.
        turn_end: what ends the last answer.
        earlier_end: what ends an answer before it, where that begins otherwise.
        user_end: what ends a user's turn.
        calls: how it writes calls.
        renders_tools: it shows tools, and teaches this form of calls.
        takes_system: a system turn stays at its place.
        takes_tool_role: results of tools are turns of their own.
        quotes_results: it writes them as JSON strings.
        takes_repeats: a user may have two turns in a row.
    """

    generation: str
    answer: str
    thinking: tuple[str, str] | None
    turn_end: str
    earlier_end: str
    user_end: str
    calls: CallForm
    renders_tools: bool
    takes_system: bool
    takes_tool_role: bool
    quotes_results: bool
    takes_repeats: bool

    def opened(self, reasoning: str, *, leads: bool) -> str:
        """What a model writes before the words of an answer, or (`leads`) before calls that open it."""
        if reasoning and self.thinking:
            return self.thinking[0] + reasoning + (self.thought_end if leads else self.thinking[1])
        return self.answer if not leads or self._opens_thinking else ""

    @property
    def thought_end(self) -> str:
        """What ends a reasoning, whatever follows it."""
        closing = self.thinking[1] if self.thinking else ""
        return closing if self._opens_thinking else closing.removesuffix(self.answer) or closing

    @property
    def _opens_thinking(self) -> bool:
        return self.generation.rstrip().endswith("<think>")

    def unwrapped(self, text: str) -> tuple[str, str]:
        """Reasoning and answer of what a model wrote, each possibly empty.

        Without the mark that ends it, a reasoning that the model itself opened is all there is; one that the generation
        prompt opened is taken for the answer.
        """
        if self.answer and text.startswith(self.answer):
            return "", text.removeprefix(self.answer)
        body, plain = text.lstrip(), self.answer.strip()
        opening, closing = (self.thinking[0] if self.thinking else "").strip(), self.thought_end.strip()
        if closing and body.startswith(opening) and (opening or closing in body):
            thought, _, rest = body.removeprefix(opening).partition(closing)
            opened = plain and rest.lstrip().startswith(plain)
            return thought.strip("\n"), rest.lstrip().removeprefix(plain) if opened else rest.lstrip("\n")
        return "", body.removeprefix(plain).lstrip("\n") if plain and body.startswith(plain) else text


def shape_of(render: Render, tokenizer: PreTrainedTokenizerBase) -> Shape:
    """Try the template out.

    Raises:
        ConfigError: its generation prompt changes the text before it.
        TemplateError: it cannot render a plain exchange (jinja2's own).
    """
    eos = str(tokenizer.eos_token or "")
    user, answer = _turn("user", _USER), _turn("assistant", _ANSWER)
    opened, asked = render([user], generation=True), render([user])
    if not opened.startswith(asked):  # some close the whole text unless an answer is to come
        asked = asked.removesuffix(eos)
    if not opened.startswith(asked):
        raise ConfigError("the chat template's generation prompt changes the text before it")
    generation = opened[len(asked) :]
    before, _, turn_end = render([user, answer]).rpartition(mark(_ANSWER))
    turn_end = _without_end_of_text(turn_end, eos)
    plain = before[len(opened) :] if before.startswith(opened) else ""
    thinking = _thinking(render, opened, str(tokenizer.chat_template))
    if thinking is not None and not before.startswith(opened):
        plain = thinking[1]  # the generation prompt opens a thinking part, which a plain answer has to close
    calls = call_form(render, user, opened=opened, answer=plain, turn_end=turn_end)
    quotes = _quotes_results(render, user, calls)
    return Shape(
        generation=generation,
        answer=plain,
        thinking=thinking,
        turn_end=turn_end,
        earlier_end=_earlier_end(render, tokenizer),
        user_end=asked.rpartition(mark(_USER))[2],
        calls=calls,
        renders_tools=_renders_tools(render, user, calls),
        takes_system=_takes(render, _turn("system", _THOUGHT), user, answer, _turn("user", _NEXT)),
        takes_tool_role=quotes is not None,
        quotes_results=bool(quotes),
        takes_repeats=_takes(render, user, _turn("user", _NEXT)),
    )


def _turn(role: str, number: int) -> dict[str, str]:
    return {"role": role, "content": mark(number)}


def _without_end_of_text(turn_end: str, eos: str) -> str:
    """`turn_end` without the mark that some templates put after the last turn of all, unless it is the only mark."""
    shorter = turn_end.removesuffix(eos)
    return shorter if shorter.strip() else turn_end


def _thinking(render: Render, opened: str, source: str) -> tuple[str, str] | None:
    """The texts before and after a reasoning of the last answer."""
    turns = [_turn("user", _USER), _turn("assistant", _ANSWER)]
    turns[1] |= dict.fromkeys(("reasoning_content", "thinking"), mark(_THOUGHT))
    try:
        text = render(turns)
    except jinja2.TemplateError:
        text = ""
    if text.startswith(opened) and _marks(text[len(opened) :]) == [_THOUGHT, _ANSWER]:
        opening, _, rest = text[len(opened) :].partition(mark(_THOUGHT))
        return opening, rest.partition(mark(_ANSWER))[0]
    if opened.rstrip().endswith("<think>"):
        return "", "\n</think>\n\n"
    return ("<think>\n", "\n</think>\n\n") if "<think>" in source else None


def _earlier_end(render: Render, tokenizer: PreTrainedTokenizerBase) -> str:
    """The special token that directly follows an answer with a turn after it."""
    try:
        text = render([_turn("user", _USER), _turn("assistant", _ANSWER), _turn("user", _NEXT)])
    except jinja2.TemplateError:
        return ""
    between = text.partition(mark(_ANSWER))[2].partition(mark(_NEXT))[0]
    ids = tokenizer.encode(between, add_special_tokens=False) if between else []
    first = str(tokenizer.decode(ids[:1], skip_special_tokens=False)) if ids else ""
    return first if ids and ids[0] in tokenizer.all_special_ids and between.startswith(first) else ""


def _quotes_results(render: Render, user: Mapping[str, Any], calls: CallForm) -> bool | None:
    """Whether results of tools are written as JSON strings; None where they are no turns of their own."""
    call = ToolCall("probecal0", PROBE_TOOL.name, "{}", {})
    asks: Mapping[str, Any] = _turn("assistant", _ANSWER)
    if calls.native:
        asks = call_turn(call, calls.given, key=mark(_ANSWER))
    answers = {"role": "tool", "content": f'{mark(_NEXT)}"', "tool_call_id": call.id}
    try:
        turns = [dict(user), dict(asks), answers, dict(_turn("assistant", _THOUGHT))]
        text = render(turns, tools=(PROBE_TOOL,) if calls.native else ())
    except jinja2.TemplateError:
        return None
    return f'{mark(_NEXT)}\\"' in text if _marks(text) == [_USER, _ANSWER, _NEXT, _THOUGHT] else None


def _renders_tools(render: Render, user: dict[str, Any], calls: CallForm) -> bool:
    try:
        text = render([user], tools=(PROBE_TOOL,))
    except jinja2.TemplateError:
        return False
    return PROBE_TOOL.name in text and (calls.native or ("<tool_call>" in text and not writes_otherwise(render, user)))


def _takes(render: Render, *turns: dict[str, str]) -> bool:
    """Whether every turn's content comes out once, in order."""
    try:
        text = render(list(turns))
    except jinja2.TemplateError:
        return False
    return [mark(number) for number in _marks(text)] == [turn["content"] for turn in turns]


def _marks(text: str) -> list[int]:
    return [int(number) for number in MARKS.findall(text)]
