"""How many tokens are counted for those that were estimated: learnt from bills, or from what the traces logged.

Counts go with the estimate (another tokenizer), or with it above something that every call has (a chat template, a
page of rules for tools, an answer that is always of one length). Which of the two is seen from how well they fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from postgrad.core.actor import Answer
from postgrad.core.trace import Step

_WHOLE = ("exact", "exact-messages")  # fidelities of requests whose tokens can be compared with what was counted
_LEAST, _MOST = 0.5, 2.0  # how far tokenizers are from the estimate; beyond it something else is counted
_ENOUGH = 3  # steps from which on something that every call has can be told from the rest
_BETTER = 0.5  # of the squared errors are left, at most, where it is believed
Logged = Callable[[Step], tuple[int | None, int | None]]
"""Tokens read and written that the log of a step says its own model counted; None where it does not say."""


def no_log(step: Step) -> tuple[None, None]:
    """The default: logs say nothing."""
    return None, None


@dataclass(frozen=True)
class Line:
    """counted = base + slope * estimated, give or take `spread` (a standard deviation) a call."""

    base: float = 0.0
    slope: float = 1.0
    spread: float = 0.0

    def of(self, estimated: float, *, calls: int = 1) -> float:
        """Counted tokens of `calls` calls that were estimated at so many in all."""
        return self.base * calls + self.slope * estimated


@dataclass
class Rate:
    """Counted tokens beside estimated ones, over some steps."""

    pairs: list[tuple[float, float]] = field(default_factory=list)

    def add(self, counted: float, estimated: float) -> None:
        """One step more."""
        self.pairs.append((counted, estimated))

    @property
    def steps(self) -> int:
        """How many."""
        return len(self.pairs)

    @property
    def known(self) -> bool:
        """Whether something is."""
        return any(counted for counted, _ in self.pairs) and any(estimated for _, estimated in self.pairs)

    @property
    def line(self) -> Line:
        """What fits; as estimated where nothing is known."""
        if not self.known:
            return Line()
        counted, estimated = (math.fsum(one) for one in zip(*self.pairs, strict=True))
        plain = self._with_spread(0.0, counted / estimated)
        if self.steps < _ENOUGH:
            return plain
        based = self._with_spread(*_fit(self.pairs))
        return based if based.spread**2 <= _BETTER * plain.spread**2 else plain

    def _with_spread(self, base: float, slope: float) -> Line:
        errors = [counted - base - slope * estimated for counted, estimated in self.pairs]
        return Line(base, slope, math.sqrt(math.fsum(error**2 for error in errors) / max(1, self.steps - 1)))


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


def _fit(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Base and slope by least squares, neither below 0: no call counts less for being longer."""
    mean_y, mean_x = (math.fsum(one) / len(pairs) for one in zip(*pairs, strict=True))
    varied = math.fsum((x - mean_x) ** 2 for _, x in pairs)
    slope = max(0.0, math.fsum((x - mean_x) * (y - mean_y) for y, x in pairs) / varied) if varied else 0.0
    base = mean_y - slope * mean_x
    return (base, slope) if base >= 0 else (0.0, mean_y / mean_x)
