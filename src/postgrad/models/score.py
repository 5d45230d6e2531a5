"""Log-probabilities of chosen tokens of a forest, without ever holding the (tokens, vocabulary) logits whole.

The head runs on chunks of positions. The last ones, which the backward pass needs first, keep their logits: as many as
`KEPT_LOGITS` says, but at least one chunk. All others are computed again in the backward pass, so peak memory is a few
chunks of logits whatever N is. A chunk's gradient is written in closed form, softmax minus one-hot, into one buffer.
A head that is trained costs a pass over its whole gradient for every chunk, so its chunks are as large as may be kept.

Shapes: T tokens of the forest, N scored nodes, D hidden width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from postgrad.core.forest import Forest

HeadFunction = Callable[[Tensor], Tensor]
KEPT_LOGITS = 1 << 25
"""Most logits that wait for the backward pass, unless a single chunk has more: 128 MB in fp32."""
TILE = 1 << 21
"""Logits that a CPU's cache holds beside others: 8 MB in fp32."""
CHUNK = 256
"""Positions of one product with the head: 50 MB of logits in fp32 at a vocabulary of 49k."""


def token_logprobs(
    head: HeadFunction,
    hidden_TD: Tensor,
    forest: Forest,
    nodes_N: Sequence[int] | NDArray[np.int64],
    *,
    chunk: int | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """Log-probability of each node's token given its ancestors, at `temperature`: (N,), nats, fp32.

    Args:
        head: hidden (N, D) -> logits (N, V), as `Policy.head`.
        hidden_TD: hidden states in forest order, as `Policy.hidden_TD`.
        forest: the forest that `hidden_TD` belongs to.
        nodes_N: indices of the scored tokens; none may be a root, which has nothing before it.
        chunk: positions whose logits are held at one time; None is `CHUNK`, or more beside a head that is trained.
        temperature: the logits are divided by it.
    """
    nodes = np.asarray(nodes_N, dtype=np.int64)
    parents = forest.parents_T[nodes]
    assert (parents >= 0).all(), "a root cannot be scored"
    before_ND = hidden_TD[torch.as_tensor(parents, device=hidden_TD.device)]
    targets_N = torch.as_tensor(forest.tokens_T[nodes], device=hidden_TD.device)

    def score(hidden_CD: Tensor, targets_C: Tensor) -> Tensor:
        logits_CV = head(hidden_CD)
        chosen: Callable[..., Tensor] = _Chosen.apply
        return chosen(logits_CV if temperature == 1 else logits_CV / temperature, targets_C)

    if not len(nodes):
        return hidden_TD.new_zeros(0, dtype=torch.float32)
    rows, kept = _chunks(head, before_ND, chunk)
    parts, starts = list[Tensor](), range(0, len(nodes), rows)
    for place, start in enumerate(starts):
        hidden_CD, targets_C = before_ND[start : start + rows], targets_N[start : start + rows]
        if place < len(starts) - kept:
            parts.append(checkpoint(score, hidden_CD, targets_C, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(score(hidden_CD, targets_C))
    return torch.cat(parts)


def _chunks(head: HeadFunction, hidden_ND: Tensor, chunk: int | None) -> tuple[int, int]:
    """Positions of a chunk, and how many chunks keep their logits."""
    rows = chunk or CHUNK
    if len(hidden_ND) <= rows or not torch.is_grad_enabled():
        return rows, len(hidden_ND)
    logits_1V = head(hidden_ND[:1].detach())
    most = KEPT_LOGITS // logits_1V.shape[-1]
    if chunk is None and logits_1V.requires_grad:
        rows = max(rows, most)
    return rows, max(1, most // rows)


class _Chosen(torch.autograd.Function):
    """log softmax(logits)[target] of every row; the gradient takes one buffer, which is written tile by tile."""

    @staticmethod
    def forward(ctx: Any, logits_CV: Tensor, targets_C: Tensor) -> Tensor:
        sums_C = torch.cat(
            [torch.logsumexp(tile_RV, dim=1) for tile_RV in torch.split(logits_CV, _tile_rows(logits_CV))]
        )
        ctx.save_for_backward(logits_CV, targets_C, sums_C)
        return logits_CV.gather(1, targets_C[:, None])[:, 0] - sums_C

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        logits_CV, targets_C, sums_C = ctx.saved_tensors
        slopes_CV, upstream_C1 = torch.empty_like(logits_CV), upstream[0][:, None]
        tiles = (whole.split(_tile_rows(logits_CV)) for whole in (logits_CV, sums_C[:, None], upstream_C1, slopes_CV))
        for logits_RV, sums_R1, upstream_R1, slopes_RV in zip(*tiles, strict=True):
            torch.sub(logits_RV, sums_R1, out=slopes_RV).exp_().mul_(-upstream_R1)
        return slopes_CV.scatter_add_(1, targets_C[:, None], upstream_C1), None


def _tile_rows(logits_CV: Tensor) -> int:
    """Rows that go through several passes before the next ones do: on a CPU those that its cache holds."""
    return max(1, TILE // logits_CV.shape[1]) if logits_CV.device.type == "cpu" else max(1, len(logits_CV))
