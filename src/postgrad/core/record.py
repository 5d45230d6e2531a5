"""`Record`: one row of training data, never flattened to a prompt string and a response string."""

from __future__ import annotations

import msgspec

from postgrad.core.message import Message, Tool


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a row came from: trace and step, the rule that made it, the teachers behind it."""

    trace: str = ""
    step: int = -1
    rule: str = ""
    teachers: tuple[str, ...] = ()
    agreement: float | None = None


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Context, the action to learn, optionally the action to unlearn and a hint.

    ``action`` alone is a row for cross-entropy; with ``rejected`` it is a preference pair; with ``hint`` it
    is a row for self-distillation, where ``action`` is the student's own and the hint, set before it, turns
    the same weights into the teacher.
    """

    messages: tuple[Message, ...]
    action: Message
    tools: tuple[Tool, ...] = ()
    rejected: Message | None = None
    hint: str | None = None
    weight: float = 1.0
    provenance: Provenance = Provenance()
