"""How many tokens are counted for one that was estimated: learnt from bills, or from what the traces logged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from postgrad.core.actor import Answer
from postgrad.core.trace import Step

_WHOLE = ("exact", "exact-messages")  # fidelities of requests whose tokens can be compared with what was counted
_LEAST, _MOST = (
    0.5,
    2.0,
)  # how far tokenizers are from the estimate; beyond it something else is counted
Logged = Callable[[Step], tuple[int | None, int | None]]
"""Tokens read and written that the log of a step says its own model counted; None where it does not say."""


def no_log(step: Step) -> tuple[None, None]:
    """The default: logs say nothing."""
    return None, None


@dataclass
class Rate:
    """Counted tokens per estimated one, over some steps."""

    steps: int = 0
    counted: float = 0.0
    estimated: float = 0.0

    def add(self, counted: float, estimated: float) -> None:
        """One step more."""
        self.steps += 1
        self.counted += counted
        self.estimated += estimated

    @property
    def value(self) -> float | None:
        """The rate, None where nothing is known."""
        return self.counted / self.estimated if self.counted and self.estimated else None


@dataclass
class Rates:
    """Of what is read, and of what is written."""

    read: Rate = field(default_factory=Rate)
    written: Rate = field(default_factory=Rate)

    def add_bill(self, known: Answer, read: float, written: float) -> None:
        """Learn from what a teacher billed for an answer, against what was estimated."""
        if known.error is None and known.prompt_tokens:
            self.read.add(known.prompt_tokens, read)
            self.written.add(known.completion_tokens, written)

    def add_log(self, logged: tuple[int | None, int | None], step: Step, read: float, written: float) -> None:
        """Learn from a step's log, as far as a tokenizer explains it: it may count what the trace does not hold."""
        if step.request.fidelity not in _WHOLE:
            return
        for rate, counted, estimate in zip((self.read, self.written), logged, (read, written), strict=True):
            if counted and _LEAST <= counted / estimate <= _MOST:
                rate.add(counted, estimate)
