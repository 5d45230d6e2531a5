"""Preference: make the chosen action likelier than the rejected one, measured from a reference policy.

    pairs   sum = Σ w (ℓ(r_w, r_l) + α · nll_w),   count = pairs with w ≠ 0           ℓ by name in `pair_losses`
    kto     sum = Σ w ℓ over single completions,   count = completions with w ≠ 0     see `judged`

r is the log-ratio to the reference π0, summed over the tokens of an action or, with ``length: mean``, averaged;
nll_w is the mean negative log-likelihood of the chosen action's tokens (the SFT term of arXiv 2404.19733). `focus`
weighs the tokens in which the two actions differ (`edits`). Tokens that both share from the start are one node of the
forest and cancel exactly.

The reference is `Scored.reference_logprobs` (the policy as training found it, or its base with the adapter off), or
what the item brings along precomputed. Objectives without a reference do not ask for one.

Not covered: listwise objectives, learned margins, sorting losses over a batch (AOT).

Shapes: N scored tokens, S actions, P pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from postgrad.core.annotation import FloatsT, JudgedItem, PreferenceItem, Preferred
from postgrad.core.errors import ConfigError
from postgrad.objectives.channel import STRICT, IntsN, Mean, Metrics, Placed, Scored, joined
from postgrad.objectives.edits import focused_weights
from postgrad.objectives.judged import judged_loss
from postgrad.objectives.pair_losses import PAIR_OBJECTIVES, PairSettings

Objective = Literal["dpo", "robust", "ipo", "hinge", "apo_zero", "apo_down", "simpo", "orpo", "kto"]
Weight = Annotated[float, Field(ge=0)]

# Setting -> the objectives that it means something to; elsewhere it would silently do nothing, so it is refused.
ONLY_FOR: dict[str, tuple[str, ...]] = {
    "label_smoothing": ("dpo", "robust"),
    "margin": ("simpo",),
    "desirable": ("kto",),
    "undesirable": ("kto",),
    "focus": tuple(PAIR_OBJECTIVES),
    "sft": tuple(name for name in PAIR_OBJECTIVES if name != "orpo"),  # orpo has the term already
}


@dataclass(frozen=True, config=STRICT)
class Preference:
    """Reference-anchored preference loss, mean per pair (kto: per completion).

    Attributes:
        objective: `dpo` unless another is named.
        beta: strength of the pull to the reference; λ of orpo.
        label_smoothing: share of pairs whose order is taken to be wrong (dpo, robust).
        length: `sum` or `mean` of the log-ratios over tokens; None is what the objective's paper does.
        focus: weight of the tokens in which chosen and rejected differ.
        margin: γ of simpo.
        sft: weight α of the chosen action's mean negative log-likelihood.
        desirable: weight of good completions (kto).
        undesirable: weight of bad completions (kto).
    """

    item: ClassVar[type[Preferred]] = Preferred
    advice: ClassVar[str] = "chosen and rejected may be the same tokens: check how the pairs were built"

    objective: Objective = "dpo"
    beta: Annotated[float, Field(gt=0)] = 0.1
    label_smoothing: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    length: Literal["sum", "mean"] | None = None
    focus: Annotated[float, Field(gt=0)] = 1.0
    margin: Weight = 0.0
    sft: Weight = 0.0
    desirable: Weight = 1.0
    undesirable: Weight = 1.0

    @model_validator(mode="after")
    def _means_something(self) -> Preference:
        for name, objectives in ONLY_FOR.items():
            if (
                self.objective not in objectives
                and getattr(self, name) != type(self).__dataclass_fields__[name].default
            ):
                raise ValueError(f"{name} does nothing for {self.objective}; it is for {', '.join(objectives)}")
        if self.length == "sum" and self.objective in ("simpo", "orpo"):
            raise ValueError(f"{self.objective} is defined on mean log-probabilities; leave length out")
        return self

    @property
    def uses_reference(self) -> bool:
        """Whether a reference policy is needed."""
        return self.objective == "kto" or PAIR_OBJECTIVES[self.objective].reference

    @property
    def averaged(self) -> bool:
        """Whether log-ratios are averaged over tokens."""
        if self.length is not None:
            return self.length == "mean"
        return self.objective != "kto" and PAIR_OBJECTIVES[self.objective].averaged

    def count(self, items: Sequence[Preferred]) -> int:
        """Pairs, or judged completions."""
        total = 0
        for item in items:
            if self.objective != "kto":
                total += self._pair(item).weight != 0
                continue
            judged = self._judged(item)
            completions = len(judged.good) + len(judged.bad)
            total += completions if judged.weights is None else sum(weight != 0 for weight in judged.weights)
        return total

    def loss(self, scored: Scored, items: Sequence[Placed[Preferred]]) -> tuple[Tensor, Metrics]:
        """Sum of losses; metrics `accuracy`, `margin`, `chosen` and `rejected` (β r), `nll`; those of kto in `judged`.

        Raises:
            ConfigError: pairs for kto, or judged completions for another objective.
        """
        if self.objective == "kto":
            return self._completions(scored, [(p.unit, self._judged(p.item)) for p in items])
        pairs = [Placed(p.unit, self._pair(p.item)) for p in items]
        return self._pairs(scored, [p for p in pairs if p.item.weight != 0])

    def _completions(self, scored: Scored, items: Sequence[tuple[int, JudgedItem]]) -> tuple[Tensor, Metrics]:
        spans = [[scored.nodes(unit, span) for span in (*i.good, *i.bad, *i.mismatched)] for unit, i in items]
        nodes = [own for group in spans for own in group]
        nodes_N = joined(nodes)
        ratios_N = scored.logprobs(nodes_N) - scored.reference_logprobs(nodes_N)
        ratios_S = _reduced(ratios_N, [np.ones(len(own), np.float32) for own in nodes], self.averaged)
        ratios = torch.split(ratios_S, [len(group) for group in spans])
        return judged_loss(
            [item for _, item in items],
            ratios,
            beta=self.beta,
            weights=(self.desirable, self.undesirable),
            averaged=self.averaged,
        )

    def _pairs(self, scored: Scored, used: Sequence[Placed[PreferenceItem]]) -> tuple[Tensor, Metrics]:
        nodes = [scored.nodes(p.unit, span) for p in used for span in (p.item.chosen, p.item.rejected)]
        logprobs_N = scored.logprobs(joined(nodes))
        objective, ratios_N = PAIR_OBJECTIVES[self.objective], logprobs_N
        if objective.reference:
            ratios_N = logprobs_N - _reference(scored, used, nodes)
        rewards_P2 = _reduced(ratios_N, self._token_weights(scored, nodes), self.averaged).view(-1, 2)
        settings = PairSettings(self.beta, self.label_smoothing, self.margin)
        losses_P = objective.loss(rewards_P2[:, 0], rewards_P2[:, 1], settings)
        metrics = _metrics(self.beta * rewards_P2.detach())
        if self.sft > 0:
            ones = [np.ones(len(part), np.float32) for part in nodes]
            nll_P = -_reduced(logprobs_N, ones, averaged=True).view(-1, 2)[:, 0]
            losses_P = losses_P + self.sft * nll_P
            metrics["nll"] = Mean(float(nll_P.detach().sum()), len(used))
        return (scored.constant([p.item.weight for p in used]) * losses_P).sum(), metrics

    def _token_weights(self, scored: Scored, nodes: Sequence[IntsN]) -> list[FloatsT]:
        weights: list[FloatsT] = []
        for chosen, rejected in zip(nodes[::2], nodes[1::2], strict=True):
            tokens = scored.forest.tokens_T[chosen].tolist(), scored.forest.tokens_T[rejected].tolist()
            weights.extend(focused_weights(*tokens, self.focus))
        return weights

    def _pair(self, item: Preferred) -> PreferenceItem:
        if self.objective == "kto" or not isinstance(item, PreferenceItem):
            raise self._wrong(item)
        return item

    def _judged(self, item: Preferred) -> JudgedItem:
        if self.objective != "kto" or not isinstance(item, JudgedItem):
            raise self._wrong(item)
        return item

    def _wrong(self, item: Preferred) -> ConfigError:
        return ConfigError(
            f"channels.preference.objective {self.objective} and the method's rows do not go together",
            got=type(item).__name__,
            expected="judged completions (method kto) for kto, pairs (method dpo) for every other objective",
        )


def _reference(scored: Scored, used: Sequence[Placed[PreferenceItem]], nodes: Sequence[IntsN]) -> Tensor:
    """Reference log-probabilities of all nodes: those that came along, and the others from the forest."""
    given = [part for p in used for part in (p.item.reference or (None, None))]
    missing = joined([own for own, part in zip(nodes, given, strict=True) if part is None])
    if len(missing) == sum(len(part) for part in nodes):
        return scored.reference_logprobs(missing)
    computed = iter(
        torch.split(
            scored.reference_logprobs(missing), [len(n) for n, g in zip(nodes, given, strict=True) if g is None]
        )
    )
    return torch.cat([next(computed) if part is None else scored.constant(part) for part in given])


def _reduced(values_N: Tensor, weights: Sequence[FloatsT], averaged: bool) -> Tensor:
    """Weighted sum, or weighted mean, of each action's tokens (S,)."""
    device = values_N.device
    owners_N = torch.from_numpy(
        np.repeat(np.arange(len(weights)), np.array([len(own) for own in weights], np.int64))
    ).to(device)
    weights_N = torch.from_numpy(np.concatenate(weights) if weights else np.empty(0, np.float32)).to(device)
    sums_S = values_N.new_zeros(len(weights)).index_add(0, owners_N, weights_N.to(values_N.dtype) * values_N)
    if not averaged:
        return sums_S
    totals = [float(own.sum()) if len(own) else 1.0 for own in weights]
    return sums_S / torch.tensor(totals, dtype=values_N.dtype, device=device)


def _metrics(rewards_P2: Tensor) -> dict[str, Mean]:
    margins_P = rewards_P2[:, 0] - rewards_P2[:, 1]
    columns = {
        "accuracy": (margins_P > 0).float(),
        "margin": margins_P,
        "chosen": rewards_P2[:, 0],
        "rejected": rewards_P2[:, 1],
    }
    return {name: Mean(float(column_P.sum()), len(rewards_P2)) for name, column_P in columns.items()}
