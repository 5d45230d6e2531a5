"""Entropy of the next-token distributions, for a bonus: the head in chunks that the backward pass makes again.

    H_t = − Σ_v p(v) log p(v) = logsumexp(z) − Σ_v p(v) z_v

Shapes: N scored tokens, C tokens of a chunk, D hidden size, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from postgrad.objectives.channel import IntsN, Scored

CHUNK = 256


def token_entropies(scored: Scored, nodes_N: IntsN) -> Tensor:
    """Entropy of the distribution that each node was drawn from: (N,), nats, with gradient."""
    if not len(nodes_N):
        return scored.hidden_TD.new_zeros(0, dtype=torch.float32)

    def of(hidden_CD: Tensor) -> Tensor:
        return entropies(scored.head(hidden_CD))

    chunks = torch.split(scored.predicting_ND(nodes_N), CHUNK)
    return torch.cat([checkpoint(of, chunk, use_reentrant=False, preserve_rng_state=False) for chunk in chunks])


def entropies(logits_NV: Tensor) -> Tensor:
    """Entropy of each row (N,) from logits; a logit of minus infinity is an outcome that cannot be."""
    logprobs_NV = logits_NV.log_softmax(-1)
    return -(logprobs_NV.exp() * logprobs_NV.clamp(min=torch.finfo(logprobs_NV.dtype).min)).sum(-1)
