"""`ScriptedActor`: answers from a mapping or a function. The shipped fake for tests and for recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.message import Message

Script = Callable[[Ask], Message | None]


class ScriptedActor:
    """Answers from `script`: a function of the ask, or a mapping from the last message's text to an answer.

    Asks that the script does not know get an abstention. `asked` keeps every ask, in order.
    """

    local = True

    def __init__(self, name: str, script: Mapping[str, Message] | Script, *, kind: str = "script") -> None:
        self.name = name
        self.kind = kind
        self.asked: list[Ask] = []
        self._script = script if callable(script) else _from_mapping(script)

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One scripted answer per ask."""
        self.asked.extend(asks)
        return [Answer(message, self.name) for message in map(self._script, asks)]


def _from_mapping(answers: Mapping[str, Message]) -> Script:
    return lambda ask: answers.get(ask.messages[-1].text) if ask.messages else None
