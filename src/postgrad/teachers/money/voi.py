"""Value of information: which steps are worth a teacher's answer, when not all of them can be paid.

A step's worth is a weighted sum of what is known before anyone is asked: whether an error site lies there, how unsure
the student is (`Doubt`), and how early in the trace it stands (a mistake made early is in every later context,
and an early context is short). A step at which no tools were offered is worth less, as teachers seldom agree on words.
The worth is multiplied by its novelty: a step's features (tools called, kind of error, words of the last message) count
less the more often steps with them have been chosen. Steps are chosen greedily by worth per US dollar until the money
is used up; as worth only falls while others are chosen, a heap with stale entries finds the best one without looking at
all of them (Minoux 1978). With `whole`, traces are chosen instead of steps.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from postgrad.core.message import Message

_WORD = re.compile(r"\w{3,}")
_MOST_WORDS = 64


class Weights(msgspec.Struct, frozen=True):
    """What counts how much."""

    error: float = 1.0
    uncertainty: float = 0.7
    position: float = 0.1
    any: float = 0.05
    """what every step is worth, so that money that is left is spent"""
    words: float = 0.2
    """of the worth of a step at which no tools were offered: teachers seldom agree on words"""


@dataclass(frozen=True)
class Prospect:
    """A step that may be asked about.

    Attributes:
        trace: its trace.
        step: its index.
        cost: US dollars to expect, or any measure of effort where all is free.
        error: 1 where an error site lies, a share of it for lesser evidence, 0 without.
        uncertainty: the student's, from 0 to 1; 0 where it was not measured.
        position: 0 for the first step of the trace, 1 for the last.
        tools: whether tools were offered there.
        features: what it has in common with other steps.
    """

    trace: str
    step: int
    cost: float
    error: float = 0.0
    uncertainty: float = 0.0
    position: float = 0.0
    tools: bool = True
    features: frozenset[str] = frozenset()


def features(action: Message, last: Message | None, kinds: Iterable[str] = ()) -> frozenset[str]:
    """What a step has in common with others: its calls' tools, its kinds of error, and words of the last message."""
    words = sorted(set(_WORD.findall(_words_of(last).lower())))[:_MOST_WORDS] if last is not None else []
    tools = [f"tool {call.name}" for call in action.tool_calls] or ["no tool"]
    return frozenset([*tools, *(f"error {kind}" for kind in kinds), *words])


class Doubt(msgspec.Struct, frozen=True):
    """How unsure a student is at a step, from samples of its own action.

    Attributes:
        disagreement: share of the samples outside the largest cluster of equal actions.
        entropy: of its next action, estimated by the mean surprisal of the samples, in nats a token.
    """

    disagreement: float = 0.0
    entropy: float = 0.0

    @classmethod
    def of(cls, forms: Sequence[str], surprisals: Sequence[float]) -> Doubt:
        """From the normal form of every sample, and its mean negative log-probability per token in nats."""
        if not forms:
            return cls()
        disagreement = 1.0 - Counter(forms).most_common(1)[0][1] / len(forms)
        return cls(disagreement, max(0.0, math.fsum(surprisals) / len(surprisals)))

    @property
    def value(self) -> float:
        """Between 0 and 1: the mean of the disagreement and of 1 - exp(-entropy)."""
        return (self.disagreement + 1.0 - math.exp(-self.entropy)) / 2


def choose(
    prospects: Sequence[Prospect], money: float, *, weights: Weights | None = None, whole: bool = False
) -> list[Prospect]:
    """The steps to ask about, best first; together they are expected to cost at most `money`."""
    groups = _groups(prospects, whole=whole)
    counts: Counter[str] = Counter()
    chosen: list[Prospect] = []
    heap = [(-_rate(group, counts, weights or Weights()), place) for place, group in enumerate(groups)]
    heapq.heapify(heap)
    left = money
    while heap:
        _, place = heapq.heappop(heap)
        group = groups[place]
        cost = math.fsum(prospect.cost for prospect in group)
        if cost > left * (1 + 1e-12):
            continue
        rate = -_rate(group, counts, weights or Weights())
        if heap and rate > heap[0][0]:  # others have been chosen since it was weighed
            heapq.heappush(heap, (rate, place))
            continue
        left -= cost
        chosen += group
        counts.update(feature for prospect in group for feature in prospect.features)
    return chosen


def cheapest(prospects: Sequence[Prospect], *, whole: bool = False) -> float:
    """What the least that can be chosen costs."""
    costs = (math.fsum(one.cost for one in group) for group in _groups(prospects, whole=whole))
    return min(costs, default=0.0)


def _groups(prospects: Sequence[Prospect], *, whole: bool) -> list[list[Prospect]]:
    if not whole:
        return [[prospect] for prospect in prospects]
    traces: dict[str, list[Prospect]] = {}
    for prospect in prospects:
        traces.setdefault(prospect.trace, []).append(prospect)
    return list(traces.values())


def _rate(group: Sequence[Prospect], counts: Counter[str], weights: Weights) -> float:
    """Worth per unit of cost."""
    worth = math.fsum(_worth(prospect, weights) * _novelty(prospect, counts) for prospect in group)
    return worth / max(1e-12, math.fsum(prospect.cost for prospect in group))


def _worth(prospect: Prospect, weights: Weights) -> float:
    worth = (
        weights.error * prospect.error
        + weights.uncertainty * prospect.uncertainty
        + weights.position * (1.0 - prospect.position)
        + weights.any
    )
    return worth if prospect.tools else weights.words * worth


def _novelty(prospect: Prospect, counts: Counter[str]) -> float:
    """Mean over features of 1 / (1 + how often it was chosen), between 0 and 1; 1 for a step like no other."""
    if not prospect.features:
        return 1.0
    return math.fsum(1.0 / (1.0 + counts[feature]) for feature in prospect.features) / len(prospect.features)


def _words_of(message: Message) -> str:
    return " ".join([message.text, *(result.text[:2000] for result in message.tool_results)])
