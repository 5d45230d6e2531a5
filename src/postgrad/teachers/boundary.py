"""`AskRedactor`: an ask as it may leave, without redacting a trace's messages again at each of its steps.

A redactor knows more with every text that it has seen, and what it knows is taken out everywhere. So a redacted message
is kept only as long as the redactor has found nothing new since.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from postgrad.core.actor import Ask
from postgrad.core.message import Message
from postgrad.teachers.once import PerObject

ValueT = TypeVar("ValueT")


class Redacting(Protocol):
    """What takes secrets out of plain data and structs; `finds` grows with every new secret that it has seen."""

    @property
    def finds(self) -> int:
        """How many different secrets it knows."""
        ...

    def redact(self, value: ValueT) -> ValueT:
        """`value` without secrets."""
        ...


class AskRedactor:
    """Call it with an ask to get the ask as it may leave the machine."""

    def __init__(self, redactor: Redacting) -> None:
        self._redactor = redactor
        self._seen = PerObject[Message, Message](redactor.redact)
        self._clean = self._seen
        self._finds = redactor.finds

    def __call__(self, ask: Ask) -> Ask:
        """`ask` without any secret found in it or in what came before."""
        for message in ask.messages:
            self._seen(message)
        rest = self._redactor.redact(msgspec.structs.replace(ask, messages=()))
        if self._redactor.finds != self._finds:
            self._finds = self._redactor.finds
            self._clean = PerObject[Message, Message](self._redactor.redact)
        if not self._finds:
            return ask
        return msgspec.structs.replace(rest, messages=tuple(map(self._clean, ask.messages)))
