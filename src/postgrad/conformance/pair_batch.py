"""The input of all preference cases: tokens with round probabilities, and our channel on them.

    action      π           π0          r = Σ log π/π0
    chosen      1/2, 1/4    1/4, 1/4    ln 2
    rejected    1/8         1/4         −ln 2
    mismatched  1/2         1/4         ln 2        (kto: the chosen action's prompt, another's completion)

The chosen action has two tokens and the rejected one has one. Gradients are those by the log π of the three tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from postgrad.core.annotation import JudgedItem, PreferenceItem, Span, Unit
from postgrad.core.forest import build_forest
from postgrad.objectives.channel import IntsN, Placed, Scored
from postgrad.objectives.preference import Preference

CHOSEN, REJECTED, MISMATCHED = (1 / 2, 1 / 4), (1 / 8,), (1 / 2,)
REFERENCES = (1 / 4,)
TOKENS = (11, 12, 21, 31)  # of the four actions' tokens; all differ, so none is shared


def measured(channel: Preference) -> list[float]:
    """Our loss over its count, then its gradient by the log-probabilities of the chosen and the rejected tokens."""
    spans = (Span(0, (1, 2)), Span(1, (1,)), Span(2, (1,)))
    branches = ((0, *TOKENS[:2]), (0, TOKENS[2]), (0, TOKENS[3]))
    item: PreferenceItem | JudgedItem = PreferenceItem(*spans[:2])
    if channel.objective == "kto":
        item = JudgedItem((spans[0],), (spans[1],), (spans[2],))
    unit = Unit(branches, (item,))
    forest = build_forest([unit])
    leaf_N = torch.tensor(logs([*CHOSEN, *REJECTED, *MISMATCHED]), dtype=torch.float64, requires_grad=True)
    reference_N = torch.tensor(logs([*REFERENCES * 4]), dtype=torch.float64)

    def picked(of: Tensor, nodes_N: IntsN) -> Tensor:
        return of[[TOKENS.index(int(forest.tokens_T[node])) for node in nodes_N]]

    scored = Scored(
        forest,
        torch.zeros(len(forest), 1),
        lambda hidden_ND: hidden_ND,
        lambda nodes_N: picked(leaf_N, nodes_N),
        lambda nodes_N: picked(reference_N, nodes_N),
    )
    total, _ = channel.loss(scored, [Placed(0, item)])
    mean = total / channel.count([item])
    (gradient_N,) = torch.autograd.grad(mean, leaf_N)
    return [float(mean.detach()), *gradient_N[:3].tolist()]


def logs(values: Sequence[float]) -> list[float]:
    """Their natural logarithms."""
    return [math.log(value) for value in values]
