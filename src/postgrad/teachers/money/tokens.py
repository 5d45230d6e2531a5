"""How many tokens is a request? Estimated before a call, learnt from the bills after it.

Nobody but the provider knows its tokenizer, so a count made beforehand is an estimate with a stated error:

- four bytes a token of the JSON that is sent to the teacher's API, all of it (+-30 %: what is around a message stands
  for what a chat template puts there), or a tokenizer file that the user names (+-5 %: templates differ);
- where this teacher has been billed before, times what it billed divided by what was estimated (+-2 %).

The upper bound that a budget is kept with is another thing. No byte-level tokenizer makes more tokens than bytes, so a
request costs at most its bytes and a template's overhead; where the provider has already counted a beginning of the
request, only the bytes after it. A provider that bills more than that teaches the meter to expect it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import ConfigError, MissingDependency
from postgrad.core.message import Media, Message, Opaque, Text, Tool, ToolCall, ToolResult
from postgrad.teachers.once import PerObject
from postgrad.teachers.providers.wire import CHAT, Form, Part, ToolNames, Written, json_bytes

BYTES_A_TOKEN = 4.0
TOKENS_A_MESSAGE = 4.0
TOKENS_A_CALL = 7.0  # around a name and its arguments in a completion: the 29 bytes of {"name": "", "arguments": ""}
_TEMPLATE = 128  # tokens that a chat template may add to a whole request
_TEMPLATE_OF_TOOLS = 640  # and to one that offers tools: providers put a page of rules before them
_TEMPLATE_A_MESSAGE = 16  # and to a message

Count = Callable[[str], float]


def by_tokenizer(path: Path) -> Count:
    """Count with a Hugging Face tokenizer file.

    Raises:
        ConfigError: the file is missing or no tokenizer.
        MissingDependency: the library that reads it is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingDependency("tokenizers", extra="train") from None
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError("no tokenizer here", got=str(path), expected="a tokenizer.json, or a folder with one")
    try:
        known = isinstance(json.loads(file.read_bytes())["model"], dict)
    except (ValueError, LookupError, TypeError):
        known = False
    if not known:
        raise ConfigError("this file is no tokenizer", got=str(file), expected="a tokenizer.json of the library")
    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: float(len(tokenizer.encode(text, add_special_tokens=False).ids))


@dataclass(frozen=True)
class Size:
    """Of a part of a request: estimated tokens, and bytes."""

    tokens: float = 0.0
    bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.tokens + other.tokens, self.bytes + other.bytes)


class Beginning(NamedTuple):
    """The first messages of a request: their size one by one, and how they are written one after the other."""

    size: Size = Size()
    written: Written = Written()


class Scale:
    """Weighs requests: `message` and `tools` give the `Size` of one of them, worked out once.

    By bytes the tokens of a request's parts add up to its body (`around` is what a body without any has). What a
    message weighs there depends on those before it, so a context is weighed by `after`.

    Args:
        count: of a tokenizer; without one, bytes are counted.
        form: how the teacher's API writes what is weighed.
    """

    def __init__(self, count: Count | None = None, *, form: Form = CHAT) -> None:
        self._count = count or (lambda text: _bytes(text) / BYTES_A_TOKEN)
        self._form = form
        self.counts = count is not None
        self.basis = f"estimate ({'a tokenizer, +-5 %' if count else 'four bytes a token, +-30 %'})"
        self.message = PerObject[Message, Size](self._message)
        self._parts = PerObject[Message, tuple[Part, ...]](form.alone)
        self.tools = PerObject[Sequence[Tool], Size](self._tools, equal=True)

    def messages(self, messages: Sequence[Message]) -> Size:
        """Several messages, each alone."""
        sizes = [self.message(message) for message in messages]
        return Size(sum(size.tokens for size in sizes), sum(size.bytes for size in sizes))

    def around(self, body: Mapping[str, object]) -> Size:
        """What `body`, which holds no messages and no tools, adds to every request; a tokenizer counts it not."""
        return Size() if self.counts else Size(json_bytes(body) / BYTES_A_TOKEN)

    def after(self, before: Beginning, message: Message) -> Beginning:
        """One message more."""
        size, written = before.size + self.message(message), before.written
        if not self.counts:
            for part in self._parts(message):
                written = self._form.after(written, part)
        return Beginning(size, written)

    def request(self, messages: Beginning, tools: Sequence[Tool], hint: str | None = None) -> Size:
        """A request that consists of `messages`, with a hint put after the last of them."""
        hinted = _bytes(hint) if hint else 0
        if self.counts:
            tokens = messages.size.tokens + (self._count(hint) if hint else 0.0)
        else:
            tokens = self._form.whole(messages.written, hint) / BYTES_A_TOKEN
        return Size(tokens, messages.size.bytes + hinted) + self.tools(tools)

    def marks(self, ask: Ask, shared: int | None) -> Size:
        """What a request says to a prompt cache; `shared` as for `Provider.body`. Not a word that is read."""
        return Size() if self.counts or shared is None else Size(self._form.marks(ask, shared) / BYTES_A_TOKEN)

    def ask(self, ask: Ask) -> Size:
        """A whole request."""
        return self.request(reduce(self.after, ask.messages, Beginning()), ask.tools, ask.hint)

    def answer(self, message: Message) -> float:
        """Estimated tokens of an action as a completion."""
        text, calls = _sent_text(message), TOKENS_A_CALL * len(message.tool_calls)
        return max(1.0, calls + self._count(text))

    def _message(self, message: Message) -> Size:
        sent = _sent_text(message)
        if self.counts:
            tokens = self._count(sent) + TOKENS_A_MESSAGE
        else:
            tokens = sum(part.bytes for part in self._parts(message)) / BYTES_A_TOKEN
        return Size(tokens, _bytes(sent) + _TEMPLATE_A_MESSAGE)

    def _tools(self, tools: Sequence[Tool]) -> Size:
        if not tools:
            return Size()
        sent = self._form.tools(tools, ToolNames([]))
        text = _json(sent)
        tokens = self._count(text) if self.counts else (len(',"tools":') + json_bytes(sent)) / BYTES_A_TOKEN
        return Size(tokens, _bytes(text) + _TEMPLATE_OF_TOOLS)


def _json(value: object) -> str:
    """As a template may show it: without escapes, with blanks."""
    return json.dumps(value, ensure_ascii=False)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _sent_text(message: Message) -> str:
    """What of a message leaves: words, calls and results; no reasoning."""
    parts = []
    for block in message.blocks:
        if isinstance(block, Text | ToolResult):
            parts.append(block.text)
        elif isinstance(block, ToolCall):
            parts.append(f"{block.name}{block.arguments_raw}")
        elif isinstance(block, Media | Opaque):
            parts.append("[not shown]")
    return "".join(parts)


def most_tokens(size: Size) -> float:
    """Upper bound of the prompt tokens of a request that was never billed."""
    return float(size.bytes + _TEMPLATE)


@dataclass
class Meter:
    """One teacher's counts: what a request may cost at most, by what its provider has billed so far."""

    scale: Scale
    billed: float = 0.0
    estimated: float = 0.0
    calls: int = 0
    _ratio: float = 0.0
    _longest: int = 0
    _last: dict[str, tuple[Ask, int]] = field(default_factory=dict)

    def most(self, ask: Ask, sampling: Sampling, *, lane: str) -> tuple[float, int]:
        """Upper bound of prompt tokens and of completion tokens. `lane` names the trace that the request is of."""
        whole = self.scale.ask(ask)
        seen, counted = self._beginning(ask, lane)
        bound = most_tokens(Size(0.0, whole.bytes - seen.bytes)) + counted
        return max(bound, whole.tokens * self._ratio), max(sampling.max_new_tokens, self._longest)

    def learn(self, ask: Ask, *, lane: str, read: int, written: int) -> None:
        """Note what a call was billed."""
        estimate = self.scale.ask(ask).tokens
        self.calls += 1
        self.billed += read
        self.estimated += estimate
        self._ratio = max(self._ratio, read / max(1.0, estimate))
        self._longest = max(self._longest, written)
        self._last[lane] = (ask, read)

    def _beginning(self, ask: Ask, lane: str) -> tuple[Size, int]:
        """What of `ask` the provider has counted already, in the same trace's last request."""
        known = self._last.get(lane)
        if known is None:
            return Size(), 0
        earlier, counted = known
        same = earlier.tools == ask.tools and ask.messages[: len(earlier.messages)] == earlier.messages
        return (self.scale.messages(earlier.messages) + self.scale.tools(ask.tools), counted) if same else (Size(), 0)
