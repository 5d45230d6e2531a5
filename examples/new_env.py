"""An environment of your own: tasks, a grader, and tools that answer. One class.

Run: python examples/new_env.py
Use: PYTHONPATH=examples postgrad rollout --environment new_env:Sums --model smollm2-135m
"""

from __future__ import annotations

import json
import random

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Tool, ToolCall, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.envs.environment import load_environment, training_tasks
from postgrad.envs.gold import GoldActor

ADD = Tool(
    "add",
    "Add two integers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


class Sums:
    """Add two numbers by a call. Train and held-out sums differ in their first number, so none is on both sides."""

    name = "sums"
    trainable = True
    splits = ("train", "heldout")
    training_splits = ("train",)

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """`n` sums, 20 by default; the same for the same seed."""
        if split not in self.splits:
            raise ConfigError("sums has no such split", got=split, expected=" or ".join(self.splits))
        first = [a for a in range(100) if (a % 5 == 0) == (split == "heldout")]
        pairs = [(a, b) for a in first for b in range(100)]
        return [_task(a, b) for a, b in random.Random(f"{split} {seed}").sample(pairs, n or 20)]

    def grade(self, task: Task, message: Message) -> Grade:
        """1 for exactly the expected call, in either order of the numbers."""
        calls = message.tool_calls
        if not calls:
            return Grade(0.0, "no_call", "the answer calls nothing")
        if len(calls) > 1 or calls[0].name != "add" or calls[0].arguments is None:
            return Grade(0.0, "malformed_call", "expected one call of add with an object of arguments")
        wanted = task.expected[0]["add"]
        if sorted(map(repr, calls[0].arguments.values())) != sorted(repr(v[0]) for v in wanted.values()):
            return Grade(0.0, "wrong_value", f"expected {wanted}")
        return Grade(1.0)

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """The sum, or an error that says what is wrong."""
        return tuple(_result(call) for call in message.tool_calls)


def _task(a: int, b: int) -> Task:
    arguments = {"a": a, "b": b}
    call = ToolCall("call_0", "add", json.dumps(arguments), arguments)
    return Task(
        id=f"sums-{a}-{b}",
        messages=(Message.of("user", f"What is {a} plus {b}?"),),
        group=f"first={a}",
        tools=(ADD,),
        expected=({"add": {"a": [a], "b": [b]}},),
        reference=Message("assistant", (call,)),
    )


def _result(call: ToolCall) -> ToolResult:
    numbers = list((call.arguments or {}).values())
    if call.name != "add" or len(numbers) != 2 or not all(type(number) is int for number in numbers):
        return ToolResult(call.id, "error: add takes two integers", is_error=True, status="error")
    return ToolResult(call.id, str(sum(numbers)), is_error=False)


if __name__ == "__main__":
    environment = load_environment("new_env:Sums")
    tasks = training_tasks(environment, "train", 3)
    asks = [Ask(task.messages, task.tools, task_id=task.id) for task in tasks]
    for task, answer in zip(tasks, GoldActor(tasks).answer(asks, Sampling()), strict=True):
        assert answer.message is not None
        grade = environment.grade(task, answer.message)
        [result] = environment.respond(task, answer.message)
        print(f"{task.messages[0].text} -> {result.text}, score {grade.score}")
    wrong = Message.of("assistant", "I think it is 7.")
    print("without a call:", environment.grade(tasks[0], wrong).error)
