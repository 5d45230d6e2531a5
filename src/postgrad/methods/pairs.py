"""Preference methods over records: `dpo` (every objective on pairs) and `kto` (completions judged one by one).

The reference of a pair's log-ratios is computed in the same forest, step by step, or with ``reference: precomputed``
once before training: then a step costs no reference pass, and the numbers are kept in memory.

`kto` takes pairs apart: an action is a good completion and a rejected one a bad one, whatever came with it. The rows of
a step are cut into groups that share one reference point z0, as the paper's micro-batches do; a completion that answers
another prompt of its group is scored after each prompt to measure z0 (`objectives.judged`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from postgrad.core.annotation import JudgedItem, PreferenceItem, Span, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import pack
from postgrad.core.record import Record
from postgrad.methods.batches import Batches
from postgrad.methods.layout import Channel, Layout, action_span
from postgrad.methods.supervised import FromRecords, RecordSource, no_rows, record_batches
from postgrad.signals.records import read_records

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

BUDGET = 4096  # tokens of a forest in the pass that computes references beforehand


class DPO(FromRecords):
    """Preference optimisation on pairs; `channels.preference.objective` names the loss."""

    channel: ClassVar[Channel] = "preference"

    reference: Literal["live", "precomputed"] = "live"
    """Compute the reference with every step, or once before the first."""

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Pairs are not for kto, and a reference is of no use to an objective without one.

        Raises:
            ConfigError: either.
        """
        objective = channels["preference"].get("objective", "dpo")
        if objective == "kto":
            raise ConfigError(
                "objective kto judges completions one by one", got="method dpo", do="set method.name: kto"
            )
        if self.reference == "precomputed" and objective in ("simpo", "orpo"):
            raise ConfigError(f"objective {objective} has no reference", got="method.reference: precomputed")

    def source(self, policy: Policy, *, seed: int) -> RecordSource:
        """Lay the pairs out for `policy`.

        Raises:
            DataError: there are none.
        """
        batches = record_batches(policy, self.records, self.channel, self, seed=seed)
        if self.reference == "precomputed":
            groups = [precomputed(policy, group) for group in batches.groups]
            batches = Batches(groups, batches.size, batches.seed)
        return RecordSource(batches)


class KTO(FromRecords):
    """Kahneman-Tversky optimisation (arXiv 2402.01306)."""

    channel: ClassVar[Channel] = "preference"

    group_size: Annotated[int, Field(ge=1)] = 4
    """Completions that share one reference point."""

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Completions are for kto alone.

        Raises:
            ConfigError: another objective.
        """
        objective = channels["preference"].get("objective", "dpo")
        if objective != "kto":
            raise ConfigError(
                "method kto and the objective do not go together",
                got=f"channels.preference.objective {objective}",
                do="set channels.preference.objective: kto",
            )

    def source(self, policy: Policy, *, seed: int) -> JudgedSource:
        """Take the records apart for `policy`.

        Raises:
            DataError: there is no completion.
        """
        layout = Layout(policy.renderer, self.max_length)
        made = layout.grouped(read_records(self.records), lambda record: judge(layout, record) or None, "kto")
        rows = [judged for group in made for judged in group]  # row by row: neighbours should answer other prompts
        if not rows:
            raise no_rows(self.records, "preference", layout)
        return JudgedSource(Batches(rows, self.batch_size, seed), self.group_size)


@dataclass(frozen=True)
class Judged:
    """One completion: its prompt, its tokens, whether it is good, its weight."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    good: bool
    weight: float


def judge(layout: Layout, record: Record) -> list[Judged]:
    """The completions of a row: its action is good, its rejected one is bad. Hinted rows hold neither."""
    if record.hint is not None:
        return []
    prompt = tuple(layout.prompt(record))
    sides = [(record.action, True)] + ([] if record.rejected is None else [(record.rejected, False)])
    found = [Judged(prompt, tuple(layout.renderer.action(m)), good, record.weight) for m, good in sides]
    return [one for one in found if layout.fits(len(prompt) + len(one.tokens))]


class JudgedSource:
    """Groups of judged completions; holds no state of its own."""

    def __init__(self, batches: Batches[Judged], group_size: int) -> None:
        self._batches, self._size = batches, group_size

    def units(self, step: int) -> Sequence[Unit]:
        """The groups of `step`."""
        rows = self._batches.units(step)
        return [judged_unit(rows[first : first + self._size]) for first in range(0, len(rows), self._size)]

    def state(self) -> dict[str, Any]:
        """Nothing: batches are a function of seed and step."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""


def judged_unit(rows: Sequence[Judged]) -> Unit:
    """One group: every completion after its prompt, and after each prompt the next completion that answers another."""
    ordered = [row for row in rows if row.good] + [row for row in rows if not row.good]
    branches = [(*row.prompt, *row.tokens) for row in ordered]
    spans = [action_span(place, row.prompt, row.tokens) for place, row in enumerate(ordered)]
    mismatched: list[Span] = []
    for place, row in enumerate(ordered):
        around = (*ordered[place + 1 :], *ordered[:place])
        other = next((one for one in around if one.prompt != row.prompt), None)
        if other is not None:
            mismatched.append(action_span(len(branches), row.prompt, other.tokens))
            branches.append((*row.prompt, *other.tokens))
    good = sum(row.good for row in ordered)
    item = JudgedItem(tuple(spans[:good]), tuple(spans[good:]), tuple(mismatched), tuple(row.weight for row in ordered))
    return Unit(tuple(branches), (item,))


def precomputed(policy: Policy, units: Sequence[Unit]) -> list[Unit]:
    """`units` with the reference's log-probabilities in their pairs, in the order given."""
    from postgrad.objectives.channel import joined
    from postgrad.train.scoring import scored_forest

    done: dict[int, Unit] = {}
    for forest in pack(units, budget=BUDGET):
        pairs = [[item for item in unit.items if isinstance(item, PreferenceItem)] for unit in forest.units]
        spans = [(k, span) for k, items in enumerate(pairs) for item in items for span in (item.chosen, item.rejected)]
        with policy.reference():
            scored = scored_forest(policy, forest, policy.hidden_TD(forest))
            nodes = [scored.nodes(k, span) for k, span in spans]
            logprobs_N = scored.logprobs(joined(nodes)).float().cpu().numpy()
        parts = iter(np.split(logprobs_N, np.cumsum([len(own) for own in nodes])[:-1]))
        for unit, items in zip(forest.units, pairs, strict=True):
            known = tuple(replace(item, reference=(next(parts), next(parts))) for item in items)
            done[id(unit)] = replace(unit, items=known)
    return [done[id(unit)] for unit in units]
