"""verl's policy losses and advantage estimators, called through its registries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from postgrad.conformance.policy_batch import LIMIT, Batch
from postgrad.objectives.outcome import Group


def verl_loss(batch: Batch, loss_mode: str, aggregation: str, **settings: Any) -> list[float]:
    """Loss, then its gradient by the log-probabilities of the tokens."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import ActorConfig

    config = ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, **settings)
    config.global_batch_info.update(loss_scale_factor=LIMIT)
    logprobs = batch.padded(batch.probabilities, 1.0).log().requires_grad_()
    loss, _ = get_policy_loss_fn(loss_mode)(
        old_log_prob=batch.padded(batch.behaviours, 1.0).log(),
        log_prob=logprobs,
        advantages=batch.padded(batch.credits()),
        response_mask=batch.mask,
        loss_agg_mode=aggregation,
        config=config,
    )
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return [float(loss.detach()), *gradient[batch.padded([[1.0] * n for n in batch.lengths]) > 0].tolist()]


def verl_credit(groups: Sequence[Group], name: str, **settings: Any) -> list[float | None]:
    """The advantage of each completion's first token; a missing reward is a completion that is masked out."""
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    outcomes = [(place, outcome, group) for place, group in enumerate(groups) for outcome in group.outcomes]
    width = max(outcome.length for _, outcome, _ in outcomes)
    rewards = torch.zeros(len(outcomes), width, dtype=torch.float64)
    mask = torch.zeros_like(rewards)
    for row, (_, outcome, _) in enumerate(outcomes):
        rewards[row, outcome.length - 1] = 1.0 if outcome.reward is None else outcome.reward
        mask[row, : outcome.length] = float(outcome.reward is not None)
    if name == "remax":
        greedy = [group.greedy or 0.0 for _, _, group in outcomes]
        settings["reward_baselines"] = torch.tensor(greedy, dtype=torch.float64)
    if name != "reinforce_plus_plus":
        settings["index"] = np.array([place for place, _, _ in outcomes])
    advantages, _ = get_adv_estimator_fn(name)(
        token_level_rewards=rewards, response_mask=mask, config=AlgoConfig(gamma=1.0), **settings
    )
    return [
        value if outcome.reward is not None else None
        for value, (_, outcome, _) in zip(advantages[:, 0].tolist(), outcomes, strict=True)
    ]
