"""A `Scored` forest whose logits are given by hand: hidden states ARE the logits, the head is the identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from postgrad.core.annotation import Unit
from postgrad.core.forest import Forest, build_forest
from postgrad.models.score import token_logprobs
from postgrad.objectives.channel import Placed, Scored


def identity(hidden_ND: Tensor) -> Tensor:
    return hidden_ND


def scored_by_hand(
    units: Sequence[Unit],
    logits: Callable[[Forest], Tensor],
    *,
    reference: Callable[[Forest], Tensor] | None = None,
    head: Callable[[Tensor], Tensor] = identity,
) -> tuple[Scored, Tensor]:
    """The scored forest of `units` and its logits (T, V), a leaf that takes gradients."""
    forest = build_forest(units)
    logits_TV = logits(forest).detach().requires_grad_()
    reference_TV = (reference or logits)(forest).detach()
    return Scored(
        forest,
        logits_TV,
        head,
        lambda nodes_N: token_logprobs(head, logits_TV, forest, nodes_N),
        lambda nodes_N: token_logprobs(head, reference_TV, forest, nodes_N).detach(),
    ), logits_TV


def placed(units: Sequence[Unit]) -> list[Placed]:
    return [Placed(k, item) for k, unit in enumerate(units) for item in unit.items]


def uniform(vocabulary: int) -> Callable[[Forest], Tensor]:
    return lambda forest: torch.zeros(len(forest), vocabulary, dtype=torch.float64)


def normal(vocabulary: int, *, seed: int = 0) -> Callable[[Forest], Tensor]:
    return lambda forest: torch.randn(
        len(forest), vocabulary, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
