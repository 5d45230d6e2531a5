"""Methods over a file of records: `sft` and `sdpo` (hinted self-distillation alone).

`sft` imitates actions (cross-entropy on the action's tokens) and may stay what it was on other rows (`rehearsal`);
`sdpo` pulls the policy to itself with a hint in its context (SDPO; formulas D.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from postgrad.core.annotation import Unit
from postgrad.core.errors import DataError
from postgrad.methods.alignment import refuse_own_teacher
from postgrad.methods.batches import Batches
from postgrad.methods.imitation import Imitation, Scored, TooLong
from postgrad.methods.layout import Channel, Layout
from postgrad.methods.rehearsal import Rehearsal
from postgrad.run.config import Config
from postgrad.signals.rows.records import read_records

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.train.contracts import UnitSource


class FromRecords(Config):
    """Shared shape of the methods that read records and feed one channel."""

    channel: ClassVar[Channel]

    records: Path
    """JSONL of records, as `postgrad build` writes them."""
    batch_size: Annotated[int, Field(ge=1)] = 16
    """Rows per optimiser step."""
    max_length: Annotated[int, Field(ge=2)] = 1024
    """Rows with a longer branch are dropped and counted."""

    def weights(self) -> Mapping[str, float]:
        """The one channel, with weight 1."""
        return {self.channel: 1.0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Every setting of the channel is fine."""

    def data(self) -> Sequence[Path]:
        """The records."""
        return (self.records,)

    def source(self, policy: Policy, *, seed: int) -> UnitSource:
        """Lay the records out for `policy`.

        Raises:
            DataError: no row carries what the channel needs.
        """
        laid_out = record_batches(policy, self.records, self.channel, self, seed=seed)
        return RecordSource([laid_out.batches], laid_out.rows)


class SFT(FromRecords):
    """Supervised fine-tuning on actions."""

    channel: ClassVar[Channel] = "cross_entropy"

    scored: Scored = "action"
    """The last answer of a row (action), or every answer in its conversation (assistant)."""
    too_long: TooLong = "drop"
    """Rows longer than max_length: dropped, or split into overlapping pieces; counted either way."""
    rehearsal: Rehearsal | None = None
    """Rows on which the policy is to stay what it was; they feed the divergence."""

    def weights(self) -> Mapping[str, float]:
        """Cross-entropy with weight 1, and the divergence of the rehearsal with its own."""
        kept = {} if self.rehearsal is None else {"divergence": self.rehearsal.weight}
        return {self.channel: 1.0} | kept

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a rehearsal whose teacher is the student.

        Raises:
            ConfigError: it is.
        """
        if self.rehearsal is not None:
            refuse_own_teacher(channels["divergence"])

    def data(self) -> Sequence[Path]:
        """The records, and those of the rehearsal."""
        return (self.records,) if self.rehearsal is None else (self.records, self.rehearsal.records)

    def source(self, policy: Policy, *, seed: int) -> RecordSource:
        """Lay the records out for `policy`.

        Raises:
            DataError: no row carries an action alone, or none can be rehearsed.
            TrainingFault: the renderer gives a row nothing to imitate.
        """
        rows = Imitation(Layout(policy.renderer, self.max_length), self.scored, self.too_long)
        groups = rows.groups(read_records(self.records))
        if not groups:
            raise no_rows(self.records, self.channel, rows.layout)
        batches = [Batches(groups, self.batch_size, seed)]
        if self.rehearsal is not None:
            batches.append(self.rehearsal.batches(policy.renderer, max_length=self.max_length, seed=seed))
            rows.rows["rehearsed"] = len(batches[-1])
        return RecordSource(batches, rows.rows)


class SDPO(FromRecords):
    """Self-distillation from the hinted context, at recorded error sites."""

    channel: ClassVar[Channel] = "divergence"


class RecordSource:
    """Units of given rows, a batch of each kind a step; holds no state. `rows` counts what became of them."""

    samples = False

    def __init__(self, batches: Sequence[Batches[Unit]], rows: Mapping[str, int] | None = None) -> None:
        self._batches = batches
        self.rows = dict(rows or {})

    def units(self, step: int) -> Sequence[Unit]:
        """The batches of `step`."""
        return [unit for batches in self._batches for unit in batches.units(step)]

    def state(self) -> dict[str, Any]:
        """Nothing: batches are a function of seed and step."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""


class LaidOut(NamedTuple):
    """Batches of a file's rows, and how many rows are used, passed over (they are of another kind) or dropped, why."""

    batches: Batches[Unit]
    rows: dict[str, int]


def record_batches(policy: Policy, path: Path, channel: Channel, rows: FromRecords, *, seed: int) -> LaidOut:
    """The units that `channel` gets from the records at `path`.

    Raises:
        DataError: there are none; the message says what was dropped and why.
    """
    layout = Layout(policy.renderer, rows.max_length)
    groups = layout.groups(read_records(path), channel)
    if not groups:
        raise no_rows(path, channel, layout)
    batches = Batches(groups, rows.batch_size, seed)
    passed = {f"passed over: without {NEEDS[channel]}": layout.passed_over} if layout.passed_over else {}
    return LaidOut(batches, {"used": len(batches), **passed, **dropped_rows(layout)})


def dropped_rows(layout: Layout) -> dict[str, int]:
    """Rows that could not be used, by reason, as a source tells them."""
    return {f"dropped: {reason}": count for reason, count in layout.dropped.items()}


def no_rows(path: Path, channel: Channel, layout: Layout) -> DataError:
    """The error for a file that can feed `channel` with nothing."""
    reasons = f"; dropped: {dict(layout.dropped)}" if layout.dropped else ""
    return DataError(
        f"no row of {path} can feed channel '{channel}'{reasons}",
        do=f"build records that carry {NEEDS[channel]}, or drop the channel",
    )


NEEDS: dict[Channel, str] = {
    "cross_entropy": "an action and neither a hint nor a rejected action",
    "divergence": "a hint",
    "preference": "a rejected action",
}
