"""Estimates of KL(π‖π0) from sampled tokens, one number a token, from Δ = log π0(y_t) − log π(y_t).

    k1 = −Δ              unbiased, of either sign
    k2 = Δ²/2            biased, and its gradient is that of KL(π‖π0) on samples of π
    k3 = e^Δ − Δ − 1     unbiased and never negative

In the reward k1 gives the gradient of KL(π‖π0) exactly. In the loss the gradient of k1 is ∇ log π, which is 0 on
average: there k2 and k3 are the ones that pull (k3 towards the gradient of KL(π0‖π)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

Estimator = Literal["k1", "k2", "k3"]


def k1(delta_N: Tensor) -> Tensor:
    """−Δ per token."""
    return -delta_N


def k2(delta_N: Tensor) -> Tensor:
    """Δ²/2 per token."""
    return delta_N.square() / 2


def k3(delta_N: Tensor) -> Tensor:
    """e^Δ − Δ − 1 ≥ 0 per token."""
    return torch.expm1(delta_N) - delta_N


KL_ESTIMATORS: Mapping[Estimator, Callable[[Tensor], Tensor]] = {"k1": k1, "k2": k2, "k3": k3}
