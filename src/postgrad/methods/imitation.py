"""Rows of supervised fine-tuning: which tokens of a conversation are imitated, and what becomes of a long one.

Spans come from the renderer, never from searching the text: an action is what the model has to produce, its stop
token included. A row in which nothing would be scored, or whose action does not end in a stop token, is a fault of the
renderer and an error: trained on, it would teach nothing, or never to stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from postgrad.core.annotation import CrossEntropyItem, Span, Unit
from postgrad.core.errors import TrainingFault
from postgrad.core.record import Record
from postgrad.methods.layout import Layout
from postgrad.methods.pieces import pieces

Scored = Literal["action", "assistant"]
TooLong = Literal["drop", "split"]


@dataclass
class Imitation:
    """Turns records into units; `rows` counts what became of them.

    A row that is split keeps a quarter of the length as context from piece to piece.
    """

    layout: Layout
    scored: Scored
    too_long: TooLong
    rows: Counter[str] = field(default_factory=Counter)

    def groups(self, records: Iterable[Record]) -> list[list[Unit]]:
        """Units of the records that carry an action and nothing else, grouped by the prefix that they share."""
        groups = self.layout.grouped(records, self._units, "cross_entropy")
        self.rows.update({f"dropped: {reason}": count for reason, count in self.layout.dropped.items()})
        return [[unit for units in group for unit in units] for group in groups]

    def _units(self, record: Record) -> list[Unit] | None:
        if record.rejected is not None or record.hint is not None:
            self.rows["passed over: a pair or a hinted row"] += 1
            return None
        tokens, positions = self._scored(record)
        if len(tokens) <= self.layout.max_length:
            self.rows["used"] += 1
            return [_unit(tokens, positions, record.weight)]
        if self.too_long == "drop":
            self.layout.fits(len(tokens))  # counts it
            return None
        longest = self.layout.max_length
        parts = []
        for piece in pieces(len(tokens), longest=longest, overlap=max(1, longest // 4)):
            own = tuple(p - piece.start for p in positions if piece.fresh <= p < piece.stop)
            if own:
                parts.append(_unit(tokens[piece.start : piece.stop], own, record.weight))
        self.rows["split"] += 1
        self.rows["pieces of split rows"] += len(parts)
        return parts

    def _scored(self, record: Record) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tokens of the row and the positions to imitate.

        Raises:
            TrainingFault: there are none, or the action does not stop.
        """
        renderer = self.layout.renderer
        if self.scored == "action":
            prompt, action = self.layout.prompt(record), renderer.action(record.action)
            tokens = (*prompt, *action)
            positions = tuple(range(len(prompt), len(tokens)))
        else:
            rendered = renderer.spans((*record.messages, record.action), record.tools)
            spans = [span for span in rendered.actions if span is not None]
            positions = tuple(p for start, stop in spans for p in range(max(1, start), stop))
            tokens = rendered.tokens[: positions[-1] + 1] if positions else rendered.tokens
        if not positions:
            raise TrainingFault("no token of a row would be imitated: the renderer gives its answers no span")
        if tokens[-1] not in renderer.stop_ids:
            raise TrainingFault(f"an answer ends in token {tokens[-1]}, which is no stop token: it would never stop")
        return tokens, positions


def _unit(tokens: tuple[int, ...], positions: tuple[int, ...], weight: float) -> Unit:
    return Unit((tokens,), (CrossEntropyItem(Span(0, positions), weight),))
