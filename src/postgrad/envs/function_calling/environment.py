"""`FunctionCalling`: the generated function-calling tasks as an environment."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.envs.function_calling.generator import SPLITS, split_functions, stream
from postgrad.envs.function_calling.grader import VERSION, grade
from postgrad.envs.function_calling.results import respond

PER_FUNCTION = 4
PAIRS = "train_pairs"
IRRELEVANT = "heldout_irrelevant"
"""The held-out tasks that no offered tool fits: a benchmark of its own, since silence alone scores on it."""


@dataclass(frozen=True)
class FunctionCalling:
    """Requests in English for one call of a JSON-schema tool, or none; see `generator` for how they are made.

    Splits: ``train``, ``validation`` (for choosing settings), ``heldout`` and ``heldout_irrelevant``; no function is
    in two of them. ``train`` mixes tasks that no offered tool fits among the others; ``validation`` and ``heldout``
    hold only tasks that want a call, and ``heldout_irrelevant`` only those that want none. ``train_pairs`` are the
    tasks of ``train`` two by two under one list of tools: a forest computes the tools once for both.
    """

    name: str = "function_calling"
    version: str = VERSION
    trainable: bool = True
    splits: tuple[str, ...] = (*SPLITS, PAIRS, IRRELEVANT)
    training_splits: tuple[str, ...] = ("train", PAIRS)

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """The first `n` tasks of the split's stream (default: four per function).

        The stream goes round over all functions, so a small `n` covers many of them, and `tasks(split, n)` are
        among `tasks(split, n + 1)`. A task's id follows from its content alone.

        Raises:
            ConfigError: no such split, or it has fewer tasks than `n`.
        """
        if split not in self.splits:
            known = f"one of {', '.join(self.splits)}"
            raise ConfigError("unknown split of function_calling", got=split, expected=known)
        base = {IRRELEVANT: "heldout", PAIRS: "train"}.get(split, split)
        wanted = (1 if split == IRRELEVANT else PER_FUNCTION) * len(split_functions(base)) if n is None else n
        every = stream(base, seed)
        whole = base == "train"
        fitting = (task for task in every if whole or bool(task.expected) == (split == base))
        drawn = _pairs(every) if split == PAIRS else fitting
        tasks = list(itertools.islice(drawn, wanted))
        if len(tasks) < wanted:
            raise ConfigError(f"split {split} has too few different tasks", got=wanted, expected=f"<= {len(tasks)}")
        return tasks

    def grade(self, task: Task, message: Message) -> Grade:
        """Compare the calls of `message` to the expected ones; see `grader` for the kinds of error."""
        return grade(task, message)

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """The tools' results for the calls of `message`; errors for calls that cannot be carried out."""
        return respond(task.tools, message)


def _pairs(tasks: Iterable[Task]) -> Iterator[Task]:
    """Two tasks that offer the same tools, one after the other, as soon as there are two."""
    waiting: dict[tuple[str, ...], Task] = {}
    for task in tasks:
        tools = tuple(tool.name for tool in task.tools)
        other = waiting.pop(tools, None)
        if other is None:
            waiting[tools] = task
        else:
            yield other
            yield task
