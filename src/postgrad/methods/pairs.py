"""Preference methods over records: `dpo` (every objective on pairs) and `kto` (completions judged one by one).

The reference of a pair's log-ratios is computed in the same forest, step by step, or with ``reference: precomputed``
once before training: then a step costs no reference pass, and the numbers are kept in memory.

`kto` takes pairs apart: an action is a good completion and a rejected one a bad one, whatever came with it. Its
reference point z0 is that of the whole step: before it, a completion that answers another prompt of the step is scored
after each prompt, under the policy as it is and under its reference (`objectives.judged`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from postgrad.core.annotation import JudgedItem, PreferenceItem, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.record import Record
from postgrad.methods.batches import Batches
from postgrad.methods.layout import Channel, Layout, action_span
from postgrad.methods.supervised import FromRecords, RecordSource, dropped_rows, no_rows, record_batches
from postgrad.signals.rows.records import read_records

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
        batches, rows = record_batches(policy, self.records, self.channel, self, seed=seed)
        if self.reference == "precomputed":
            groups = [precomputed(policy, group) for group in batches.groups]
            batches = Batches(groups, batches.size, batches.seed)
        return RecordSource([batches], rows)


class KTO(FromRecords):
    """Kahneman-Tversky optimisation (arXiv 2402.01306)."""

    channel: ClassVar[Channel] = "preference"

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
        counts = {"used": len(rows), "passed over: hinted rows": layout.passed_over, **dropped_rows(layout)}
        return JudgedSource(policy, Batches(rows, self.batch_size, seed), counts)


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
    """Judged completions, all of a step with one reference point; its only state are the policy's weights.

    `rows` counts what became of the records.
    """

    def __init__(self, policy: Policy, batches: Batches[Judged], rows: Mapping[str, int]) -> None:
        self._policy, self._batches = policy, batches
        self.rows = {what: count for what, count in rows.items() if count}

    def units(self, step: int) -> Sequence[Unit]:
        """The completions of `step`."""
        rows = self._batches.units(step)
        measured = log_ratios(self._policy, mismatched(rows))
        return [judged_unit(row, measured) for row in rows]

    def state(self) -> dict[str, Any]:
        """Nothing: batches are a function of seed and step, the reference point one of the weights."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""


def judged_unit(row: Judged, measured: tuple[tuple[float, int], ...]) -> Unit:
    """One completion after its prompt, with what the step's mismatched ones measured."""
    span = action_span(0, row.prompt, row.tokens)
    good, bad = ((span,), ()) if row.good else ((), (span,))
    return Unit(((*row.prompt, *row.tokens),), (JudgedItem(good, bad, (), (row.weight,), measured),))


def mismatched(rows: Sequence[Judged]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each row's prompt with the completion of the next row that answers another prompt, if there is one."""
    found = []
    for place, row in enumerate(rows):
        around = (*rows[place + 1 :], *rows[:place])
        other = next((one for one in around if one.prompt != row.prompt), None)
        if other is not None:
            found.append((row.prompt, other.tokens))
    return found


def log_ratios(
    policy: Policy, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[tuple[float, int], ...]:
    """For each prompt and completion: Σ log π/π0 over the completion's tokens in nats, and how many these are."""
    import torch

    from postgrad.core.forest import pack
    from postgrad.train.scoring import scored_forest

    units = [Unit(((*prompt, *tokens),)) for prompt, tokens in pairs]
    counts = {id(unit): len(tokens) for unit, (_, tokens) in zip(units, pairs, strict=True)}
    found: dict[int, float] = {}
    for forest in pack(units, budget=BUDGET):
        with torch.no_grad():
            scored = scored_forest(policy, forest, policy.hidden_TD(forest))
            for unit, (path,) in zip(forest.units, forest.paths, strict=True):
                nodes_N = path[-counts[id(unit)] :] if counts[id(unit)] else path[:0]
                gaps_N = scored.logprobs(nodes_N) - scored.reference_logprobs(nodes_N)
                found[id(unit)] = float(gaps_N.double().sum())
    return tuple((found[id(unit)], counts[id(unit)]) for unit in units)


def precomputed(policy: Policy, units: Sequence[Unit]) -> list[Unit]:
    """`units` with the reference's log-probabilities in their pairs, in the order given."""
    import numpy as np

    from postgrad.core.forest import pack
    from postgrad.objectives.channel import joined
    from postgrad.train.scoring import scored_forest

    done: dict[Unit, Unit] = {}  # by what they say: packing may give back an equal unit, not the same one
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
            done[unit] = replace(unit, items=known)
    return [done[unit] for unit in units]
