"""How likely a policy holds continuations to be, each behind a prompt of its own; what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from postgrad.core.annotation import Unit
from postgrad.core.forest import build_forest
from postgrad.models.policy import Policy
from postgrad.models.score import token_logprobs

Tokens = Sequence[int]


@torch.no_grad()
def continuation_logprobs(policy: Policy, pairs: Sequence[tuple[Tokens, Tokens]]) -> list[float]:
    """Log-probability, in nats, of the second of each pair behind the first; none may be empty."""
    forest = build_forest([Unit(tuple((*prompt, *tokens) for prompt, tokens in pairs))])
    hidden_TD = policy.hidden_TD(forest)
    return [
        float(token_logprobs(policy.head, hidden_TD, forest, path[-len(tokens) :]).sum())
        for path, (_, tokens) in zip(forest.paths[0], pairs, strict=True)
    ]
