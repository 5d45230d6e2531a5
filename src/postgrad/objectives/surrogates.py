"""Surrogates: what one sampled token, or one completion, adds to a policy loss, before anything is averaged.

With ρ_t = π(y_t)/π_old(y_t), advantage A_t, μ the sampler, sg a stopped gradient, T the completion's length:

    Reinforce        −A_t log π(y_t)
    Clipped          −min(ρ_t A_t, clip(ρ_t, 1−ε_low, 1+ε_high) A_t); with dual clip c, for A_t < 0 at most −c A_t
    SequenceClipped  the same with s = exp(1/T Σ_t log ρ_t) for ρ_t: one number for the whole completion
    TokenSequence    the same with s_t = sg(s) π(y_t)/sg(π(y_t)): s with a gradient, and an advantage, for each token
    TruncatedWeight  −sg(clip(ρ_t, 1−ε_low, 1+ε_high)) A_t log π(y_t); without ε_low there is no lower bound
    SoftGate         −(4/τ) σ(τ(ρ_t − 1)) A_t, τ one of two by the sign of A_t: slope 1 at ρ_t = 1
    GeometricMean    −A exp(1/T Σ_t l_t), l_t = log ρ_t clipped to [−ε_low, ε_high] on the side that A would push it to
    ProbabilityMask  −A_t π/μ, and 0 where A_t > 0 and π−μ > ε_high or A_t < 0 and π−μ < −ε_low; + τ (log π/μ)²

A surrogate is a frozen class: its fields are the settings it reads (None: off), and no other setting is accepted with
it. A loss of a whole completion is given to each of its tokens; its mean over them is that loss.

Log-ratios are held within ±20, so that a ratio is finite (e^20 is 5e8) where the sampler found a token impossible.

Shapes: N scored tokens of all completions, S completions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

LARGEST_LOG_RATIO = 20.0


@dataclass(frozen=True)
class Tokens:
    """The scored tokens of several completions, one after the other.

    Attributes:
        logprobs_N: log π, with gradient.
        old_N: log π_old, the policy that ratios are taken to.
        behaviour_N: log μ, the sampler.
        advantages_N: credit of each token.
        owners_N: completion of each token.
        lengths_S: tokens of each completion.
    """

    logprobs_N: Tensor
    old_N: Tensor
    behaviour_N: Tensor
    advantages_N: Tensor
    owners_N: Tensor
    lengths_S: Tensor

    @property
    def log_ratios_N(self) -> Tensor:
        """The logarithm of ρ_t."""
        return _held(self.logprobs_N - self.old_N)

    def sums(self, values_N: Tensor) -> Tensor:
        """Sum over each completion: (S,)."""
        return values_N.new_zeros(len(self.lengths_S)).index_add(0, self.owners_N, values_N)

    def means(self, values_N: Tensor) -> Tensor:
        """Mean over each completion, 0 for an empty one: (S,)."""
        return self.sums(values_N) / self.lengths_S.clamp(min=1)

    def spread(self, values_S: Tensor) -> Tensor:
        """Each completion's number at each of its tokens: (N,)."""
        return values_S[self.owners_N]


class Losses(NamedTuple):
    """Loss of each token, and whether the surrogate's rule took its gradient away or bounded it: (N,) twice."""

    losses_N: Tensor
    bounded_N: Tensor


class Surrogate(Protocol):
    """What it compares with.

    `by_sequence`: one ratio, and so one advantage, for a completion. `from_sampler`: it compares with μ itself.
    `on_policy`: it has no ratio, so samples of an older policy would be taken for the policy's own.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    by_sequence: ClassVar[bool]
    from_sampler: ClassVar[bool]
    on_policy: ClassVar[bool]

    def __call__(self, tokens: Tokens) -> Losses:
        """Losses to minimise."""
        ...


class _TokenRatios:
    """What most have: a ratio for each token, to the old policy."""

    by_sequence: ClassVar[bool] = False
    from_sampler: ClassVar[bool] = False
    on_policy: ClassVar[bool] = False


@dataclass(frozen=True)
class Reinforce(_TokenRatios):
    """REINFORCE; no ratio, so nothing to clip."""

    on_policy: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Losses:
        """−A log π."""
        losses_N = -tokens.advantages_N * tokens.logprobs_N
        return Losses(losses_N, torch.zeros_like(losses_N, dtype=torch.bool))


@dataclass(frozen=True)
class Clipped(_TokenRatios):
    """PPO's clip (arXiv 1707.06347) with its dual (arXiv 1912.09729)."""

    eps_low: float
    eps_high: float
    dual_clip: float | None = None

    def __call__(self, tokens: Tokens) -> Losses:
        """Token ratios, clipped."""
        return self.of(tokens.log_ratios_N, tokens.advantages_N)

    def of(self, log_ratios_N: Tensor, advantages_N: Tensor) -> Losses:
        """The clip for whatever ratios."""
        ratios_N = log_ratios_N.exp()
        plain_N = ratios_N * advantages_N
        clipped_N = ratios_N.clamp(1 - self.eps_low, 1 + self.eps_high) * advantages_N
        bounded_N = clipped_N < plain_N
        gains_N = torch.minimum(plain_N, clipped_N)
        if self.dual_clip is not None:
            least_N = self.dual_clip * advantages_N
            too_low_N = (advantages_N < 0) & (gains_N < least_N)
            gains_N, bounded_N = torch.where(too_low_N, least_N, gains_N), bounded_N | too_low_N
        return Losses(-gains_N, bounded_N)


@dataclass(frozen=True)
class SequenceClipped(Clipped):
    """GSPO (arXiv 2507.18071)."""

    by_sequence: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Losses:
        """One clipped ratio a completion."""
        return self.of(tokens.spread(tokens.means(tokens.log_ratios_N)), tokens.advantages_N)


@dataclass(frozen=True)
class TokenSequence(Clipped):
    """GSPO-token (arXiv 2507.18071): equal to GSPO where a completion has one advantage."""

    def __call__(self, tokens: Tokens) -> Losses:
        """The completion's ratio with the gradient of the token's."""
        ratios_N = tokens.spread(tokens.means(tokens.log_ratios_N.detach()))
        return self.of(ratios_N + tokens.logprobs_N - tokens.logprobs_N.detach(), tokens.advantages_N)


@dataclass(frozen=True)
class TruncatedWeight(_TokenRatios):
    """CISPO (arXiv 2506.13585): the weight is bounded and no token loses its gradient."""

    eps_high: float
    eps_low: float | None = None

    def __call__(self, tokens: Tokens) -> Losses:
        """Bounded ratio times −A log π."""
        ratios_N = tokens.log_ratios_N.detach().exp()
        lowest = None if self.eps_low is None else 1 - self.eps_low
        weights_N = ratios_N.clamp(lowest, 1 + self.eps_high)
        return Losses(-weights_N * tokens.advantages_N * tokens.logprobs_N, weights_N != ratios_N)


@dataclass(frozen=True)
class SoftGate(_TokenRatios):
    """SAPO (arXiv 2511.20347): a gate in place of a clip."""

    tau_positive: float
    tau_negative: float

    def __call__(self, tokens: Tokens) -> Losses:
        """Gated ratio."""
        ratios_N = tokens.log_ratios_N.exp()
        positive_N = tokens.advantages_N > 0
        taus_N = torch.where(positive_N, self.tau_positive, self.tau_negative).to(ratios_N.dtype)
        gates_N = 4 / taus_N * torch.sigmoid(taus_N * (ratios_N - 1))
        return Losses(-gates_N * tokens.advantages_N, torch.zeros_like(positive_N))


@dataclass(frozen=True)
class GeometricMean(_TokenRatios):
    """GMPO (arXiv 2507.20673): log-ratios are clipped token by token, then averaged; ε is in nats."""

    by_sequence: ClassVar[bool] = True

    eps_low: float
    eps_high: float

    def __call__(self, tokens: Tokens) -> Losses:
        """The completion's geometric mean at each of its tokens."""
        log_ratios_N, advantages_N = tokens.log_ratios_N, tokens.advantages_N
        bounded_N = _pushed_out(log_ratios_N, advantages_N, low=-self.eps_low, high=self.eps_high)
        held_N = torch.where(bounded_N, log_ratios_N.clamp(-self.eps_low, self.eps_high), log_ratios_N)
        return Losses(-advantages_N * tokens.spread(tokens.means(held_N)).exp(), bounded_N)


@dataclass(frozen=True)
class ProbabilityMask(_TokenRatios):
    """DPPO with binary total variation (arXiv 2602.04879): bounds on π−μ, so that rare tokens are free to move.

    The penalty τ on the squared log-ratio holds at masked tokens too, and brings them back.
    """

    from_sampler: ClassVar[bool] = True

    eps_low: float
    eps_high: float
    ratio_penalty: float

    def __call__(self, tokens: Tokens) -> Losses:
        """Ratios to the sampler, masked."""
        advantages_N = tokens.advantages_N
        with torch.no_grad():
            moved_N = tokens.logprobs_N.exp() - tokens.behaviour_N.exp()
            masked_N = _pushed_out(moved_N, advantages_N, low=-self.eps_low, high=self.eps_high)
        log_ratios_N = _held(tokens.logprobs_N - tokens.behaviour_N)
        losses_N = torch.where(masked_N, 0.0, -advantages_N * log_ratios_N.exp())
        return Losses(losses_N + self.ratio_penalty * log_ratios_N.square(), masked_N)


def _pushed_out(values_N: Tensor, advantages_N: Tensor, *, low: float, high: float) -> Tensor:
    """Whether a value lies beyond the bound on the side to which its advantage would push it further."""
    return ((advantages_N > 0) & (values_N > high)) | ((advantages_N < 0) & (values_N < low))


def _held(log_ratios_N: Tensor) -> Tensor:
    return log_ratios_N.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
