"""Hidden states of a forest with gradients only where some channel takes them.

A teacher in the forest (the same action after a hint) is read and not trained: nothing flows back into tokens that
only teacher branches hold. So those are computed in a pass of their own without gradient, which keeps nothing and has
no backward pass; what they share with the student is taken from the student's pass, bit for bit. Where repeating the
shared context would cost more than it saves, there is one pass for all.

Shapes: T tokens of the forest, D hidden size.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from postgrad.core.annotation import DivergenceItem, Item, branches_of
from postgrad.core.forest import Forest, ancestors
from postgrad.train.contracts import TrainablePolicy


def hidden_states(policy: TrainablePolicy, forest: Forest) -> Tensor:
    """Final hidden states (T, D) in forest order; with gradient where `learning_T` says so."""
    learns_T = learning_T(forest)
    if learns_T.all() or not learns_T.any():
        return policy.hidden_TD(forest)
    (taught, taught_N), (read, read_N) = (ancestors(forest, np.flatnonzero(part)) for part in (learns_T, ~learns_T))
    if len(read) - len(read_N) >= len(read_N):
        return policy.hidden_TD(forest)
    with torch.no_grad():
        rest_ND = policy.hidden_TD(read)[torch.from_numpy(read_N)]
    own_ND = policy.hidden_TD(taught)[torch.from_numpy(taught_N)]
    places_T = np.empty(len(forest), dtype=np.int64)
    places_T[learns_T] = np.arange(len(own_ND))
    places_T[~learns_T] = np.arange(len(own_ND), len(forest))
    return torch.cat([own_ND, rest_ND])[torch.from_numpy(places_T).to(own_ND.device)]


def learning_T(forest: Forest) -> NDArray[np.bool_]:
    """Which tokens (T,) lie on a branch that an item trains; a divergence reads its teacher without gradient."""
    learns_T = np.zeros(len(forest), dtype=np.bool_)
    for unit, paths in zip(forest.units, forest.paths, strict=True):
        for item in unit.items:
            for branch in _trained(item):
                learns_T[paths[branch]] = True
    return learns_T


def _trained(item: Item) -> tuple[int, ...]:
    return (item.student.branch,) if isinstance(item, DivergenceItem) else branches_of(item)
