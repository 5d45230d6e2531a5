"""Correction for a sampler that is another engine: weights on the policy loss from r_t = π_old(y_t)/μ(y_t).

μ is what the engine reports; π_old is the same policy as the trainer computes it. The two differ by kernels, precision
and lag, and a policy gradient that takes one for the other is biased.

    tis            w_t = min(r_t, C)                   truncated importance sampling
    mis            w_t = r_t where r_t ≤ C, else 0     masked importance sampling
    sequence_tis   w   = min(Π_t r_t, C)
    sequence_mask  w   = Π_t r_t where it is ≤ C, else 0: the whole completion is dropped

The weights are constants, they multiply the policy term only (not a KL term, not an entropy bonus), and a dropped token
stays in the denominators: what the engine does must not change how much the others count.

Not covered: lower bounds (IcePop), geometric means of sequence ratios.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from postgrad.objectives.surrogates import LARGEST_LOG_RATIO, Tokens

Correction = Literal["none", "tis", "mis", "sequence_tis", "sequence_mask"]
TOKEN_LEVEL: tuple[Correction, ...] = ("tis", "mis")


@torch.no_grad()
def mismatch_weights(tokens: Tokens, correction: Correction, cap: float) -> tuple[Tensor, Tensor]:
    """Weight of each token, and whether the cap took hold there: (N,) twice."""
    log_r_N = tokens.old_N - tokens.behaviour_N
    if correction not in TOKEN_LEVEL:
        log_r_N = tokens.spread(tokens.sums(log_r_N))
    ratios_N = log_r_N.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp()
    beyond_N = ratios_N > cap
    if correction in ("tis", "sequence_tis"):
        return ratios_N.clamp(max=cap), beyond_N
    return torch.where(beyond_N, 0.0, ratios_N), beyond_N
