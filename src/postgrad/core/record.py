"""`Record`: one row of training data, never flattened to a prompt string and a response string."""

from __future__ import annotations

import msgspec

from postgrad.core.message import Message, Tool
from postgrad.core.trace import Fidelity


class Provenance(msgspec.Struct, frozen=True):
    """Where a row came from: trace and step, the rule that made it, who stands behind it.

    `teachers` are the models that agreed, a person, or ``trace`` where the trace itself shows it; `agreement` is their
    share (None: nobody was asked), `why` the reason in words (for a correction the user's), `cost` what the answers at
    this step cost in US dollars (0: nobody was paid; None: not known), `fidelity` how exactly the context is known.
    Every row is written with all of them.
    """

    trace: str = ""
    step: int = -1
    rule: str = ""
    teachers: tuple[str, ...] = ()
    agreement: float | None = None
    why: str = ""
    cost: float | None = None
    fidelity: Fidelity | None = None


class SoftTargets(msgspec.Struct, frozen=True, omit_defaults=True):
    """A teacher's next-token distributions over an action, in the student's vocabulary.

    T tokens of the action, as the student's tokenizer writes it. Per token the `k` likeliest continuations that the
    teacher named, with their natural logarithms, and as the tail the logarithm of what all others have together.
    `student` names the tokenizer.
    """

    teacher: str
    student: str
    tokens: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]
    logprobs: tuple[tuple[float, ...], ...]
    tails: tuple[float, ...]


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Context, the action to learn, optionally the action to unlearn and a hint.

    ``action`` alone is a row for cross-entropy; with ``rejected`` it is a preference pair; with ``hint`` it
    is a row for self-distillation, where ``action`` is the student's own and the hint, set before it, turns
    the same weights into the teacher. ``soft`` are a teacher's distributions over the tokens of ``action``.
    """

    messages: tuple[Message, ...]
    action: Message
    tools: tuple[Tool, ...] = ()
    rejected: Message | None = None
    hint: str | None = None
    weight: float = 1.0
    provenance: Provenance = Provenance()
    soft: SoftTargets | None = None


def record_fault(record: Record) -> str | None:
    """What makes a row mean something else than a row can: who acted, calls of one id, a hint that says nothing.

    Traces have ids of their own for calls, whatever a provider gave them; a row from elsewhere may not.
    """
    for name, message in (("action", record.action), ("rejected", record.rejected)):
        if message is not None and message.role != "assistant":
            return f"its {name} is of role '{message.role}', expected 'assistant'"
    for place, message in enumerate((*record.messages, record.action, record.rejected)):
        if message is not None and (twice := _repeated_id(message)) is not None:
            after = place - len(record.messages)
            name = f"messages.{place}" if after < 0 else ("action", "rejected")[after]
            return f"its {name} has two tool calls with the id '{twice}', expected an id for each"
    if record.hint is not None and not record.hint.strip():
        return "its hint is empty, expected words, or no hint"
    return None


def _repeated_id(message: Message) -> str | None:
    """The first id that two calls of a message share: a result that names it could be either's."""
    seen: set[str] = set()
    for call in message.tool_calls:
        if call.id in seen:
            return call.id
        seen.add(call.id)
    return None
