"""`Task`: what is asked and how the answer is checked. Its `group` is the unit of splitting."""

from __future__ import annotations

from typing import Any

import msgspec

from postgrad.core.message import Message, Tool


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem with a verifiable answer.

    `expected` is the grader's data (for function calling: acceptable calls, each
    ``{name: {argument: [acceptable values]}}``; an empty list means that no call is right).
    `reference` is one right action, named as gold wherever it is used.
    """

    id: str
    messages: tuple[Message, ...]
    group: str
    tools: tuple[Tool, ...] = ()
    expected: tuple[dict[str, Any], ...] = ()
    reference: Message | None = None


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    """A grader's answer: `score` in [0, 1] and, below 1, the kind of error and one sentence on it."""

    score: float
    error: str | None = None
    detail: str = ""
