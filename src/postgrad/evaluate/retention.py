"""`Retention`: does the model still know what it knew? Short questions on plain facts, for any chat model, offline.

Training a model on one skill can cost it others. This environment is the guard against that: questions of five kinds
(geography, science, history and arts, words, everyday) with accepted answers, written for this project. It is no
measure of how much a model knows: the facts are common and were chosen for measurability. The untrained
SmolLM2-135M-Instruct, greedy in fp32, is right on 132 of the 178 (74 %, standard error 3.3 points), so a loss can show.
There are no options to choose from: guessing scores 0.

An answer is right when an accepted one stands in it as whole words, whatever the case and punctuation. That an answer
may list many things is bounded by `answer_tokens`. It is a guard, so `trainable` is False. Settings are chosen on the
split "validation", 60 of the questions; the guard asks the others.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.core.task import Grade, Task

SYSTEM = "You are a helpful assistant. Answer in one short sentence."
SPLITS = ("facts", "validation")
VALIDATION = 60


class Retention:
    """The environment "retention": "facts" for guards, "validation" for choosing settings; no question is in both."""

    name = "retention"
    version = "2"
    trainable = False
    splits = SPLITS
    training_splits: tuple[str, ...] = ()
    answer_tokens = 48
    """No answer needs more; the runner's limit is lowered to it."""

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """All questions of the split, or `n` drawn by `seed` (a larger n of the same seed contains the smaller).

        Raises:
            ConfigError: unknown split, or more asked for than there are.
        """
        if split not in SPLITS:
            raise ConfigError("unknown split of retention", got=split, expected=" or ".join(SPLITS))
        every = [_task(kind, row) for kind, rows in _facts().items() for row in rows]
        random.Random(0).shuffle(every)
        every = every[:VALIDATION] if split == "validation" else every[VALIDATION:]
        if n is None:
            return every
        if n > len(every):
            raise ConfigError("retention has fewer questions", got=n, expected=f"at most {len(every)}")
        random.Random(seed).shuffle(every)
        return every[:n]

    def grade(self, task: Task, message: Message) -> Grade:
        """1 when an accepted answer is in the text as whole words, else 0."""
        answer = _words(message.text)
        if any(_words(accepted) in answer for accepted in task.expected[0]["accept"]):
            return Grade(1.0)
        return Grade(0.0, "wrong_answer", f"expected {' or '.join(task.expected[0]['accept'])}")

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """Nothing: the question offers no tools."""
        return ()


def _task(kind: str, row: Mapping[str, Any]) -> Task:
    name = f"retention/{kind}/{_words(row['ask']).strip()}".replace(" ", "-")
    messages = (Message.of("system", SYSTEM), Message.of("user", row["ask"]))
    return Task(name, messages, group=name, expected=({"accept": row["accept"]},), reference=_reference(row))


def _reference(row: Mapping[str, Any]) -> Message:
    return Message.of("assistant", f"{row['accept'][0]}.")


def _words(text: str) -> str:
    """Case-folded words between spaces, so that `in` compares whole words."""
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return f" {words} "


@cache
def _facts() -> dict[str, list[dict[str, Any]]]:
    facts: dict[str, list[dict[str, Any]]] = yaml.safe_load(
        files("postgrad.evaluate").joinpath("data/facts.yaml").read_text("utf-8")
    )
    return facts
