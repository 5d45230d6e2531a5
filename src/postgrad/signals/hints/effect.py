"""The effect gate of hints: does the student, hinted, do better than without the hint?

Where a better action is known (the recovery, else the teachers'), its log-probability must rise by the hint; where none
is, that of the student's own wrong action must fall:

    gain = [log p(better | context + hint) - log p(better | context)] / tokens        or with the wrong action, negated

in nats a token. Rows that do not fit into the student's context cannot be measured, and what was not measured does not
pass.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from postgrad.core.message import Message
from postgrad.core.record import Record

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


@dataclass
class EffectGate:
    """Measures hints under `policy`.

    Attributes:
        least: smallest gain that counts as an effect, in nats a token; a gain must be above it.
        measured: how many hints were measured by which action ("better", "own"), and how many could not be.
        gains: the gains measured, in order.
    """

    policy: Policy
    least: float = 0.0
    measured: Counter[str] = field(default_factory=Counter)
    gains: list[float] = field(default_factory=list)

    def __call__(self, row: Record, better: Message | None) -> str | None:
        """Why the hint of `row` does no good: "no_effect", "effect_unmeasured"; None where it does.

        Raises:
            DataError: the student's chat template refuses the conversation.
        """
        gain = self.gain(row, better)
        if gain is None:
            self.measured["unmeasured"] += 1
            return "effect_unmeasured"
        self.measured["own" if better is None else "better"] += 1
        self.gains.append(gain)
        return None if gain > self.least else "no_effect"

    def gain(self, row: Record, better: Message | None) -> float | None:
        """Nats a token that the hint is good for, None where the row does not fit into the student's context."""
        from postgrad.models.continuations import continuation_logprobs

        renderer = self.policy.renderer
        action = renderer.action(row.action if better is None else better)
        prompts = [renderer.prompt(row.messages, row.tools, hint=hint) for hint in (None, row.hint)]
        if max(map(len, prompts)) + len(action) > self.policy.context_length:
            return None
        plain, hinted = continuation_logprobs(self.policy, [(prompt, action) for prompt in prompts])
        gain = (hinted - plain) / len(action)
        return gain if better is not None else -gain
