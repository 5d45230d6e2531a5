"""Rehearsal: rows on which a policy is to stay what it was, beside the rows from which it learns.

The rows are the policy's own answers before training (`postgrad rollout` in the environment `plain`, then `build
--kinds "[verified]"`). To imitate them would hold one sampled continuation a token; the divergence to the policy
before training, on the same tokens, holds the whole distribution, and is 0 until something else moves it (learning
without forgetting, arXiv:1606.09282).

Who the teacher is, the channel says: ``channels.divergence.teacher: {kind: reference}``.
Not covered: hinted rows and pairs; they are passed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from postgrad.core.annotation import DivergenceItem, Unit
from postgrad.core.errors import DataError
from postgrad.core.record import Record
from postgrad.methods.batches import Batches
from postgrad.methods.layout import Layout, action_span
from postgrad.run.config import Config
from postgrad.signals.rows.records import read_records

if TYPE_CHECKING:
    from postgrad.models.render import Renderer


class Rehearsal(Config):
    """Rows to stay the same on."""

    records: Path
    """JSONL of records with the policy's own answers."""
    batch_size: Annotated[int, Field(ge=1)] = 4
    """Rows per optimiser step."""
    weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the divergence beside the cross-entropy."""

    def batches(self, renderer: Renderer, *, max_length: int, seed: int) -> Batches[Unit]:
        """The rows as units whose teacher reads the very tokens of the student.

        Raises:
            DataError: there is none.
        """
        layout = Layout(renderer, max_length)

        def build(record: Record) -> Unit | None:
            if record.rejected is not None or record.hint is not None:
                return None
            prompt, action = layout.prompt(record), renderer.action(record.action)
            span = action_span(0, prompt, action)
            fits = layout.fits(len(prompt) + len(action))
            return Unit(((*prompt, *action),), (DivergenceItem(span, span, record.weight),)) if fits else None

        groups = layout.grouped(read_records(self.records), build, "rehearsal")
        if not groups:
            raise DataError(
                f"no row of {self.records} can be rehearsed",
                got=dict(layout.dropped) or "pairs and hinted rows alone, or no rows",
                expected="rows with an action and neither a hint nor a rejected action",
            )
        return Batches(groups, self.batch_size, seed)
