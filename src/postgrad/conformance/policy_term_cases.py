"""What stands beside a policy objective: KL estimators, dual clip, corrections, per-token credit, masks.

Most are on GRPO's clip with the batch of `policy_batch`, or on no advantage at all, where only the term is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from postgrad.conformance.case import Case, Measure
from postgrad.conformance.policy_batch import BATCH, LN2, NO_ADVANTAGE, Batch
from postgrad.conformance.policy_cases import policy_case
from postgrad.conformance.trl_policy import trl_loss
from postgrad.conformance.verl_policy import verl_loss

# π0 = π · (1, 2, 1/2, 1): Δ = (0, ln 2, −ln 2, 0)
ANCHORED = replace(NO_ADVANTAGE, references=((1 / 2,), (1 / 2, 1 / 4), (1 / 4,)))
# π_old/μ = (3/2, 1/2, 4, 1)
OTHER_ENGINE = replace(BATCH, olds=((1 / 2,), (1 / 4, 4 / 3), (1 / 2,)))


def cases() -> list[Case]:
    """All terms."""
    return [*_kl(), *_corrections(), *_clips_and_masks()]


def _kl() -> list[Case]:
    """Half the sum over four tokens, over 4 (c = 0.5, token mean). dk1 = 1, dk2 = −Δ, dk3 = 1 − e^Δ by log π."""

    def case(
        estimator: str, by_hand: str, numbers: tuple[float, ...], peers: Mapping[str, Measure] | None = None
    ) -> Case:
        return policy_case(
            f"kl_{estimator}",
            by_hand,
            numbers,
            batch=ANCHORED,
            objective="bnpo",
            kl_coefficient=0.5,
            kl_estimator=estimator,
            peers=peers,
        )

    k3 = {"trl": partial(trl_loss, ANCHORED, "bnpo", beta=0.5)}
    return [
        case("k1", "½(0 − ln 2 + ln 2 + 0)/4; ½(1, 1, 1, 1)/4", (0.0, 0.125, 0.125, 0.125, 0.125)),
        case("k2", "½(ln²2/2 + ln²2/2)/4; ½(0, −ln 2, ln 2, 0)/4", (LN2**2 / 8, 0.0, -LN2 / 8, LN2 / 8, 0.0)),
        case(
            "k3",
            "½((2 − ln 2 − 1) + (½ + ln 2 − 1))/4 = 1/16; ½(0, −1, ½, 0)/4",
            (1 / 16, 0.0, -0.125, 0.0625, 0.0),
            peers=k3,
        ),
    ]


def _corrections() -> list[Case]:
    """ρ = π/π_old = (1, 1, 3/8, 1/2); A = (1, −1, −1, 2): ℓ = (−1, 1, 0.8, −1), free but for token 3, which is held."""
    told = "π_old/μ = (3/2, 1/2, 4, 1), C = 2; ℓ = (−1, 1, 0.8, −1) · w / 4"

    def case(name: str, weights: tuple[float, float, float, float], which: str) -> Case:
        a, b, c, d = weights
        numbers = ((-a + b + 0.8 * c - d) / 4, -a / 4, b / 4, 0.0, -d / 4)
        said = f"{told}; w = {which}"
        return policy_case(name, said, numbers, batch=OTHER_ENGINE, objective="bnpo", correction=name)

    return [
        case("tis", (1.5, 0.5, 2.0, 1.0), "(3/2, 1/2, 2, 1)"),
        case("mis", (1.5, 0.5, 0.0, 1.0), "(3/2, 1/2, 0, 1)"),
        case("sequence_tis", (1.5, 2.0, 2.0, 1.0), "(3/2, 2, 2, 1): completion b has ½ · 4, just at C"),
        policy_case(
            "sequence_mask",
            "C = 1.6 and w = (3/2, 0, 0, 1): completion b has ½ · 4 and is dropped; (−1.5 − 1)/4",
            (-0.625, -0.375, 0.0, 0.0, -0.25),
            batch=OTHER_ENGINE,
            objective="bnpo",
            correction="sequence_mask",
            correction_cap=1.6,
        ),
    ]


def _clips_and_masks() -> list[Case]:
    far = Batch(((1 / 2,), (1 / 2, 1 / 2), (1 / 2,)), ((1 / 10,), (1 / 10, 1 / 2), (1 / 2,)), (1.0, -1.0, 1.0))
    by_token = replace(BATCH, advantages=(1.0, (-1.0, 1.0), 2.0))
    masked = replace(BATCH, weights=(1.0, 0.0, 1.0))
    nothing = replace(BATCH, weights=(0.0, 0.0, 0.0))
    return [
        policy_case(
            "dual_clip",
            "ρ = (5, 5, 1, 1), A = (1, −1, −1, 1), c = 3: (−1.2 + 3 + 1 − 1)/4; (0, 0, 1, −1)/4",
            (0.45, 0.0, 0.0, 0.25, -0.25),
            batch=far,
            objective="bnpo",
            dual_clip=3.0,
            peers={"verl": partial(verl_loss, far, "vanilla", "token-mean")},
        ),
        policy_case(
            "token_credit",
            "A = (1, −1, 1, 2): (−1.2 + 0.8 − 1.2 − 1)/4; (0, 0, 0, −1)/4",
            (-0.65, 0.0, 0.0, 0.0, -0.25),
            batch=by_token,
            objective="bnpo",
            peers={"verl": partial(verl_loss, by_token, "vanilla", "token-mean")},
        ),
        policy_case(
            "masked_completion",
            "completion b is in neither sum nor count: (−1.2 − 1)/2; (0, 0, 0, −1)/2",
            (-1.1, 0.0, 0.0, 0.0, -0.5),
            batch=masked,
            objective="grpo",
            peers={
                "trl": partial(trl_loss, masked, "grpo"),
                "verl": partial(verl_loss, masked, "vanilla", "seq-mean-token-mean"),
            },
            notes={"trl": "a masked completion still counts in the mean"},
        ),
        policy_case(
            "all_masked",
            "nothing to learn from: 0 with a zero gradient",
            (0.0, 0.0, 0.0, 0.0, 0.0),
            batch=nothing,
            objective="bnpo",
            peers={
                "trl": partial(trl_loss, nothing, "bnpo"),
                "verl": partial(verl_loss, nothing, "vanilla", "token-mean"),
            },
            notes={"verl": "0/0"},
        ),
    ]
