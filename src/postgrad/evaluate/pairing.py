"""`Pairing`: two scores of one benchmark, item by item, after checking that they can be compared at all.

Scores measured on other items, prompts, settings or with another grader version are not two measurements of one
thing; comparing them is refused. What may differ is who answered and how fast (`IDENTITY`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from postgrad.core.errors import DataError
from postgrad.core.report import Item, Score
from postgrad.core.words import counted
from postgrad.evaluate.statistics import Interval, Paired, mean_interval

IDENTITY = frozenset({"actor", "weights", "batch"})
"""Settings that name the measured model and the machine's share of work; every other one must agree."""

MEASURED = frozenset({"scored", "truncated"})
"""Outcomes whose score counts: a cut-off answer is graded as it stands."""


def measured(item: Item) -> bool:
    """Whether the item has a score; one that did not fit the context or met an infrastructure error has none."""
    return item.outcome in MEASURED


def score_interval(score: Score, *, level: float = 0.95) -> Interval:
    """Give the interval of a score's mean, from its measured items and their groups."""
    counted = [item for item in score.items if measured(item)]
    return mean_interval([item.score for item in counted], [item.group for item in counted], level=level)


@dataclass(frozen=True)
class Pairing:
    """Items of parent and candidate in one order; `both` are the places where each has a score."""

    benchmark: str
    parent: tuple[Item, ...]
    candidate: tuple[Item, ...]

    @classmethod
    def of(cls, parent: Score, candidate: Score) -> Pairing:
        """Pair two scores by item id.

        Raises:
            DataError: settings, grader or item ids differ, or an id occurs twice.
        """
        _same_settings(parent, candidate)
        for score in (parent, candidate):
            if len({item.id for item in score.items}) < len(score.items):
                raise DataError(f"{score.benchmark}: an item id occurs twice in one report", do="evaluate again")
        by_id = {item.id: item for item in candidate.items}
        ours = {item.id for item in parent.items}
        if ours != by_id.keys():
            odd = sorted(ours ^ by_id.keys())
            raise DataError(
                f"{parent.benchmark}: parent (n={len(parent.items)}) and candidate (n={len(candidate.items)}) were "
                f"measured on different items: {counted(len(odd), 'item')} in one report only, such as '{odd[0]}'",
                do=_REMEDIES["subset"].format(benchmark=parent.benchmark),
            )
        return cls(parent.benchmark, parent.items, tuple(by_id[item.id] for item in parent.items))

    @property
    def both(self) -> tuple[tuple[Item, Item], ...]:
        """Pairs in which each side has a score."""
        pairs = zip(self.parent, self.candidate, strict=True)
        return tuple((before, after) for before, after in pairs if measured(before) and measured(after))

    @property
    def fixed(self) -> tuple[str, ...]:
        """Ids of items that the candidate does better."""
        return tuple(before.id for before, after in self.both if after.score > before.score)

    @property
    def broken(self) -> tuple[str, ...]:
        """Ids of items that the candidate does worse."""
        return tuple(before.id for before, after in self.both if after.score < before.score)

    @property
    def infra_errors(self) -> float:
        """The larger share of items lost to infrastructure, of the two sides."""
        return max(_share(side, "infra_error") for side in (self.parent, self.candidate))

    @property
    def cut_off(self) -> tuple[float, float]:
        """Share of answers cut off or never started for want of room, parent and candidate."""
        before, after = (_share(side, "truncated") + _share(side, "too_long") for side in (self.parent, self.candidate))
        return before, after

    def paired(self, *, cautious: bool = False) -> Paired:
        """Take the differences.

        `cautious` gives the parent's cut-off answers at least `credit`, as if they had been finished.
        """
        least = self.credit if cautious else 0.0
        differences = [
            after.score - (max(before.score, least) if before.outcome == "truncated" else before.score)
            for before, after in self.both
        ]
        return Paired(np.array(differences, dtype=np.float64), tuple(before.group for before, _ in self.both))

    @property
    def credit(self) -> float:
        """What a cut-off answer of the parent might have scored: the upper 95 % bound of its finished ones (or 1)."""
        finished = [item for item in self.parent if item.outcome == "scored"]
        if not finished:
            return 1.0
        return mean_interval([item.score for item in finished], [item.group for item in finished], level=0.95)[1]


def _share(items: tuple[Item, ...], outcome: str) -> float:
    return sum(item.outcome == outcome for item in items) / max(1, len(items))


_REMEDIES = {
    "subset": "evaluate both on the same tasks: --benchmarks {benchmark}:N with one N, and one --seed",
    "prompts": "the questions are not the same: evaluate both on the same tasks with the same data and version",
    "grader": "the grader changed in between: evaluate both with this version",
}
"""What to do where a setting differs; for any other one, evaluate both with the same."""


def _same_settings(parent: Score, candidate: Score) -> None:
    names = sorted((parent.settings.keys() | candidate.settings.keys()) - IDENTITY)
    odd = [name for name in names if parent.settings.get(name) != candidate.settings.get(name)]
    if "subset" in odd and "prompts" in odd:
        odd.remove("prompts")  # other tasks have other prompts
    if not odd:
        return
    first = next((name for name in _REMEDIES if name in odd), odd[0])
    told = ", ".join(f"'{name}'" for name in odd)
    raise DataError(
        f"{parent.benchmark}: parent and candidate were measured differently in {told} "
        f"(parent: {_told(parent, odd)}; candidate: {_told(candidate, odd)})",
        do=_REMEDIES.get(first, "evaluate both with the same settings").format(benchmark=parent.benchmark),
    )


def _told(score: Score, names: list[str]) -> str:
    """The number of items, and the settings that differ; a hash of prompts says nothing to anybody."""
    told = [f"{name} {score.settings.get(name, 'not known')}" for name in names if name != "prompts"]
    return ", ".join([f"n={len(score.items)}", *told])
