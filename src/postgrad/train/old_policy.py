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

from postgrad.core.annotation import FloatsT, Item, PolicyGradientItem, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, pack
from postgrad.train.channels import build_channels
from postgrad.train.config import TrainConfig
from postgrad.train.contracts import TrainablePolicy
from postgrad.train.precision import uses_bf16
from postgrad.train.scoring import scored_forest

Prepare = Callable[[Sequence[Unit]], Sequence[Unit]]
Asked = tuple[tuple[int, ...], tuple[int, ...]]
"""A branch, and the positions of its scored tokens."""


def preparation(policy: TrainablePolicy, config: TrainConfig) -> Prepare:
    """What is done to units when a buffer is filled with them: nothing unless a channel tells π_old from μ.

    Raises:
        ConfigError: an objective that cannot tell the policy from the one that sampled.
    """
    channels, _ = build_channels(config.channels)
    for channel in channels:
        if getattr(channel.objective, "on_policy", False):
            raise ConfigError(
                f"loop.reuse and the objective of channels.{channel.name} do not go together: it has no ratio, so what "
                "an older policy sampled would train this one as if it were its own",
                got=getattr(channel.objective, "objective", None),
                do="leave loop.reuse out, or take an objective with a ratio, such as dr_grpo",
            )
    if not any(getattr(channel.objective, "uses_old", False) for channel in channels):
        return list
    bf16 = uses_bf16(config.loop.dtype, next(policy.model.parameters()).device)
    return lambda units: with_old(policy, units, token_budget=config.loop.token_budget, autocast=bf16)


@torch.no_grad()
def with_old(
    policy: TrainablePolicy, units: Sequence[Unit], *, token_budget: int, autocast: bool = False
) -> list[Unit]:
    """`units` in their order, with the log-probabilities of `policy` as it is now in every item that has none.

    Packing stays in here: were its parts and its order handed on, `token_budget` would decide which step gets what.
    """
    device, found = next(policy.model.parameters()).device, dict[Asked, FloatsT]()
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
        for forest in pack(_alone(units), budget=token_budget):
            found |= _scored(policy, forest)

    def known(unit: Unit, item: Item) -> Item:
        return replace(item, old_T=found[_key(unit, item)]) if _wants(item) else item

    return [replace(unit, items=tuple(known(unit, item) for item in unit.items)) for unit in units]


def _alone(units: Sequence[Unit]) -> list[Unit]:
    """Every item that wants numbers as a unit of its own; what they share is shared again when they are packed."""
    wanting = [(unit.branches[item.span.branch], item) for unit in units for item in unit.items if _wants(item)]
    return [Unit((branch,), (replace(item, span=replace(item.span, branch=0)),)) for branch, item in wanting]


def _scored(policy: TrainablePolicy, forest: Forest) -> dict[Asked, FloatsT]:
    items = [(k, unit, item) for k, unit in enumerate(forest.units) for item in unit.items if _wants(item)]
    scored = scored_forest(policy, forest, policy.hidden_TD(forest))
    nodes = [scored.nodes(k, item.span) for k, _, item in items]
    old_N = scored.logprobs(np.concatenate(nodes)).cpu().numpy()
    parts = np.split(old_N, np.cumsum([len(own) for own in nodes])[:-1])
    return {_key(unit, item): part for (_, unit, item), part in zip(items, parts, strict=True)}


def _key(unit: Unit, item: PolicyGradientItem) -> Asked:
    return unit.branches[item.span.branch], item.span.positions


def _wants(item: Item) -> TypeGuard[PolicyGradientItem]:
    return isinstance(item, PolicyGradientItem) and item.old_T is None and item.weight != 0
