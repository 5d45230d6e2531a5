"""`Plain`: everyday requests without tools, for rehearsal while a model learns something else.

A model that is trained on tool calls alone forgets how to talk. Its own answers to such requests, recorded before the
training and mixed into it, keep that. Three of four requests come with a system message that asks for brevity, so that
most answers end by themselves within a few dozen tokens; an answer that is cut off teaches nothing. The verifier asks
for words and no call; it does not judge what the words say.
The requests are ours: everyday ones, and questions on common facts. None is a question of the retention guard.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from postgrad.core.canonical import content_id
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task

SPLIT = "train"
SYSTEM = Message.of("system", "You are a friendly assistant. Keep it short.")


@dataclass(frozen=True)
class Plain:
    """Everyday requests; split `train` only."""

    name: str = "plain"
    version: str = "plain/2"
    trainable: bool = True
    splits: tuple[str, ...] = (SPLIT,)
    training_splits: tuple[str, ...] = (SPLIT,)

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """The first `n` requests, all by default; `seed` changes nothing.

        Raises:
            ConfigError: no such split, or fewer requests than `n`.
        """
        if split != SPLIT:
            raise ConfigError("unknown split of plain", got=split, expected=SPLIT)
        requests = _requests()
        if n is not None and n > len(requests):
            raise ConfigError("plain has too few requests", got=n, expected=f"<= {len(requests)}")
        return [_task(text, alone=place % 4 == 0) for place, text in enumerate(requests[:n])]

    def grade(self, task: Task, message: Message) -> Grade:
        """Words and no call."""
        if message.tool_calls:
            return Grade(0.0, "unwanted_call", "there are no tools, but one was called")
        return Grade(1.0) if message.text.strip() else Grade(0.0, "no_answer", "neither words nor a call")

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """Every call is an error."""
        return tuple(
            ToolResult(call.id, "Error: there are no tools here.", is_error=True, status="error")
            for call in message.tool_calls
        )


@cache
def _requests() -> tuple[str, ...]:
    return tuple((files("postgrad.envs") / "plain_requests.txt").read_text(encoding="utf-8").splitlines())


def _task(text: str, *, alone: bool) -> Task:
    asked = Message.of("user", text)
    return Task(f"plain/{content_id(text)}", (asked,) if alone else (SYSTEM, asked), group=text)
