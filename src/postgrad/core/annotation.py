"""Channel annotations: what a method asks of the tokens, channel by channel.

A method turns its data into `Unit`s: branches of token ids that must be scored in one forest (a chosen and a
rejected action; a student and its hinted teacher) and, per branch, the items that feed channels. The loop reads
units and knows no method; a channel reads its own kind of item and knows no method either.

A `Span` names the scored tokens of one branch by their indices in it. Index 0 has nothing before it and cannot
be scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # a method's help page needs no arrays
    import numpy as np
    from numpy.typing import NDArray

FloatsT: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True)
class Span:
    """Scored tokens: `branch` is the place of the branch in its unit, `positions` increasing token indices >= 1."""

    branch: int
    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        assert all(p >= 1 for p in self.positions), "the first token of a branch cannot be scored"


@dataclass(frozen=True)
class CrossEntropyItem:
    """Imitate the span's tokens; `weight` scales the item."""

    span: Span
    weight: float = 1.0


@dataclass(frozen=True)
class PolicyGradientItem:
    """One sampled completion.

    Attributes:
        span: the sampled tokens.
        advantage: one number, or one a token of the span (per-token credit).
        behaviour_T: the sampler's log-probabilities of the span's tokens, in nats.
        max_length: the completion limit.
        weight: scales the item; 0 masks it.
        old_T: log-probabilities of the sampling policy as the trainer computes them, where the sampler was another
            engine; None stands for the current policy's own.
        length: tokens in the denominators where they are not those of the span: a completion without advantage need
            not be scored, and still has its length.
    """

    span: Span
    advantage: float | FloatsT
    behaviour_T: FloatsT
    max_length: int
    weight: float = 1.0
    old_T: FloatsT | None = None
    length: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens in the denominators."""
        return len(self.span.positions) if self.length is None else self.length


@dataclass(frozen=True)
class LoggedTeacher:
    """A teacher's next-token distributions as they were written down: its K likeliest continuations of N tokens.

    Attributes:
        ids_NK: token ids; -1 where a token has fewer than K.
        logprobs_NK: their log-probabilities, in nats.
        tails_N: logarithm of what all other tokens have together.
    """

    ids_NK: NDArray[np.int64]
    logprobs_NK: NDArray[np.float32]
    tails_N: FloatsT

    def __len__(self) -> int:
        return len(self.tails_N)


@dataclass(frozen=True)
class DivergenceItem:
    """Pull the student's next-token distributions to a teacher's over the same tokens.

    Attributes:
        student: the tokens.
        teacher: the same tokens in the teacher's context (which may be the student's), or the teacher as logged.
        weight: scales the item; 0 masks it.
        behaviour_T: the sampler's log-probabilities of the tokens, in nats, where the policy has moved on since.
    """

    student: Span
    teacher: Span | LoggedTeacher
    weight: float = 1.0
    behaviour_T: FloatsT | None = None

    def __post_init__(self) -> None:
        n = len(self.student.positions)
        taught = len(self.teacher.positions) if isinstance(self.teacher, Span) else len(self.teacher)
        assert taught == n, "student and teacher must be aligned"
        assert self.behaviour_T is None or len(self.behaviour_T) == n, "one behaviour log-probability a token"


class Preferred:
    """What the preference channel reads: pairs, or judged completions."""


@dataclass(frozen=True)
class PreferenceItem(Preferred):
    """Prefer `chosen` to `rejected`.

    Attributes:
        chosen: tokens of the better action.
        rejected: tokens of the worse one.
        weight: scales the item; 0 masks it.
        reference: the reference policy's log-probabilities of both, token by token, where they were computed before;
            None has them computed in the forest.
    """

    chosen: Span
    rejected: Span
    weight: float = 1.0
    reference: tuple[FloatsT, FloatsT] | None = None

    def __post_init__(self) -> None:
        for span, given in zip((self.chosen, self.rejected), self.reference or (), strict=False):
            assert len(given) == len(span.positions), "one reference log-probability a token"


@dataclass(frozen=True)
class JudgedItem(Preferred):
    """Completions judged one by one, good or bad, that share one reference point (KTO).

    Attributes:
        good: tokens of completions to make likelier.
        bad: tokens of completions to make less likely.
        mismatched: completions after prompts that they do not answer; they measure how far the policy has moved.
        weights: of `good`, then of `bad`; 0 masks a completion. None is 1 for all.
        measured: mismatched completions of the whole step that were scored before: the sum of each one's log-ratios to
            the reference, in nats, and its tokens.
    """

    good: tuple[Span, ...]
    bad: tuple[Span, ...]
    mismatched: tuple[Span, ...] = ()
    weights: tuple[float, ...] | None = None
    measured: tuple[tuple[float, int], ...] = ()

    def __post_init__(self) -> None:
        assert self.weights is None or len(self.weights) == len(self.good) + len(self.bad), "one weight a completion"


Item = CrossEntropyItem | PolicyGradientItem | DivergenceItem | PreferenceItem | JudgedItem


@dataclass(frozen=True)
class Unit:
    """Branches that stay in one forest, and the channel items that refer to them."""

    branches: tuple[tuple[int, ...], ...]
    items: tuple[Item, ...] = field(default=())

    @property
    def tokens(self) -> int:
        """Tokens of all branches, shared prefixes counted once per branch."""
        return sum(len(branch) for branch in self.branches)


def branches_of(item: Item) -> tuple[int, ...]:
    """The branches of its unit that an item reads; 0 for one that reads none, as an empty completion."""
    return tuple(sorted({span.branch for span in _spans(item)})) or (0,)


def on_branches(item: Item, moved: Mapping[int, int]) -> Item:
    """`item` in a unit in which branch b has become `moved[b]`."""
    changed = {f.name: _moved(getattr(item, f.name), moved) for f in fields(item)}
    return replace(item, **changed)


def _spans(value: object) -> Iterator[Span]:
    """The spans that a value is made of; an item of a plug-in's own class is read like ours."""
    if isinstance(value, Span):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _spans(part)
    elif is_dataclass(value):
        for f in fields(value):
            yield from _spans(getattr(value, f.name))


def _moved(value: Any, moved: Mapping[int, int]) -> Any:
    if isinstance(value, Span):
        return replace(value, branch=moved[value.branch])
    return tuple(_moved(part, moved) for part in value) if type(value) is tuple else value
