"""`Renderer`: messages to tokens and back, one object for training, evaluation and serving.

Each turn is cut where the model takes over: the generation prompt, the action with its stop token, and what the
template writes after it. Every piece is tokenised by itself, so that

    prompt(messages) + action(a)  ==  a prefix of spans(messages + [a]).tokens

holds by construction, and a model is trained on exactly the boundary at which it samples.

Calls are written and read in the form that the template itself gives them (`call_forms`). A template that shows tools
is used as it is; otherwise they go into the system message as text, and calls are in the Hermes form (`calls`). A role
that the template refuses is folded: system into the next user turn, tool results into a user
turn with ``<tool_response>`` tags (`conversation`).

Where the template has a place for reasoning, an action's reasoning is written there and read back. Earlier turns look
as the template writes them: most drop their reasoning, so the prompt of the next step is no continuation of this one
and the two branch. Several reasonings of one message become one, before its text.

Not covered: media are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transformers import PreTrainedTokenizerBase

from postgrad.core.canonical import valid_text
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message, Text, Tool
from postgrad.models.call_forms import CallForm
from postgrad.models.conversation import Part, Template
from postgrad.models.grammar import tool_grammar
from postgrad.models.templates import default_template

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar


@dataclass(frozen=True)
class Rendered:
    """Tokens of a conversation; one ``(start, stop)`` per message; per message those of its action.

    A message's span holds its turn as the template writes it; the first one holds what the template puts before it (a
    default system turn). `actions` holds, for an assistant message, the tokens that the model produces, stop token
    included, and None for others.
    """

    tokens: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    actions: tuple[tuple[int, int] | None, ...] = field(default=())


class Renderer:
    """Renders for one tokenizer and its template.

    Attributes:
        stop_ids: tokens that end an action: the end tokens of tokenizer and model and the template's end of turn.

    Raises:
        ConfigError: the template cannot render a plain exchange, or nothing can end a turn.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, model_stop_ids: Sequence[int] = ()) -> None:
        if not tokenizer.chat_template:
            tokenizer.chat_template = default_template(tokenizer)
        self.tokenizer = tokenizer
        self._template = Template(tokenizer)
        self._generation = self._encode(self._template.shape.generation)
        self._bos = self._missing_bos()
        turn_end = self._encode(self._template.shape.turn_end)
        eos = [int(tokenizer.eos_token_id)] if tokenizer.eos_token_id is not None else []
        self._marked = self._is_mark(turn_end, model_stop_ids)
        stop, self._tail = (turn_end[:1], turn_end[1:]) if self._marked else (eos, turn_end)
        if not stop:
            raise ConfigError("no token can end a turn", got=self._template.shape.turn_end, expected="a special token")
        self._stop, self._call_stop = stop, self._encode(self.calls.end)[:1] or stop
        self.stop_ids = frozenset([*stop, *self._call_stop, *eos, *(int(i) for i in model_stop_ids)])

    @property
    def calls(self) -> CallForm:
        """How calls are written and read."""
        return self._template.shape.calls

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, hint: str | None = None) -> list[int]:
        """Tokens of `messages` and the generation prompt; `hint` is appended to the last message.

        Raises:
            DataError: the template refuses this order of roles.
        """
        if hint is not None:
            *earlier, last = messages
            messages = [*earlier, Message(last.role, (*last.blocks, Text(f"\n\n{hint}")), last.records)]
        return [*self.spans(messages, tools).tokens, *self._generation]

    def action(self, message: Message) -> list[int]:
        """Tokens that the model has to produce for `message`, the stop token included."""
        return [*self._encode(self._template.written(message)), *self._stop_of(message)]

    def grammar(self, tools: Sequence[Tool], *, vocabulary: int | None, require_call: bool = False) -> CompiledGrammar:
        """The grammar "calls of `tools`, or text" in the model's own form of calls (`grammar.tool_grammar`)."""
        return tool_grammar(
            tools,
            self.tokenizer,
            vocabulary=vocabulary,
            stop_ids=sorted(self.stop_ids),
            require_call=require_call,
            form=self.calls,
        )

    def parse(self, text: str, *, call_prefix: str = "call", tools: Sequence[Tool] = ()) -> Message:
        """The assistant message that `text` (an action decoded, without its stop token) stands for; never fails.

        `tools` are those that were offered: in some forms only their schemas tell the text `3` from the number.
        """
        return self._template.read(text, call_prefix=call_prefix, tools=tools)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of an action, without the stop token; special tokens inside it are kept visible."""
        kept = list(tokens[:-1]) if tokens and tokens[-1] in self.stop_ids else list(tokens)
        return str(self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def spans(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Rendered:
        """Tokens of the whole conversation with each message's place in it.

        Raises:
            DataError: there is no message, or the template refuses this order of roles.
        """
        if not messages:
            raise DataError("nothing to render", got="no message", expected="at least one")
        # The answer that is to be learnt stands where a prompt ends, whatever the template would make of it later.
        last = messages[-1] if messages[-1].role == "assistant" else None
        earlier = messages if last is None else messages[:-1]
        tokens = list(self._bos)
        places: dict[int, tuple[int, int]] = {}
        actions: dict[int, tuple[int, int]] = {}
        for part in self._template.parts(earlier, tools):
            start = places.get(part.message, (len(tokens), 0))[0]
            if part.role == "assistant":
                actions[part.message] = self._extend_earlier(tokens, part)
            else:
                tokens += self._encode(part.before + part.content + part.after)
            places[part.message] = (start, len(tokens))
        if last is not None:
            start, action = len(tokens), self.action(last)
            begin = start + len(self._generation)
            tokens += [*self._generation, *action, *self._tail]
            places[len(earlier)], actions[len(earlier)] = (start, len(tokens)), (begin, begin + len(action))
        spans = _filled(places, len(messages), len(tokens))
        return Rendered(tuple(tokens), spans, tuple(actions.get(i) for i in range(len(messages))))

    def _extend_earlier(self, tokens: list[int], part: Part) -> tuple[int, int]:
        """Append an answer of an earlier turn; where its action lies."""
        opening = self._template.shape.generation
        head, found, rest = part.before.rpartition(opening) if opening else ("", "yes", part.before)
        if not found:  # the template opens earlier answers otherwise than the one to come
            head, rest = part.before, ""
        tokens += [*self._encode(head), *(self._generation if found else ())]
        start = len(tokens)
        tokens += self._encode(rest + part.content)
        closing = self._encode(part.after)
        if self._marked:
            stop = len(tokens) + min(1, len(closing))
            tokens += closing
        else:  # no mark ends a turn: the end-of-text token has to
            stop = len(tokens) + 1
            tokens += [*self._stop, *closing]
        return start, stop

    def _stop_of(self, message: Message) -> list[int]:
        return self._call_stop if self._template.ending(message) else self._stop

    def _encode(self, text: str) -> list[int]:
        return [int(i) for i in self.tokenizer.encode(valid_text(text), add_special_tokens=False)] if text else []

    def _is_mark(self, turn_end: Sequence[int], model_stop_ids: Sequence[int]) -> bool:
        """Whether the end of a turn begins with a token that stands for nothing else; ordinary text never stops."""
        if not turn_end:
            return False
        text = str(self.tokenizer.convert_ids_to_tokens(turn_end[0]))
        # Tokenizers converted from GGUF hold their marks as ordinary tokens: those are known by their brackets.
        bracketed = len(text) > 2 and text.startswith("<") and text.endswith(">")
        return bracketed or turn_end[0] in {*self.tokenizer.all_special_ids, *model_stop_ids}

    def _missing_bos(self) -> list[int]:
        """The begin-of-text token, if the tokenizer would add it and the template does not write it."""
        bos = self.tokenizer.bos_token_id
        if bos is None or self.tokenizer.encode("a")[:1] != [bos]:
            return []
        first = self._template.parts([Message.of("user", "a")])[0].before
        return [] if first.startswith(str(self.tokenizer.bos_token)) else [int(bos)]


def _filled(places: dict[int, tuple[int, int]], messages: int, end: int) -> tuple[tuple[int, int], ...]:
    """A place for every message; one that was folded into another has none of its own, and an empty one before that."""
    filled: list[tuple[int, int]] = []
    for index in reversed(range(messages)):
        following = filled[-1][0] if filled else end
        filled.append(places.get(index, (following, following)))
    return tuple(reversed(filled))
