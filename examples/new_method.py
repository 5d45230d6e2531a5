"""A method of your own: a frozen class that says which tokens feed which channel. The loop stays as it is.

This one imitates an environment's gold answers and, at half the weight, prefers them to a refusal. It needs no record
file: the environment is the data.

Run: python examples/new_method.py
Use: PYTHONPATH=examples postgrad train --method.name new_method:GoldFirst --model tiny-random
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from postgrad.core.annotation import CrossEntropyItem, PreferenceItem, Unit
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.envs.environment import load_environment, training_tasks
from postgrad.methods.batches import Batches
from postgrad.methods.layout import action_span
from postgrad.methods.supervised import RecordSource
from postgrad.run.config import Config
from postgrad.run.rundir import RunDir

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.models.render import Renderer

REFUSAL = Message.of("assistant", "Sorry, I cannot help with that.")


class GoldFirst(Config):
    """Gold answers, imitated and preferred."""

    environment: str = "function_calling"
    """where tasks and gold answers come from"""
    tasks: int = 64
    """tasks to draw from"""
    batch_size: int = 8
    """tasks per optimiser step"""

    def weights(self) -> Mapping[str, float]:
        """Channel name to weight."""
        return {"cross_entropy": 1.0, "preference": 0.5}

    def source(self, policy: Policy, *, seed: int) -> RecordSource:
        """Units by step: shuffled epochs over the tasks, a function of seed and step alone."""
        tasks = training_tasks(load_environment(self.environment), "train", self.tasks)
        groups = [[_unit(policy.renderer, task)] for task in tasks if task.reference]
        return RecordSource([Batches(groups, self.batch_size, seed)])


def _unit(renderer: Renderer, task: Task) -> Unit:
    """One tree a task: prompt, then gold and refusal as two branches. Both channels read the gold branch."""
    assert task.reference is not None
    prompt = renderer.prompt(task.messages, task.tools)
    gold, refusal = renderer.action(task.reference), renderer.action(REFUSAL)
    good, bad = action_span(0, prompt, gold), action_span(1, prompt, refusal)
    return Unit(((*prompt, *gold), (*prompt, *refusal)), (CrossEntropyItem(good), PreferenceItem(good, bad)))


if __name__ == "__main__":
    from postgrad.models.adapter import AdapterConfig
    from postgrad.models.policy import load_policy
    from postgrad.train.config import LoopConfig, OptimConfig, TrainConfig
    from postgrad.train.loop import train

    method = GoldFirst(tasks=4, batch_size=2)
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=8))
    config = TrainConfig(
        optim=OptimConfig(lr=3e-3),
        loop=LoopConfig(steps=3, token_budget=2048),
        channels={name: {"weight": weight} for name, weight in method.weights().items()},
    )
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir(Path(folder))
        train(policy, method.source(policy, seed=0), config, run)
        for row in run.metrics():
            losses = ", ".join(f"{name} {row[f'loss/{name}']:.4f}" for name in method.weights())
            print(f"step {row['step']}: {losses}")
