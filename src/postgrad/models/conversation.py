"""A conversation as text pieces: what the chat template writes around each message, cut at the messages' edges.

The template is rendered once with a private mark in place of every content; the text between the marks is what the
template adds. So a conversation of K messages costs one rendering, not K, and message edges are exact.

Not covered: templates that change a content beyond trimming it; the content is then kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
from transformers import PreTrainedTokenizerBase

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message, Text, Tool, ToolResult
from postgrad.models.calls import action_text, tool_object, tools_text

_MARK = re.compile("\ue000\\d+\ue001")
_PROBE_TOOL = Tool("probe_tool", "A probe.", {"type": "object", "properties": {}})


@dataclass(frozen=True)
class Shape:
    """What a template does: its generation prompt, the text that ends a turn, and what it can take.

    `renders_tools` is true only for templates that teach the Hermes call form, the one that `calls` writes and reads.
    """

    generation: str
    turn_end: str
    renders_tools: bool
    takes_system: bool
    takes_tool_role: bool


@dataclass(frozen=True)
class Part:
    """One turn: `message` is the index of its message, -1 for a turn that was added; texts before and after it."""

    message: int
    role: str
    content: str
    before: str = ""
    after: str = ""


class Template:
    """The chat template of a tokenizer.

    Raises:
        ConfigError: it cannot render a plain exchange of a user and an assistant.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        try:
            self.shape = self._probe()
        except jinja2.TemplateError as error:
            raise ConfigError(f"the chat template cannot render a plain exchange: {error}") from None

    def parts(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[Part]:
        """The turns of `messages`, each with what the template writes around it; joined they are the whole text.

        Raises:
            DataError: the template refuses this order of roles.
        """
        turns = self._turns(messages, tools)
        native = tools if self.shape.renders_tools else ()
        try:
            fixed = self._fixed_texts(turns, native)
        except jinja2.TemplateError as error:
            roles = " ".join(turn.role for turn in turns)
            raise DataError(f"the chat template refuses this conversation: {error}", got=roles) from None
        return [
            self._place(turn, fixed[i], fixed[i + 1], first=i == 0, last=i + 1 == len(turns))
            for i, turn in enumerate(turns)
        ]

    def _place(self, turn: Part, before: str, after: str, *, first: bool, last: bool) -> Part:
        """Split the texts around a turn: the end of a turn belongs to it, the rest opens the next one."""
        end = self.shape.turn_end
        if not first and before.startswith(end):
            before = before[len(end) :]
        if turn.role == "assistant":
            before = before.removesuffix(self.shape.generation) if before.endswith(self.shape.generation) else ""
        closing = end if after.startswith(end) else after if last else ""
        return Part(turn.message, turn.role, turn.content, before, closing)

    def _fixed_texts(self, turns: Sequence[Part], tools: Sequence[Tool]) -> list[str]:
        marks = [{"role": turn.role, "content": f"\ue000{i}\ue001"} for i, turn in enumerate(turns)]
        fixed = _MARK.split(self._render(marks, tools=tools))
        if len(fixed) != len(turns) + 1:
            raise DataError("the chat template leaves out or repeats a message", got=" ".join(t.role for t in turns))
        return fixed

    def _turns(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[Part]:
        turns = [turn for i, message in enumerate(messages) for turn in self._message_turns(i, message)]
        if tools and not self.shape.renders_tools:
            text = tools_text(tools)
            if turns and turns[0].role == "system":
                turns[0] = Part(turns[0].message, "system", f"{turns[0].content}\n\n{text}")
            else:
                turns.insert(0, Part(-1, "system", text))
        return turns if self.shape.takes_system else _fold_system(turns)

    def _message_turns(self, index: int, message: Message) -> list[Part]:
        if message.role == "assistant":
            return [Part(index, "assistant", action_text(message))]
        role = "system" if message.role == "developer" else message.role
        results = [self._result_turn(index, block) for block in message.blocks if isinstance(block, ToolResult)]
        text = "".join(block.text for block in message.blocks if isinstance(block, Text))
        if not results:
            return [Part(index, "user" if role == "tool" else role, text)]
        if text:  # a hint, or words of the user beside the results
            results.append(Part(index, "user", text.strip()))
        return results

    def _result_turn(self, index: int, result: ToolResult) -> Part:
        if self.shape.takes_tool_role:
            return Part(index, "tool", result.text)
        return Part(index, "user", f"<tool_response>\n{result.text}\n</tool_response>")

    def _render(self, turns: list[dict[str, str]], *, tools: Sequence[Tool] = (), generation: bool = False) -> str:
        text = self._tokenizer.apply_chat_template(
            turns,
            tools=[{"type": "function", "function": tool_object(tool)} for tool in tools] or None,
            add_generation_prompt=generation,
            tokenize=False,
        )
        return str(text)

    def _probe(self) -> Shape:
        user, assistant = {"role": "user", "content": "U"}, {"role": "assistant", "content": "\ue000"}
        asked, opened = self._render([user]), self._render([user], generation=True)
        if not opened.startswith(asked):
            raise ConfigError("the chat template's generation prompt changes the text before it")
        answered = self._render([user, assistant])
        return Shape(
            generation=opened[len(asked) :],
            turn_end=answered.rpartition("\ue000")[2],
            renders_tools="<tool_call>" in self._render([user], tools=[_PROBE_TOOL]),
            takes_system=self._takes({"role": "system", "content": "\ue000"}, user),
            takes_tool_role=self._takes(user, assistant, {"role": "tool", "content": "\ue001"}),
        )

    def _takes(self, *turns: dict[str, str]) -> bool:
        try:
            text = self._render(list(turns))
        except jinja2.TemplateError:
            return False
        return all(turn["content"] in text for turn in turns)


def _fold_system(turns: Sequence[Part]) -> list[Part]:
    """Put every system turn's text before the text of the next user turn."""
    folded: list[Part] = []
    waiting = ""
    for turn in turns:
        if turn.role == "system":
            waiting += turn.content + "\n\n"
        elif turn.role == "user" and waiting:
            folded.append(Part(turn.message, "user", waiting + turn.content))
            waiting = ""
        else:
            folded.append(turn)
    if waiting:
        folded.append(Part(-1, "user", waiting.strip()))
    return folded
