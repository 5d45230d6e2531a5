"""Student and teacher must speak of the same tokens: what is checked before a row is laid out.

An action has the same token ids in both contexts by construction. That they also spell the same text after both is
checked by decoding: a tokenizer may join a token with what stands before it. A teacher that was logged must have been
logged over the very tokens that the student's renderer gives the action. And a teacher that reads the student's own
context must be another than the student.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from postgrad.core.annotation import LoggedTeacher
from postgrad.core.errors import ConfigError
from postgrad.core.record import SoftTargets

if TYPE_CHECKING:
    from postgrad.models.render import Renderer

Tokens = Sequence[int]
NEAR = 16  # tokens of a context that are decoded with the action; joins do not reach further


def reads_alike(renderer: Renderer, context: Tokens, other: Tokens, action: Tokens) -> bool:
    """Whether `action` spells the same text after both contexts."""
    return _spelt(renderer, context, action) == _spelt(renderer, other, action)


def logged_over(renderer: Renderer, soft: SoftTargets, action: Tokens) -> int:
    """How many tokens of `action` the logged teacher covers: all, or all but the stop token; 0 if it covers others."""
    covered = [tokens for tokens in (list(action), list(action[:-1])) if tokens == list(soft.tokens)]
    if not covered or not soft.tokens or renderer.decode(soft.tokens) != renderer.decode(action):
        return 0
    return len(soft.tokens)


def logged_teacher(soft: SoftTargets) -> LoggedTeacher:
    """Soft targets of a record as arrays; tokens with fewer named continuations are padded."""
    import numpy as np

    widest = max(len(row) for row in soft.ids)
    ids_NK = np.full((len(soft.ids), widest), -1, dtype=np.int64)
    logprobs_NK = np.full((len(soft.ids), widest), -np.inf, dtype=np.float32)
    for place, (ids, logprobs) in enumerate(zip(soft.ids, soft.logprobs, strict=True)):
        ids_NK[place, : len(ids)] = ids
        logprobs_NK[place, : len(ids)] = logprobs
    return LoggedTeacher(ids_NK, logprobs_NK, np.array(soft.tails, dtype=np.float32))


def refuse_own_teacher(divergence: Mapping[str, Any]) -> None:
    """Settings of the channel under which the policy would teach itself in its own context.

    Raises:
        ConfigError: the teacher is live.
    """
    if dict(divergence.get("teacher") or {}).get("kind", "live") == "live":
        raise ConfigError(
            "a live teacher in the student's own context is the student",
            got="channels.divergence.teacher.kind: live",
            expected="model (with teacher.model), or a copy: frozen, ema, reference",
        )


def _spelt(renderer: Renderer, context: Tokens, action: Tokens) -> str:
    near = list(context[-NEAR:])
    whole, before = (
        str(renderer.tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))
        for tokens in ([*near, *action], near)
    )
    return whole.removeprefix(before)
