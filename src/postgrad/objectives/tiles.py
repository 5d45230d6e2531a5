"""Losses over whole next-token distributions without ever holding them: tile by tile, forward and backward in one go.

Every row's loss is a function of that row's logits alone, and knows its own gradient in closed form. So a tile of
logits is made, turned into losses and gradients, sent back through the head, and dropped; what stays is the gradient
at the hidden states (N, D). The head is applied once, not once more for a backward pass, and peak memory is a few tiles
whatever N and V are: a tile has a fixed number of elements, so a larger vocabulary makes it shorter. A head that is
trained costs a pass over its whole gradient for every tile, so its tiles are larger, a quarter of that gradient.

Shapes: N rows, C rows of a tile, D hidden size, V vocabulary.
Not covered: gradients of gradients; heads whose rows depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Head = Callable[[Tensor], Tensor]
RowLoss = Callable[[Tensor, slice], tuple[Tensor, Tensor]]
"""Logits (C, V) of the rows in the slice to their losses (C,) and to d loss / d logits (C, V)."""

TILE = 1 << 21  # elements: 8 MB in fp32, 42 rows at a vocabulary of 49k


def tile_for(trained: int) -> int:
    """Logits to hold at one time, beside a head of which so many weights are trained."""
    return max(TILE, trained // 4)


def tiled_loss(
    head: Head, hidden_ND: Tensor, weights_N: Tensor, row_loss: RowLoss, *, tile: int | None = None
) -> tuple[Tensor, Tensor]:
    """Σ w_n loss_n with its gradient, and the loss of every row (N,) without.

    Args:
        head: hidden states (N, D) to logits (N, V), row by row.
        hidden_ND: hidden states, with gradient.
        weights_N: constants.
        row_loss: see `RowLoss`.
        tile: most logits held at one time; None is as `tile_for` says.
    """
    if not len(hidden_ND):
        return hidden_ND.sum() * 0, hidden_ND.new_zeros(0)
    apply: Callable[..., tuple[Tensor, Tensor]] = _TiledLoss.apply
    trained = head_parameters(head, hidden_ND)
    size = tile or tile_for(sum(parameter.numel() for parameter in trained))
    return apply(hidden_ND, weights_N, head, row_loss, size, *trained)


def row_slices(head: Head, hidden_ND: Tensor, tile: int) -> Iterator[slice]:
    """Slices of rows whose logits have at most `tile` elements, but at least one row."""
    with torch.no_grad():
        width = head(hidden_ND[:1]).shape[-1]
    rows = max(1, tile // width)
    return (slice(first, min(first + rows, len(hidden_ND))) for first in range(0, len(hidden_ND), rows))


def with_gradient(row_loss: RowLoss, logits_NV: Tensor) -> Tensor:
    """Losses (N,) of logits that are at hand as a whole, differentiable."""
    apply: Callable[..., Tensor] = _ClosedForm.apply
    return apply(logits_NV, row_loss)


def head_parameters(head: Head, hidden_ND: Tensor) -> list[Tensor]:
    """The trainable weights that `head` uses, found in the graph of one row."""
    with torch.enable_grad():
        logits_1V = head(hidden_ND[:1].detach())
    found: dict[int, Tensor] = {}
    stack, seen = [logits_1V.grad_fn], set[Any]()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        stack.extend(parent for parent, _ in node.next_functions)
    return list(found.values())


class _TiledLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weights_N: Tensor, head: Head, row_loss: RowLoss, tile: int, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        gradient_ND = torch.zeros_like(hidden_ND)
        gradients = [torch.zeros_like(parameter) for parameter in parameters]
        losses = []
        for rows in row_slices(head, hidden_ND, tile):
            with torch.set_grad_enabled(wanted):
                leaf_CD = hidden_ND[rows].detach().requires_grad_(wanted)
                logits_CV = head(leaf_CD)
            losses_C, slopes_CV = row_loss(logits_CV.detach(), rows)
            losses.append(losses_C)
            if wanted:
                slopes_CV.mul_(weights_N[rows, None])
                leaves = [leaf_CD, *parameters]
                found = torch.autograd.grad(logits_CV, leaves, slopes_CV.to(logits_CV.dtype), allow_unused=True)
                for total, part in zip([gradient_ND[rows], *gradients], found, strict=True):
                    if part is not None:
                        total.add_(part)
        losses_N = torch.cat(losses)
        ctx.save_for_backward(gradient_ND, *gradients)
        ctx.mark_non_differentiable(losses_N)
        return (weights_N * losses_N).sum(), losses_N

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradient_ND, *gradients = (saved * upstream[0] for saved in ctx.saved_tensors)
        return gradient_ND, None, None, None, None, *gradients


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, row_loss: RowLoss) -> Tensor:
        losses_N, slopes_NV = row_loss(logits_NV, slice(0, len(logits_NV)))
        ctx.save_for_backward(slopes_NV)
        return losses_N

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        (slopes_NV,) = ctx.saved_tensors
        return upstream[0][:, None] * slopes_NV, None
