"""A channel on tokens whose log-probabilities are given numbers: its loss, and its gradient by each of them.

There is no model: the log-probabilities are the leaves of the graph, so the gradient is that of the loss alone.

Shapes: N tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from postgrad.core.forest import Forest
from postgrad.objectives.channel import Channel, IntsN, Placed, Scored


def loss_and_gradient(
    channel: Channel[Any],
    forest: Forest,
    items: Sequence[Placed[Any]],
    *,
    places: Mapping[int, int],
    probabilities: Sequence[float],
    references: Sequence[float],
) -> tuple[float, list[float]]:
    """The channel's loss over its count, and its gradient by the log-probabilities.

    Args:
        channel: what is measured.
        forest: the tokens.
        items: what the channel reads of it.
        places: node of the forest -> the token's place in the two lists.
        probabilities: of the N tokens under the policy.
        references: of the same under the reference.
    """
    leaf_N = torch.tensor(probabilities, dtype=torch.float64).log().requires_grad_()
    reference_N = torch.tensor(references, dtype=torch.float64).log()

    def picked(of: Tensor, nodes_N: IntsN) -> Tensor:
        return of[[places[int(node)] for node in nodes_N]]

    scored = Scored(
        forest,
        torch.zeros(len(forest), 1),
        lambda hidden_ND: hidden_ND,
        lambda nodes_N: picked(leaf_N, nodes_N),
        lambda nodes_N: picked(reference_N, nodes_N),
    )
    total, _ = channel.loss(scored, items)
    mean = total / max(1, channel.count([placed.item for placed in items]))
    (gradient_N,) = torch.autograd.grad(mean, leaf_N)
    return float(mean.detach()), gradient_N.tolist()
