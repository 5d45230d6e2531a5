"""An actor and a grader that need no model: the answer to task i is decided by its text and the sampling."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import OutsideFailure
from postgrad.core.message import Message
from postgrad.core.task import Grade, Task


def tasks(n: int) -> list[Task]:
    """Tasks t0 .. t(n-1); the right answer of task i is "even" or "odd"."""
    words = ("even", "odd")
    questions = [(Message.of("user", f"Is {i} even or odd?"),) for i in range(n)]
    return [Task(f"t{i}", asked, f"t{i}", expected=({"answer": words[i % 2]},)) for i, asked in enumerate(questions)]


Spoil = Callable[[Ask, int], Answer | None]


class Echo:
    """Answers "even" or "odd" by a hash of prompt, seed and place in the batch, and counts what it was asked.

    That the place counts makes a different batching visible. `spoil` may fail an ask or change its answer.
    """

    kind = "scripted"

    def __init__(self, name: str = "echo", spoil: Spoil = lambda ask, call: None) -> None:
        self.name, self.spoil = name, spoil
        self.asked: list[str] = []
        self.calls = 0

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask."""
        self.calls += 1
        answers = []
        for place, ask in enumerate(asks):
            self.asked.append(str(ask.task_id))
            word = ("even", "odd")[zlib.crc32(f"{ask.messages[-1].text}{sampling.seed}{place}".encode()) % 2]
            answers.append(self.spoil(ask, self.calls) or Answer(Message.of("assistant", word), self.name))
        return answers


class Parity:
    """Grades by equality; `dead` names tasks on which the grader itself fails."""

    def __init__(self, dead: Sequence[str] = ()) -> None:
        self.dead = dead

    def grade(self, task: Task, message: Message) -> Grade:
        """1 when the text is the expected word."""
        if task.id in self.dead:
            raise OutsideFailure("the sandbox died")
        if message.text == task.expected[0]["answer"]:
            return Grade(1.0)
        return Grade(0.0, "wrong_answer", f"got {message.text}")
