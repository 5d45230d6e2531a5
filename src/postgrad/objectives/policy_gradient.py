"""Policy gradient: raise the probability of completions that did better than their siblings.

    loss = aggregate over tokens of  w_t · surrogate_t + c · kl_t − e · H_t

`objective` names a row of `policy_objectives`: a surrogate (what one token adds), an aggregation (how tokens and
completions are averaged) and the settings of its paper; each of them can be set by itself. Advantages come with the
items, from any estimator of `advantages`; which one belongs to which objective the table says.

- kl_t is the estimate k1, k2 or k3 of KL(π‖π0) of that token, π0 the reference (`kl`).
- H_t is the entropy of the distribution that the token was drawn from (`entropy`).
- w_t corrects for a sampler that is another engine (`mismatch`); without a correction w_t = 1.

Ratios are taken to π_old: the item's own `old_T`; without it the sampler's log-probabilities, or, where a correction
takes care of the sampler, the current policy's own (then ρ = 1, which is right for one update a sample).

An empty completion is a valid sample: it adds 0 and counts. An item of weight 0 is masked in sum and count. A setting
that the objective does not read is refused, never ignored.

Not covered: value functions, ratios that a group shares, adaptive coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError
from torch import Tensor

from postgrad.core.annotation import PolicyGradientItem
from postgrad.core.errors import DataError
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored, joined
from postgrad.objectives.entropy import token_entropies
from postgrad.objectives.kl import KL_ESTIMATORS, Estimator, k3
from postgrad.objectives.mismatch import TOKEN_LEVEL, Correction, mismatch_weights
from postgrad.objectives.policy_objectives import OBJECTIVES, Aggregation, Objective, canonical_name
from postgrad.objectives.surrogates import Surrogate, Tokens

Name = Annotated[
    Literal[
        "dr_grpo", "grpo", "bnpo", "dapo", "gspo", "gspo_token", "cispo", "rloo", "reinforce++",
        "reinforce++_baseline", "remax", "opo", "gfpo", "sapo", "gmpo", "dppo_tv", "lite_ppo",
    ],
    BeforeValidator(lambda name: canonical_name(name) if isinstance(name, str) else name),
]  # fmt: skip
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Coefficient = Annotated[float, Field(ge=0, allow_inf_nan=False)]

# Aggregation -> weight of each token of a completion in the sum.
TOKEN_WEIGHTS: Mapping[Aggregation, Callable[[PolicyGradientItem], float]] = {
    "sequence_mean": lambda item: 1.0 / max(1, len(item.span.positions)),
    "sequence_sum": lambda item: 1.0,
    "length_limit": lambda item: 1.0 / item.max_length,
    "token_mean": lambda item: 1.0,
}
CAP = 2.0
SURROGATE_SETTINGS = ("eps_low", "eps_high", "dual_clip", "tau_positive", "tau_negative", "ratio_penalty")


@dataclass(frozen=True, config=STRICT)
class PolicyGradient:
    """Policy gradient: a named objective and what is set beside it; None is the objective's own value, or off.

    Attributes:
        objective: a row of `policy_objectives.OBJECTIVES`.
        aggregation: another one than the objective's.
        eps_low: bound below 1 (of `gmpo` in nats, of `dppo_tv` as a probability).
        eps_high: bound above 1.
        dual_clip: c above 1: for a negative advantage the loss is at most c |A|.
        tau_positive: steepness of the gate of `sapo` for a positive advantage.
        tau_negative: the same for a negative one.
        ratio_penalty: τ of `dppo_tv`.
        kl_coefficient: c of KL(π‖π0) in the loss.
        kl_estimator: its estimator; k3 unless said otherwise.
        entropy_coefficient: e of the entropy bonus.
        correction: for log-probabilities that come from another engine.
        correction_cap: its C; 2 unless said otherwise.
    """

    item: ClassVar[type[PolicyGradientItem]] = PolicyGradientItem
    advice: ClassVar[str] = (
        "rewards were equal within every group (sample more completions per prompt, raise the temperature, or choose "
        "tasks that succeed only now and then), or every token was beyond the clip (see policy_gradient/clipped)"
    )

    objective: Name = "dr_grpo"
    aggregation: Aggregation | None = None
    eps_low: Annotated[float, Field(gt=0, lt=1)] | None = None
    eps_high: Positive | None = None
    dual_clip: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = None
    tau_positive: Positive | None = None
    tau_negative: Positive | None = None
    ratio_penalty: Coefficient | None = None
    kl_coefficient: Coefficient = 0.0
    kl_estimator: Estimator | None = None
    entropy_coefficient: Coefficient = 0.0
    correction: Correction = "none"
    correction_cap: Positive | None = None

    def __post_init__(self) -> None:
        row = OBJECTIVES[self.objective]
        self._refuse_unread(row)
        self._refuse_undefined(row)

    @property
    def surrogate(self) -> Surrogate:
        """The objective's surrogate; what is not set is as in its paper."""
        row = OBJECTIVES[self.objective]
        given = {name: value for name in row.reads if (value := getattr(self, name)) is not None}
        return row.surrogate(**{**row.settings, **given})

    @property
    def uses_old(self) -> bool:
        """Whether the sampling policy as the trainer computes it is told from the engine's numbers."""
        return self.correction != "none"

    @property
    def on_policy(self) -> bool:
        """Whether completions must be of the policy that is trained on them, for there is no ratio to another."""
        return OBJECTIVES[self.objective].surrogate.on_policy

    @property
    def aggregated_by(self) -> Aggregation:
        """The aggregation that is set, or the objective's."""
        return self.aggregation or OBJECTIVES[self.objective].aggregation

    def count(self, items: Sequence[PolicyGradientItem]) -> int:
        """Completions, empty ones included; with `token_mean` their tokens."""
        used = [item for item in items if item.weight != 0]
        return sum(item.tokens for item in used) if self.aggregated_by == "token_mean" else len(used)

    def loss(self, scored: Scored, items: Sequence[Placed[PolicyGradientItem]]) -> tuple[Tensor, Metrics]:
        """Sum over completions.

        Metrics: `ratio`, `clipped` (tokens whose gradient a bound took or held), `behaviour_kl`, `credited`, and where
        they are on `reference_kl`, `entropy`, `mismatch` (mean weight), `corrected` (tokens that the cap took hold of).

        Raises:
            DataError: a sampler's log-probability is not finite, or credit by token for a loss by completion.
        """
        used = [placed for placed in items if placed.item.weight != 0]
        for placed in used:
            _check(placed.item)
            self._refuse_credit(placed.item)
        nodes_N = joined([scored.nodes(p.unit, p.item.span) for p in used])
        tokens = self._tokens(scored.logprobs(nodes_N), [p.item for p in used])
        losses_N, bounded_N = self.surrogate(tokens)
        metrics = _metrics(tokens, bounded_N)
        if self.correction != "none":
            weights_N, beyond_N = mismatch_weights(tokens, self.correction, self.correction_cap or CAP)
            losses_N = weights_N * losses_N
            metrics |= {"mismatch": _mean(weights_N), "corrected": _mean(beyond_N)}
        if self.kl_coefficient > 0:
            kl_N = KL_ESTIMATORS[self.kl_estimator or "k3"](scored.reference_logprobs(nodes_N) - tokens.logprobs_N)
            losses_N = losses_N + self.kl_coefficient * kl_N
            metrics["reference_kl"] = _mean(kl_N)
        if self.entropy_coefficient > 0:
            entropies_N = token_entropies(scored, nodes_N)
            losses_N = losses_N - self.entropy_coefficient * entropies_N
            metrics["entropy"] = _mean(entropies_N)
        metrics["credited"] = Mean(sum(bool(np.any(p.item.advantage)) for p in used), len(used))
        nothing = scored.hidden_TD[:0].sum()  # a step without tokens has a gradient too: 0
        return (self._weights(losses_N, [p.item for p in used]) * losses_N).sum() + nothing, metrics

    def _weights(self, like_N: Tensor, items: Sequence[PolicyGradientItem]) -> Tensor:
        of = TOKEN_WEIGHTS[self.aggregated_by]
        return _constant(like_N, np.repeat([item.weight * of(item) for item in items], _lengths(items)))

    def _tokens(self, logprobs_N: Tensor, items: Sequence[PolicyGradientItem]) -> Tokens:
        lengths = _lengths(items)
        own_N = logprobs_N.detach()
        old_N = _constant(own_N, _flat([item.behaviour_T if item.old_T is None else item.old_T for item in items]))
        if self.correction != "none":
            missing_N = _constant(own_N, np.repeat([item.old_T is None for item in items], lengths))
            old_N = torch.where(missing_N > 0, own_N, old_N)
        return Tokens(
            logprobs_N=logprobs_N,
            old_N=old_N,
            behaviour_N=_constant(own_N, _flat([item.behaviour_T for item in items])),
            advantages_N=_constant(
                own_N, _flat([np.broadcast_to(item.advantage, n) for item, n in zip(items, lengths, strict=True)])
            ),
            owners_N=torch.from_numpy(np.repeat(np.arange(len(items)), lengths)).to(own_N.device),
            lengths_S=_constant(own_N, np.array(lengths)),
        )

    def _refuse_credit(self, item: PolicyGradientItem) -> None:
        if OBJECTIVES[self.objective].surrogate.by_sequence and len(np.unique(item.advantage)) > 1:
            raise DataError(f"{self.objective} has one ratio a completion", got="an advantage for each token")

    def _refuse_unread(self, row: Objective) -> None:
        for name in SURROGATE_SETTINGS:
            if getattr(self, name) is not None and name not in row.reads:
                raise _refusal(f"no {name} with objective {self.objective}, which does not read it")
        if self.kl_estimator is not None and self.kl_coefficient == 0:
            raise _refusal("no kl_estimator without a kl_coefficient above 0")
        if self.correction_cap is not None and self.correction == "none":
            raise _refusal("no correction_cap without a correction")

    def _refuse_undefined(self, row: Objective) -> None:
        surrogate = row.surrogate
        if surrogate.by_sequence and self.aggregation not in (None, "sequence_mean"):
            raise _refusal(f"aggregation sequence_mean with {self.objective}: its loss is one number a completion")
        if surrogate.by_sequence and self.correction in TOKEN_LEVEL:
            raise _refusal(
                f"correction sequence_tis or sequence_mask with {self.objective}: its ratio is a completion's"
            )
        if surrogate.from_sampler and self.correction != "none":
            raise _refusal(f"no correction with {self.objective}: its ratio and its bounds are to the sampler already")


def _refusal(expected: str) -> PydanticCustomError:
    return PydanticCustomError("objective", "{expected}", {"expected": expected})


def _metrics(tokens: Tokens, bounded_N: Tensor) -> dict[str, Mean]:
    with torch.no_grad():
        log_ratios_N = tokens.log_ratios_N
        behaviour_N = tokens.logprobs_N - tokens.behaviour_N
        return {"ratio": _mean(log_ratios_N.exp()), "clipped": _mean(bounded_N), "behaviour_kl": _mean(k3(behaviour_N))}


def _mean(values_N: Tensor) -> Mean:
    return Mean(float(values_N.detach().sum()), len(values_N))


def _lengths(items: Sequence[PolicyGradientItem]) -> list[int]:
    return [len(item.span.positions) for item in items]


def _flat(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0)


def _constant(like_N: Tensor, values: NDArray[Any]) -> Tensor:
    """Numbers beside `like_N`, in its precision."""
    return torch.as_tensor(values.astype(np.float64), dtype=like_N.dtype).to(like_N.device)


def _check(item: PolicyGradientItem) -> None:
    length = len(item.span.positions)
    assert np.isfinite(item.advantage).all(), "a completion without a reward must be left out, not given as NaN"
    assert np.ndim(item.advantage) == 0 or len(np.asarray(item.advantage)) == length, "one advantage per scored token"
    assert len(item.behaviour_T) == length, "one behaviour log-probability per scored token"
    assert item.old_T is None or len(item.old_T) == length, "one old log-probability per scored token"
    assert length <= item.max_length, "a completion longer than its limit"
    assert item.length is None or item.length >= length, "a completion is not shorter than what is scored of it"
    assert math.isfinite(item.weight), "a weight that is not finite"
    if not np.isfinite(item.behaviour_T).all():
        raise DataError(
            "a sampled token without a finite log-probability",
            do="leave the completion out: nothing can correct for it",
        )
