"""KL divergence from the reference as a price on sampled tokens, for a reward.

Policy and reference score the same forest in the same way, so the price is exactly 0 where the two are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from postgrad.core.annotation import PolicyGradientItem, Unit
from postgrad.methods.layout import sampled_unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from postgrad.core.forest import Forest
    from postgrad.methods.completion import Completion
    from postgrad.models.policy import Policy
    from postgrad.objectives.kl import Estimator

FORWARD_TOKENS = 4096
"""Most tokens of one forward pass."""

Prices = tuple[float, ...]
Asked = tuple[tuple[int, ...], tuple[int, ...]]
"""A branch, and the positions of its sampled tokens."""


def kl_penalties(
    policy: Policy, completions: Sequence[Completion], estimator: Estimator, coefficient: float
) -> list[Prices]:
    """`coefficient` times the estimate of each sampled token, under the policy as it is."""
    from postgrad.core.forest import pack

    units = [sampled_unit(c.prompt, c.sample.tokens, c.sample.logprobs, 0.0, len(c.sample.tokens)) for c in completions]
    found: dict[Asked, Prices] = {}
    for forest in pack(units, budget=FORWARD_TOKENS):
        prices = _priced(policy, forest, estimator, coefficient)
        found |= {_asked(unit): price for unit, price in zip(forest.units, prices, strict=True)}
    return [found[_asked(unit)] for unit in units]


def _priced(policy: Policy, forest: Forest, estimator: Estimator, coefficient: float) -> list[Prices]:
    """Prices of the units of one forest."""
    import numpy as np
    import torch

    from postgrad.models.score import token_logprobs
    from postgrad.objectives.kl import KL_ESTIMATORS

    spans = [_sampled(unit, path) for unit, (path,) in zip(forest.units, forest.paths, strict=True)]
    nodes_N = np.concatenate(spans)

    def scored() -> Tensor:
        return token_logprobs(policy.head, policy.hidden_TD(forest), forest, nodes_N)

    with torch.no_grad():
        own_N = scored()
        with policy.reference():
            prices_N = coefficient * KL_ESTIMATORS[estimator](scored() - own_N)
    return [tuple(part.tolist()) for part in torch.split(prices_N, [len(span) for span in spans])]


def _sampled(unit: Unit, path: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nodes of the completion of one unit."""
    _, positions = _asked(unit)
    return path[list(positions)]


def _asked(unit: Unit) -> Asked:
    """What is priced of a unit: packing may give back an equal unit, not the same one."""
    (branch,), (item,) = unit.branches, unit.items
    assert isinstance(item, PolicyGradientItem)
    return branch, item.span.positions
