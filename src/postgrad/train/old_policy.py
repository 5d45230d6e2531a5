"""π_old: what the policy that sampled gives its tokens, as the trainer computes it, kept before the weights move.

A correction for another engine weighs π_old/μ, and the ratio that a bound holds is π/π_old. Where every batch is one
step, π_old is the policy of that step itself. In a buffer the weights move between a completion's first use and its
last, so π_old is written into the items when the buffer is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeGuard

import numpy as np
import torch

from postgrad.core.annotation import Item, PolicyGradientItem, Unit
from postgrad.core.forest import Forest, pack
from postgrad.train.channels import build_channels
from postgrad.train.config import TrainConfig
from postgrad.train.contracts import TrainablePolicy
from postgrad.train.precision import uses_bf16
from postgrad.train.scoring import scored_forest

Prepare = Callable[[Sequence[Unit]], Sequence[Unit]]


def preparation(policy: TrainablePolicy, config: TrainConfig) -> Prepare:
    """What is done to units when a buffer is filled with them: nothing unless a channel tells π_old from μ."""
    channels, _ = build_channels(config.channels)
    if not any(getattr(channel.objective, "uses_old", False) for channel in channels):
        return list
    bf16 = uses_bf16(config.loop.dtype, next(policy.model.parameters()).device)
    return lambda units: with_old(policy, units, token_budget=config.loop.token_budget, autocast=bf16)


@torch.no_grad()
def with_old(
    policy: TrainablePolicy, units: Sequence[Unit], *, token_budget: int, autocast: bool = False
) -> list[Unit]:
    """`units` as they are packed, with the log-probabilities of `policy` as it is now in every item that has none."""
    device = next(policy.model.parameters()).device
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
        return [unit for forest in pack(units, budget=token_budget) for unit in _scored(policy, forest)]


def _scored(policy: TrainablePolicy, forest: Forest) -> list[Unit]:
    wanting = [(k, item.span) for k, unit in enumerate(forest.units) for item in unit.items if _wants(item)]
    if not wanting:
        return list(forest.units)
    scored = scored_forest(policy, forest, policy.hidden_TD(forest))
    nodes = [scored.nodes(k, span) for k, span in wanting]
    old_N = scored.logprobs(np.concatenate(nodes)).cpu().numpy()
    parts = iter(np.split(old_N, np.cumsum([len(own) for own in nodes])[:-1]))
    return [
        replace(unit, items=tuple(replace(item, old_T=next(parts)) if _wants(item) else item for item in unit.items))
        for unit in forest.units
    ]


def _wants(item: Item) -> TypeGuard[PolicyGradientItem]:
    return isinstance(item, PolicyGradientItem) and item.old_T is None and item.weight != 0
