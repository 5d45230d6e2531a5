"""`FunctionCalling`: the generated function-calling tasks as an environment."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.envs.function_calling.generator import SPLITS, shared_stream, split_functions, stream
from postgrad.envs.function_calling.grader import VERSION, grade
from postgrad.envs.function_calling.results import respond

PER_FUNCTION = 4
SHARED = "train_shared"
IRRELEVANT = "heldout_irrelevant"
"""The held-out tasks that no offered tool fits: a benchmark of its own, since silence alone scores on it."""


@dataclass(frozen=True)
class FunctionCalling:
    """Requests in English for one call of a JSON-schema tool, or none; see `generator` for how they are made.

    Splits: ``train``, ``validation`` (for choosing settings), ``heldout`` and ``heldout_irrelevant``; no function is
    in two of them. ``train`` mixes tasks that no offered tool fits among the others; ``validation`` and ``heldout``
    hold only tasks that want a call, and ``heldout_irrelevant`` only those that want none. ``train_shared`` asks for
    the functions of ``train`` three by three under one list of tools, which a forest computes once.
    """

    name: str = "function_calling"
    version: str = VERSION
    trainable: bool = True
    splits: tuple[str, ...] = (*SPLITS, SHARED, IRRELEVANT)
    training_splits: tuple[str, ...] = ("train", SHARED)

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
        base = {IRRELEVANT: "heldout", SHARED: "train"}.get(split, split)
        wanted = (1 if split == IRRELEVANT else PER_FUNCTION) * len(split_functions(base)) if n is None else n
        every = shared_stream(base, seed) if split == SHARED else stream(base, seed)
        whole = base == "train"
        fitting = (task for task in every if whole or bool(task.expected) == (split == base))
        tasks = list(itertools.islice(fitting, wanted))
        if len(tasks) < wanted:
            raise ConfigError(f"split {split} has too few different tasks", got=wanted, expected=f"<= {len(tasks)}")
        return tasks

    def grade(self, task: Task, message: Message) -> Grade:
        """Compare the calls of `message` to the expected ones; see `grader` for the kinds of error."""
        return grade(task, message)

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """The tools' results for the calls of `message`; errors for calls that cannot be carried out."""
        return respond(task.tools, message)
