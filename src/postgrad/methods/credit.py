"""From graded completions to credit: shape the reward, then let an advantage estimator compare.

    R' = R + overlong penalty − c Σ_t k_t(π‖π0)

The overlong penalty (DAPO, arXiv 2503.14476) with limit L and a cache of C tokens before it: 0 up to L − C tokens,
then down in a line to −1 at L. Or completions that were cut off are masked: no reward, so no baseline moves by them.
k_t is an estimate of the KL divergence from the reference per token (`objectives.kl`); both log-probabilities come from
one kind of forward pass, so that it is exactly 0 where policy and reference are one.

k1 in the reward is the exact gradient of KL(π‖π0), as long as nothing rescales the reward; an estimator that divides by
a deviation would, so the two are refused together (REINFORCE++, which has it per token by definition, excepted).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from postgrad.core.errors import ConfigError
from postgrad.methods.kl_reward import kl_penalties
from postgrad.objectives.outcome import Credits, Estimator, Group, Outcome
from postgrad.run.config import Config

if TYPE_CHECKING:
    from postgrad.methods.completion import Completion
    from postgrad.models.policy import Policy

Count = Annotated[int, Field(ge=1)]


class Credit(Config):
    """What goes into a completion's credit besides its grade and its siblings'."""

    discount: Annotated[float, Field(gt=0, le=1)] | None = None
    """reinforce++: a token at distance d of the end gets discount^d of the reward (1)."""
    keep: Count | None = None
    """gfpo: completions of a group that learn (half of the group)."""
    keep_by: Literal["length", "efficiency"] | None = None
    """gfpo: keep the shortest, or those with the most reward a token (length)."""
    kl_coefficient: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """KL divergence from the reference, subtracted from the reward."""
    kl_estimator: Literal["k1", "k2", "k3"] | None = None
    """Its estimator (k1)."""
    overlong_cache: Count | None = None
    """Tokens before the limit in which a completion pays for its length, up to 1 at the limit."""
    overlong: Literal["grade", "mask"] = "grade"
    """Completions that were cut off: grade them as they stand, or leave them out."""
    idle: Literal["count", "score", "resample"] = "count"
    """Groups with equal rewards: only count them (they have no policy gradient), score them (for a KL term or an
    entropy bonus), or put others in their place (dynamic sampling)."""
    resample_rounds: Count | None = None
    """With `idle: resample`: how often idle groups are replaced at most (4)."""

    def estimator(self, name: str, *, group_size: int) -> Estimator:
        """The advantage estimator with these settings.

        Raises:
            ConfigError: one that this credit, or groups of this size, make no sense with.
        """
        from postgrad.objectives.advantages import estimator

        keep = self.keep or (max(1, group_size // 2) if name == "gfpo" else None)
        chosen = estimator(name, discount=self.discount, keep=keep, keep_by=self.keep_by)
        if chosen.by_group and group_size < 2:
            raise ConfigError(f"group_size 1 with advantage {name}: alone in its group, no completion has an advantage")
        if keep is not None and keep > group_size:
            raise ConfigError("credit.keep", got=keep, expected=f"at most group_size ({group_size})")
        estimated = self.kl_estimator or "k1"
        if self.kl_coefficient > 0 and estimated == "k1" and chosen.scales and not chosen.by_token:
            raise ConfigError(
                f"credit.kl_coefficient with k1 and advantage {name}: it divides by a deviation, and so would "
                "rescale the KL term with the reward",
                do="use advantage dr_grpo, rloo, opo, remax or reinforce++, or channels.policy_gradient.kl_coefficient",
            )
        return chosen

    def by_token(self, chosen: Estimator) -> bool:
        """Whether tokens of one completion can have different credit."""
        return chosen.by_token and (self.kl_coefficient > 0 or (self.discount or 1.0) < 1)

    def check(self, *, limit: int) -> None:
        """Refuse settings that nothing would read, or that do not fit the limit.

        Raises:
            ConfigError: such a setting.
        """
        if self.kl_estimator is not None and self.kl_coefficient == 0:
            raise ConfigError("credit.kl_estimator without a credit.kl_coefficient above 0", got=self.kl_estimator)
        if self.overlong_cache is not None and self.overlong_cache > limit:
            raise ConfigError("credit.overlong_cache", got=self.overlong_cache, expected=f"at most {limit}, the limit")
        if self.resample_rounds is not None and self.idle != "resample":
            raise ConfigError("credit.resample_rounds without credit.idle: resample", got=f"credit.idle: {self.idle}")

    def shaped(self, completion: Completion, *, limit: int, penalties_T: Sequence[float]) -> Outcome:
        """A completion as estimators see it."""
        length = len(completion.sample.tokens)
        if self.overlong == "mask" and completion.sample.stop_reason == "length":
            return Outcome(None, length)
        reward = completion.grade.score
        if self.overlong_cache is not None:
            reward += overlong_penalty(length, limit=limit, cache=self.overlong_cache)
        return Outcome(reward, length, tuple(penalties_T))


def overlong_penalty(length: int, *, limit: int, cache: int) -> float:
    """0 up to `limit − cache` tokens, then linear down to −1 at `limit` and beyond."""
    return -min(1.0, max(0.0, (length - (limit - cache)) / cache))


def credited(
    groups: Sequence[Sequence[Completion]],
    greedy: Sequence[float | None],
    *,
    policy: Policy,
    credit: Credit,
    chosen: Estimator,
    limit: int,
) -> Credits:
    """Credit of every completion, in order; `greedy` are the rewards of the prompts' greedy completions."""
    flat = [completion for group in groups for completion in group]
    priced = credit.kl_coefficient > 0
    penalties = iter(
        kl_penalties(policy, flat, credit.kl_estimator or "k1", credit.kl_coefficient) if priced else [()] * len(flat)
    )
    return chosen(
        [
            Group(tuple(credit.shaped(c, limit=limit, penalties_T=next(penalties)) for c in group), baseline)
            for group, baseline in zip(groups, greedy, strict=True)
        ]
    )
