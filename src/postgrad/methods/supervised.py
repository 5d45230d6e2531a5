"""Methods over a file of records, one channel each: `sft`, `dpo` and `sdpo` (hinted self-distillation alone).

`sft` imitates actions (cross-entropy on the action's tokens); `dpo` learns from pairs (Rafailov et al. 2023,
arXiv:2305.18290); `sdpo` pulls the policy to itself with a hint in its context (SDPO; formulas D.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from postgrad.core.annotation import Unit
from postgrad.core.errors import DataError
from postgrad.methods.batches import Batches
from postgrad.methods.layout import Channel, Layout
from postgrad.run.config import Config
from postgrad.signals.records import read_records

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


class FromRecords(Config):
    """Shared shape of the methods that read records and feed one channel."""

    channel: ClassVar[Channel]

    records: Path
    """JSONL of records, as `postgrad build` writes them."""
    batch_size: int = 16
    """Rows per optimiser step."""
    max_length: int = 1024
    """Rows with a longer branch are dropped and counted."""

    def weights(self) -> Mapping[str, float]:
        """The one channel, with weight 1."""
        return {self.channel: 1.0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Every setting of the channel is fine."""

    def data(self) -> Sequence[Path]:
        """The records."""
        return (self.records,)

    def source(self, policy: Policy, *, seed: int) -> RecordSource:
        """Lay the records out for `policy`.

        Raises:
            DataError: no row carries what the channel needs.
        """
        return RecordSource(record_batches(policy, self.records, self.channel, self, seed=seed))


class SFT(FromRecords):
    """Supervised fine-tuning on actions."""

    channel: ClassVar[Channel] = "cross_entropy"


class DPO(FromRecords):
    """Direct preference optimisation on pairs."""

    channel: ClassVar[Channel] = "preference"


class SDPO(FromRecords):
    """Self-distillation from the hinted context, at recorded error sites."""

    channel: ClassVar[Channel] = "divergence"


class RecordSource:
    """Units of one channel, a batch a step; holds no state of its own."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def units(self, step: int) -> Sequence[Unit]:
        """The batch of `step`."""
        return self._batches.units(step)

    def state(self) -> dict[str, Any]:
        """Nothing: batches are a function of seed and step."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""


def record_batches(policy: Policy, path: Path, channel: Channel, rows: FromRecords, *, seed: int) -> Batches:
    """Batches of the units that `channel` gets from the records at `path`.

    Raises:
        DataError: there are none; the message says what was dropped and why.
    """
    layout = Layout(policy.renderer, rows.max_length)
    groups = layout.groups(read_records(path), channel)
    if not groups:
        reasons = f"; dropped: {dict(layout.dropped)}" if layout.dropped else ""
        raise DataError(
            f"no row of {path} can feed channel '{channel}'{reasons}",
            do=f"build records that carry {NEEDS[channel]}, or drop the channel",
        )
    return Batches(groups, rows.batch_size, seed)


NEEDS: dict[Channel, str] = {
    "cross_entropy": "an action and neither a hint nor a rejected action",
    "divergence": "a hint",
    "preference": "a rejected action",
}
