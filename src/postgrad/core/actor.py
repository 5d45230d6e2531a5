"""`Actor`: whatever answers a step. A policy, a teacher behind HTTP, a gold script and a served model are all one.

Answers come back in the order of the asks. An actor that has nothing to say for an ask (a gold script asked about
an unknown task) gives an answer whose `message` is None; that is an abstention, not an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from postgrad.core.message import Message, Tool


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to sample. Temperature 0 is greedy. `constrained`: the grammar of the offered tools is enforced.

    `top_logprobs` asks for the log-probabilities of so many likeliest tokens at every place; 0 asks for none.
    """

    temperature: float = 0.0
    max_new_tokens: int = 128
    seed: int = 0
    constrained: bool = False
    top_logprobs: int = 0


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step to answer; `task_id` names the task where there is one, `hint` is shown before the action."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    task_id: str | None = None
    hint: str | None = None


class TokenChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One token of an answer: its text, its log-probability in nats, and the likeliest tokens in its place."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An actor's answer. `cost` is in US dollars, None where no price is known; `seconds` is wall time.

    `cached_tokens` of the prompt were read from the provider's prompt cache. `error` is a short code where the message
    is None because something failed (`stop_reason` says what); an actor with nothing to say has none. `tokens` are
    there where log-probabilities were asked for and given; they need not cover the whole message.
    """

    message: Message | None
    model: str
    stop_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None
    cached_tokens: int = 0
    error: str | None = None
    tokens: tuple[TokenChoice, ...] = ()


class Actor(Protocol):
    """Answers asks in batches. `name` identifies it in reports and caches; `kind` says what it is in plain words."""

    @property
    def name(self) -> str:
        """Short unique name."""
        ...

    @property
    def kind(self) -> str:
        """What it is, as reports print it: "gold answers", "local model", "HTTP endpoint"."""
        ...

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order.

        Raises:
            OutsideFailure: the actor cannot be reached.
        """
        ...
