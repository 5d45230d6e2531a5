"""The likeliest tokens at every place of a policy's own completion, as an API with log-probabilities gives them.

They are log-probabilities of the untempered distribution over the whole vocabulary, whatever a sample was drawn with.

Shapes: N scored tokens, C of a chunk, V vocabulary, D hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from postgrad.core.actor import TokenChoice
from postgrad.core.annotation import Unit
from postgrad.core.forest import build_forest
from postgrad.models.policy import Policy
from postgrad.models.token_texts import token_texts

_CHUNK = 64  # positions whose logits are held at one time


@torch.no_grad()
def top_tokens(policy: Policy, prompt: Sequence[int], tokens: Sequence[int], *, count: int) -> tuple[TokenChoice, ...]:
    """The `count` likeliest tokens at every place of `tokens` behind `prompt`, with their log-probabilities in nats."""
    if not tokens:
        return ()
    forest = build_forest([Unit(((*prompt, *tokens),))])
    before_ND = policy.hidden_TD(forest)[len(prompt) - 1 : len(forest) - 1]
    texts = token_texts(policy.tokenizer)
    found: list[TokenChoice] = []
    for start in range(0, len(tokens), _CHUNK):
        logprobs_CV = torch.log_softmax(policy.head(before_ND[start : start + _CHUNK]).float(), dim=-1)
        best = torch.topk(logprobs_CV, min(count, len(texts)), dim=-1)
        for row, token in enumerate(tokens[start : start + _CHUNK]):
            pairs = zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
            top = tuple((texts[other], value) for other, value in pairs if other < len(texts))
            found.append(TokenChoice(texts[token], float(logprobs_CV[row, token]), top))
    return tuple(found)
