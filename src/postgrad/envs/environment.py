"""`Environment`: tasks with a grader and tools that answer; and the table of environments.

An environment names the splits that may be trained on. A benchmark names none, and `training_tasks` is the one door
through which training gets tasks, so a benchmark or a held-out split cannot slip in.
"""

from __future__ import annotations

from typing import Protocol

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.run.plugins import resolve

ENVIRONMENTS = {
    "function_calling": "postgrad.envs.function_calling:FunctionCalling",
    "bfcl": "postgrad.envs.bfcl:Bfcl",
    "plain": "postgrad.envs.plain:Plain",
    "retention": "postgrad.evaluate.retention:Retention",
}


class Environment(Protocol):
    """Tasks, a verifier and tool results. Deterministic: same arguments, same answers."""

    @property
    def name(self) -> str:
        """Short name, as in `ENVIRONMENTS`."""
        ...

    @property
    def version(self) -> str:
        """Version of tasks and grader: scores of different versions are not compared."""
        ...

    @property
    def trainable(self) -> bool:
        """Whether any split may be trained on."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits."""
        ...

    @property
    def training_splits(self) -> tuple[str, ...]:
        """The splits that may be trained on."""
        ...

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """`n` tasks of a split, or a default number; ids are unique and stable.

        Raises:
            ConfigError: no such split, or fewer tasks than `n`.
        """
        ...

    def grade(self, task: Task, message: Message) -> Grade:
        """Verify an answer."""
        ...

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """Results of the calls in `message`, one per call."""
        ...


def load_environment(name: str) -> Environment:
    """The environment of that name, or of ``module:Class``.

    Raises:
        ConfigError: unknown name; the message lists the known ones.
    """
    environment: Environment = resolve("environment", name, ENVIRONMENTS)()
    return environment


def training_tasks(environment: Environment, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
    """Tasks that may be trained on.

    Raises:
        ConfigError: the split is for evaluation only.
    """
    if split not in environment.training_splits:
        raise ConfigError(
            f"{environment.name} may not be trained on" + ("" if not environment.trainable else " in this split"),
            got=f"split {split}",
            expected=" or ".join(environment.training_splits) or "evaluation only",
            do="train on another environment" if not environment.trainable else "use a training split",
        )
    return environment.tasks(split, n, seed)
