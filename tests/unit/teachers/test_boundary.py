"""Redaction at the boundary: nothing found ever leaves, nothing is redacted twice for nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from postgrad.core.actor import Ask
from postgrad.core.message import Message, Text, Tool
from postgrad.teachers.boundary import AskRedactor


class Words:
    """Knows as secret every word after "password"; counts the values that it was given."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()
        self.given = 0

    @property
    def finds(self) -> int:
        return len(self.secrets)

    def redact(self, value: Any) -> Any:
        self.given += 1
        words = str(msgspec.to_builtins(value)).replace("'", " ").split()
        self.secrets |= {word for before, word in pairwise(words) if before == "password"}
        return self._walk(value)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return " ".join("<secret>" if word in self.secrets else word for word in value.split(" "))
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(
                value, **{name: self._walk(getattr(value, name)) for name in value.__struct_fields__}
            )
        return type(value)(map(self._walk, value)) if isinstance(value, tuple) else value


def texts(ask: Ask) -> list[str]:
    return [message.text for message in ask.messages]


def test_a_secret_found_anywhere_is_taken_out_of_everything() -> None:
    """It is given away in the second message, in a tool or in the hint, and stands bare in the first."""
    first, second = Message.of("user", "use hunter2"), Message.of("user", "password hunter2")
    ask = AskRedactor(Words())
    assert texts(ask(Ask((first,)))) == ["use hunter2"]  # nobody could know
    assert texts(ask(Ask((first, second)))) == ["use <secret>", "password <secret>"]
    assert texts(ask(Ask((first,)))) == ["use <secret>"]
    tool = Tool("f", "password hunter2")
    told = AskRedactor(Words())(Ask((first,), (tool,), hint="password swordfish"))
    assert (texts(told), told.tools[0].description, told.hint) == (
        ["use <secret>"],
        "password <secret>",
        "password <secret>",
    )


def test_a_message_is_redacted_once_as_long_as_nothing_new_is_found() -> None:
    """100 messages; every further context gives the redactor its new message and what is not a message."""
    redactor = Words()
    ask, messages = AskRedactor(redactor), [Message("user", (Text(f"word {n}"),)) for n in range(100)]
    ask(Ask(tuple(messages[:99])))
    before = redactor.given
    ask(Ask(tuple(messages)))
    assert redactor.given - before == 2


def test_an_ask_without_secrets_is_the_same_ask() -> None:
    ask = Ask((Message.of("user", "hi"),))
    assert AskRedactor(Words())(ask) is ask
