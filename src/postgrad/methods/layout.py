"""Lay a record or a sampled completion out as a unit: which tokens, and which of them are scored.

Every branch is ``prompt + action``; only the action's tokens are scored, its stop token included. The context of a
hinted teacher shares all tokens of the student's but the hint, and the action's tokens are the very same ids, so
student and teacher are aligned by construction.

Rows longer than `max_length` are dropped and counted, never cut.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from postgrad.core.annotation import (
    CrossEntropyItem,
    DivergenceItem,
    FloatsT,
    PolicyGradientItem,
    PreferenceItem,
    Span,
    Unit,
)
from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.message import Block, Message, Reasoning, Text
from postgrad.core.record import Record
from postgrad.methods.alignment import reads_alike
from postgrad.signals.rows.records import row_content

if TYPE_CHECKING:
    from postgrad.models.render import Renderer

log = logging.getLogger(__name__)

Channel = Literal["cross_entropy", "divergence", "preference"]
Tokens = Sequence[int]
Row = TypeVar("Row")


def action_span(branch: int, prompt: Tokens, action: Tokens) -> Span:
    """The action's tokens in ``prompt + action``."""
    return Span(branch, tuple(range(len(prompt), len(prompt) + len(action))))


@dataclass
class Layout:
    """Turns records into units for one channel.

    `dropped` counts what could not be used, by reason, `passed_over` the rows that are of another kind, `repeated` the
    rows that say what an earlier one said; they are used, for whoever writes a row twice may mean it.
    """

    renderer: Renderer
    max_length: int
    dropped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    passed_over: int = 0

    def groups(self, records: Iterable[Record], channel: Channel) -> list[list[Unit]]:
        """Units of the records that carry what `channel` needs, grouped by the prefix that they share."""
        build = {"cross_entropy": self._imitate, "divergence": self._distil, "preference": self._prefer}[channel]
        return self.grouped(records, build, channel)

    def grouped(self, records: Iterable[Record], build: Callable[[Record], Row | None], name: str) -> list[list[Row]]:
        """What `build` makes of the records, grouped likewise; `name` is what a warning about dropped rows calls it."""
        groups: dict[str, list[Row]] = {}
        seen: set[str] = set()
        for record in records:
            if (why := unusable(record)) is not None:
                self.dropped[why] += 1
                continue
            dropped = self.dropped.total()
            try:
                row = build(record)
            except DataError:  # a row of foreign making; one of them must not end the run
                self.dropped["the chat template refuses its messages"] += 1
                continue
            if row is None:
                self.passed_over += self.dropped.total() == dropped
            else:
                groups.setdefault(_prefix(record), []).append(row)
                content = row_content(record)
                self.repeated += content in seen
                seen.add(content)
        if self.repeated:
            log.warning("%s: rows that repeat an earlier one (they are used): %d", name, self.repeated)
        if self.dropped:
            log.warning("%s: rows not used: %s", name, dict(self.dropped))
        return list(groups.values())

    def _imitate(self, record: Record) -> Unit | None:
        if record.rejected is not None or record.hint is not None:
            return None
        prompt, action = self.prompt(record), self.renderer.action(record.action)
        item = CrossEntropyItem(action_span(0, prompt, action), record.weight)
        return self._fitting(Unit(((*prompt, *action),), (item,)))

    def _prefer(self, record: Record) -> Unit | None:
        if record.rejected is None:
            return None
        prompt = self.prompt(record)
        chosen, rejected = self.renderer.action(record.action), self.renderer.action(record.rejected)
        if chosen == rejected:
            self.dropped["chosen and rejected are the same tokens"] += 1
            return None
        item = PreferenceItem(action_span(0, prompt, chosen), action_span(1, prompt, rejected), record.weight)
        return self._fitting(Unit(((*prompt, *chosen), (*prompt, *rejected)), (item,)))

    def _distil(self, record: Record) -> Unit | None:
        if record.hint is None:
            return None
        prompt, hinted = self.prompt(record), self.prompt(record, hint=record.hint)
        action = self.renderer.action(record.action)
        if not reads_alike(self.renderer, prompt, hinted, action):
            self.dropped["the action reads otherwise after the hint"] += 1
            return None
        return self._fitting(hinted_unit(prompt, hinted, action, weight=record.weight))

    def prompt(self, record: Record, *, hint: str | None = None) -> list[int]:
        """Tokens of the record's context."""
        return self.renderer.prompt(record.messages, record.tools, hint=hint)

    def fits(self, length: int) -> bool:
        """Whether a branch of so many tokens may be used; one that may not is counted as dropped."""
        if length > self.max_length:
            self.dropped[f"longer than {self.max_length} tokens"] += 1
        return length <= self.max_length

    def _fitting(self, unit: Unit) -> Unit | None:
        return unit if self.fits(max(len(branch) for branch in unit.branches)) else None


def unusable(record: Record) -> str | None:
    """Why no method can learn from a row, if none can."""
    if record.weight == 0:
        return "weight 0"
    if not any(_says_something(block) for block in record.action.blocks):
        return "the action is empty"
    return None


def _says_something(block: Block) -> bool:
    return bool(block.text.strip()) if isinstance(block, (Text, Reasoning)) else True


def _prefix(record: Record) -> str:
    """What a row shares with others: its tool list, or without tools its first user message."""
    return content_id(msgspec.to_builtins(record.tools or _opening(record)))


def _opening(record: Record) -> tuple[Message, ...]:
    place = next((k for k, message in enumerate(record.messages) if message.role == "user"), 0)
    return record.messages[: place + 1]


def hinted_unit(prompt: Tokens, hinted: Tokens, action: Tokens, *, weight: float = 1.0) -> Unit:
    """Student branch and hinted teacher branch over the same action tokens."""
    item = DivergenceItem(action_span(0, prompt, action), action_span(1, hinted, action), weight)
    return Unit(((*prompt, *action), (*hinted, *action)), (item,))


def sampled_unit(
    prompt: Tokens, tokens: Tokens, logprobs: Sequence[float], advantage: float | FloatsT, limit: int
) -> Unit:
    """One sampled completion; the ids in the loss are the ids that were sampled."""
    import numpy as np

    item = PolicyGradientItem(
        action_span(0, prompt, tokens), advantage, np.asarray(logprobs, dtype=np.float32), max_length=limit
    )
    return Unit(((*prompt, *tokens),), (item,))


def idle_unit(prompt: Tokens, length: int, limit: int) -> Unit:
    """A completion without advantage: it counts with its length, and costs no compute."""
    import numpy as np

    nothing = np.empty(0, dtype=np.float32)
    return Unit((tuple(prompt[:1]),), (PolicyGradientItem(Span(0, ()), 0.0, nothing, max_length=limit, length=length),))
