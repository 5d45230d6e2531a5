"""What a run does to need less memory.

Layers are computed again in the backward pass, their inputs are kept on the host, weights are split over workers. None
of it changes a loss: recomputation repeats the same operations with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from postgrad.core.errors import ConfigError
from postgrad.models.recompute import compute_again
from postgrad.run.progress import note
from postgrad.train.channels import build_channels
from postgrad.train.config import MemoryConfig, TrainConfig
from postgrad.train.contracts import Companion, TrainablePolicy
from postgrad.train.sharding import Sharding
from postgrad.train.workers import Workers


def checkpoint_layers(model: nn.Module, memory: MemoryConfig) -> None:
    """Do what the section says about layers that are computed again.

    Raises:
        ConfigError: the model cannot, or there is nowhere to keep inputs but where they are.
    """
    if memory.checkpoint_every:
        compute_again(model, every=memory.checkpoint_every, offload=memory.offload)


def shard(policy: TrainablePolicy, config: TrainConfig, workers: Workers) -> Sharding | None:
    """Cut the policy over workers, where the recipe says so and there are several.

    Raises:
        ConfigError: the run has something that cannot be cut.
    """
    if not config.memory.shard:
        return None
    if workers.size == 1:
        note("memory.shard: one worker keeps all; torchrun starts several")
        return None
    if getattr(policy, "layout", "tree") != "tree":
        raise ConfigError("memory.shard is for models that run forests as trees", got=f"{policy.name}: flat")
    return Sharding(policy.model, workers)


def uses_reference(config: TrainConfig) -> bool:
    """Whether a channel of the run compares with the weights as they were."""
    if not config.channels:  # an evolution strategy
        return False
    credit = config.channels.get("policy_gradient", {})
    channels, _ = build_channels(config.channels)
    asked = any(getattr(channel.objective, "uses_reference", False) for channel in channels)
    return asked or credit.get("kl_coefficient", 0) > 0


def refuse_with_shards(sharding: Sharding | None, companions: Sequence[Companion]) -> None:
    """Refuse what moves with weights that no worker has whole.

    Raises:
        ConfigError: there is one.
    """
    if sharding is not None and companions:
        raise ConfigError("memory.shard has no whole weights for", got=", ".join(c.name for c in companions))
