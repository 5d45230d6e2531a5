"""Log-probabilities of chosen tokens of a forest, without ever holding the (tokens, vocabulary) logits whole.

The head runs on chunks of positions, and each chunk but the last is computed again in the backward pass, so peak memory
is one chunk of logits whatever N is. The last one is the first that the backward pass needs, so it is kept instead.

Shapes: T tokens of the forest, N scored nodes, D hidden width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from postgrad.core.forest import Forest

HeadFunction = Callable[[Tensor], Tensor]


def token_logprobs(
    head: HeadFunction,
    hidden_TD: Tensor,
    forest: Forest,
    nodes_N: Sequence[int] | NDArray[np.int64],
    *,
    chunk: int = 256,
    temperature: float = 1.0,
) -> Tensor:
    """Log-probability of each node's token given its ancestors, at `temperature`: (N,), nats, fp32.

    Args:
        head: hidden (N, D) -> logits (N, V), as `Policy.head`.
        hidden_TD: hidden states in forest order, as `Policy.hidden_TD`.
        forest: the forest that `hidden_TD` belongs to.
        nodes_N: indices of the scored tokens; none may be a root, which has nothing before it.
        chunk: positions whose logits are held at one time.
        temperature: the logits are divided by it.
    """
    nodes = np.asarray(nodes_N, dtype=np.int64)
    parents = forest.parents_T[nodes]
    assert (parents >= 0).all(), "a root cannot be scored"
    before_ND = hidden_TD[torch.as_tensor(parents, device=hidden_TD.device)]
    targets_N = torch.as_tensor(forest.tokens_T[nodes], device=hidden_TD.device)

    def score(hidden_CD: Tensor, targets_C: Tensor) -> Tensor:
        logits_CV = head(hidden_CD) / temperature
        return logits_CV.gather(1, targets_C[:, None])[:, 0] - torch.logsumexp(logits_CV, dim=1)

    parts, starts = list[Tensor](), range(0, len(nodes), chunk)
    for start in starts:
        hidden_CD, targets_C = before_ND[start : start + chunk], targets_N[start : start + chunk]
        if torch.is_grad_enabled() and start != starts[-1]:
            parts.append(checkpoint(score, hidden_CD, targets_C, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(score(hidden_CD, targets_C))
    return torch.cat(parts) if len(nodes) else hidden_TD.new_zeros(0, dtype=torch.float32)
