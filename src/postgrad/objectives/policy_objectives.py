"""The named policy objectives: which surrogate, averaged how, with which credit. One row each.

An objective is a surrogate (`surrogates`), an aggregation of its token losses and the settings that its paper gives;
its natural advantage estimator (`advantages`) is named here and chosen apart. The real difference between many of them
is the aggregation, ℓ_it being the loss of token t of completion i, T_i its length, G completions in the step:

    sequence_mean   Σ_i (1/T_i Σ_t ℓ_it) / G
    sequence_sum    Σ_i Σ_t ℓ_it / G
    length_limit    Σ_i Σ_t ℓ_it / (G · L)          L the completion limit, a constant
    token_mean      Σ_i Σ_t ℓ_it / Σ_i T_i

G and Σ_i T_i are those of the whole optimiser step, whatever the packing, the accumulation and the number of workers.
(BNPO in TRL divides by the tokens of a micro-batch; ours is the same objective with the step for a batch.)

CISPO's paper gives no bound; ours is 1 + 4, as in arXiv 2510.13786. ε of `gmpo` is in nats, of `dppo_tv` a probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from postgrad.core.errors import ConfigError
from postgrad.objectives.surrogates import (
    Clipped,
    GeometricMean,
    ProbabilityMask,
    Reinforce,
    SequenceClipped,
    SoftGate,
    Surrogate,
    TokenSequence,
    TruncatedWeight,
)

Aggregation = Literal["sequence_mean", "sequence_sum", "length_limit", "token_mean"]
CLIP = {"eps_low": 0.2, "eps_high": 0.2}


@dataclass(frozen=True)
class Objective:
    """One row: `settings` are the defaults of the surrogate's own fields."""

    surrogate: type[Surrogate]
    aggregation: Aggregation
    advantage: str
    source: str
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> frozenset[str]:
        """Settings that the surrogate knows."""
        return frozenset(known.name for known in fields(self.surrogate))


OBJECTIVES: Mapping[str, Objective] = {
    "dr_grpo": Objective(Clipped, "length_limit", "dr_grpo", "arXiv 2503.20783", CLIP),
    "grpo": Objective(Clipped, "sequence_mean", "grpo", "arXiv 2402.03300", CLIP),
    "bnpo": Objective(Clipped, "token_mean", "grpo", "TRL's loss type of that name", CLIP),
    "dapo": Objective(Clipped, "token_mean", "grpo", "arXiv 2503.14476", {"eps_low": 0.2, "eps_high": 0.28}),
    "gspo": Objective(
        SequenceClipped, "sequence_mean", "grpo", "arXiv 2507.18071", {"eps_low": 3e-4, "eps_high": 4e-4}
    ),
    "gspo_token": Objective(
        TokenSequence, "sequence_mean", "grpo", "arXiv 2507.18071", {"eps_low": 3e-4, "eps_high": 4e-4}
    ),
    "cispo": Objective(TruncatedWeight, "token_mean", "grpo", "arXiv 2506.13585", {"eps_high": 4.0}),
    "rloo": Objective(Reinforce, "sequence_sum", "rloo", "arXiv 2402.14740"),
    "reinforce++": Objective(Clipped, "sequence_mean", "reinforce++", "arXiv 2501.03262", CLIP),
    "reinforce++_baseline": Objective(Clipped, "sequence_mean", "reinforce++_baseline", "arXiv 2501.03262", CLIP),
    "remax": Objective(Reinforce, "sequence_sum", "remax", "arXiv 2310.10505"),
    "opo": Objective(Reinforce, "sequence_sum", "opo", "arXiv 2505.23585"),
    "gfpo": Objective(Clipped, "token_mean", "gfpo", "arXiv 2508.09726", CLIP),
    "sapo": Objective(
        SoftGate, "sequence_mean", "grpo", "arXiv 2511.20347", {"tau_positive": 1.0, "tau_negative": 1.05}
    ),
    "gmpo": Objective(GeometricMean, "sequence_mean", "grpo", "arXiv 2507.20673", {"eps_low": 0.4, "eps_high": 0.4}),
    "dppo_tv": Objective(
        ProbabilityMask,
        "token_mean",
        "dr_grpo",
        "arXiv 2602.04879",
        {"eps_low": 0.2, "eps_high": 0.2, "ratio_penalty": 1e-3},
    ),
    "lite_ppo": Objective(Clipped, "token_mean", "lite_ppo", "arXiv 2508.08221", CLIP),
}


def canonical_name(name: str) -> str:
    """`lite-ppo` and `lite_ppo` are one name."""
    return name.replace("-", "_")


def objective_named(name: str) -> Objective:
    """The row of that name.

    Raises:
        ConfigError: there is none.
    """
    found = OBJECTIVES.get(canonical_name(name))
    if found is None:
        raise ConfigError("unknown policy objective", got=name, expected=f"one of {', '.join(OBJECTIVES)}")
    return found
