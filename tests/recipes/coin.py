"""An environment that any model can win now and then: the first character of the answer decides."""

from __future__ import annotations

from dataclasses import dataclass

from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task


@dataclass(frozen=True)
class Coin:
    """An answer whose first character has an even code is right."""

    name: str = "coin"
    version: str = "1"
    trainable: bool = True
    splits: tuple[str, ...] = ("train",)
    training_splits: tuple[str, ...] = ("train",)

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        heads = Message.of("assistant", "b")
        asks = [Message.of("user", f"Toss {i}") for i in range(n or 8)]
        return [Task(f"coin-{i}", (ask,), group=str(i), reference=heads) for i, ask in enumerate(asks)]

    def grade(self, task: Task, message: Message) -> Grade:
        if message.text and ord(message.text[0]) % 2 == 0:
            return Grade(1.0)
        return Grade(0.0, "wrong_value", "the first character is odd")

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        return ()
