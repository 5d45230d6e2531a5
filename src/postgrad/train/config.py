"""Configuration of training: optimiser, loop, channels. Importing it imports no torch; naming a channel does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from postgrad.run.config import Config
from postgrad.run.plugins import resolve
from postgrad.train import OPTIMIZERS
from postgrad.train.settings import Count, Positive, build_settings, complete
from postgrad.train.sync.choice import complete_sync

SHARDABLE = ("adamw", "sgd", "lion")
"""Optimisers that step every number by itself, so that a share of a weight is stepped like the whole."""


class OptimConfig(Config):
    """An optimiser and its learning rate."""

    name: str = "adamw"
    """adamw, adamw8bit, adafactor, galore, lion, muon, sgd, or module:Class."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The optimiser's own fields (docs/optimizers.md)."""
    lr: Positive = 1e-4
    """Peak learning rate."""
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Decoupled weight decay (sgd adds it to the gradient); vectors (norms, biases) are exempt."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up; the first already has 1/warmup_steps of the peak."""
    schedule: Literal["constant", "linear", "cosine", "wsd"] = "constant"
    """After the warm-up: constant; down to 0 at the end; or wsd: constant, then down to 0 in the last decay_steps."""
    decay_steps: Count | None = None
    """Steps of the linear decay at the end of the run (wsd only)."""
    clip_norm: Positive | None = 1.0
    """Largest norm of the whole gradient; null clips nothing."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Learning rate of a layer relative to the one above it; embeddings lie below the first layer."""
    lora_plus_ratio: Positive = 1.0
    """LoRA+: learning rate of the B matrices relative to the A matrices."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Check the optimiser's own fields and write their defaults out."""
        if not isinstance(data, dict):
            return data
        kind = resolve("optimizer", str(data.get("name", "adamw")), OPTIMIZERS)
        given = data.get("settings", {})
        if not isinstance(given, dict):
            return data
        return data | {"settings": complete(build_settings(kind, given, path="optim.settings"))}

    @model_validator(mode="after")
    def _wsd_has_a_decay(self) -> OptimConfig:
        if (self.schedule == "wsd") != (self.decay_steps is not None):
            raise ValueError("schedule 'wsd' and decay_steps go together: give both or neither")
        return self


class SpikesConfig(Config):
    """Spike detection: go back to the last checkpoint and leave out the batches that led to the spike."""

    threshold: Positive | None = None
    """Robust standard deviations above the median of the last steps that make a spike; null switches detection off."""
    window: Annotated[int, Field(ge=4)] = 32
    """Steps that the median is taken over; nothing is judged before there are so many."""
    watch: Literal["loss", "gradient_norm", "either"] = "either"
    """What may spike."""
    before: Annotated[int, Field(ge=0)] = 1
    """Batches left out before the one at which the spike shows: the updates that may have caused it."""
    limit: Annotated[int, Field(ge=1)] = 3
    """Rollbacks in a run; one more stops it."""

    @model_validator(mode="after")
    def _needs_a_threshold(self) -> SpikesConfig:
        fields = type(self).model_fields
        given = [name for name, field in fields.items() if getattr(self, name) != field.default]
        if self.threshold is None and given:
            raise ValueError(f"{given[0]} does nothing without a threshold: set one, such as 6, or leave it out")
        return self


class ReuseConfig(Config):
    """Several optimiser steps on the units that the source gave once."""

    parts: Count = 1
    """Optimiser steps that one answer of the source is dealt out to."""
    passes: Count = 1
    """Times that all of it is used, dealt out anew each time."""


class LoopConfig(Config):
    """Steps, batching, checkpoints."""

    steps: Count = 100
    """Optimiser steps."""
    token_budget: Count = 4096
    """Most tokens of one forward and backward pass; it changes memory and speed, never a loss."""
    save_every: Count = 50
    """Steps between checkpoints; the last step is always saved."""
    keep: Count = 2
    """Checkpoints kept."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seeds dropout and the source of units."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """bfloat16 = autocast; auto takes it on GPUs that have it, and float32 on CPUs."""
    patience: Count = 8
    """Consecutive steps without items or with a gradient of exactly 0 after which a channel stops the run."""
    embedding_noise: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """NEFTune's alpha: uniform noise on the input embeddings while training (cross_entropy only); 0 adds none."""
    reuse: ReuseConfig = Field(default_factory=ReuseConfig)
    """Steps on one answer of the source, for rollouts."""
    spikes: SpikesConfig = Field(default_factory=SpikesConfig)
    """Spike detection with rollback."""


class MemoryConfig(Config):
    """What costs time and saves memory; nothing here changes a loss."""

    checkpoint_every: Annotated[int, Field(ge=0)] = 0
    """Every n-th layer keeps only its input and is computed again in the backward pass: 1 is all layers, 0 none."""
    offload: bool = False
    """Keep those inputs in host memory (GPUs only)."""
    shard: bool = False
    """Split layers, their gradients and optimiser states over the workers that torchrun starts (FSDP2)."""

    @model_validator(mode="after")
    def _offload_needs_checkpoints(self) -> MemoryConfig:
        if self.offload and not self.checkpoint_every:
            raise ValueError("memory.offload keeps the inputs of recomputed layers: set memory.checkpoint_every")
        return self


class TrainConfig(Config):
    """Everything the loop needs beside the policy and the source."""

    optim: OptimConfig = Field(default_factory=OptimConfig)
    """Optimiser."""
    loop: LoopConfig = Field(default_factory=LoopConfig)
    """Loop."""
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Channel name -> its weight (default 1) and its own fields."""
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    """What saves memory."""
    sync: dict[str, Any] = Field(default_factory=lambda: complete_sync({"name": "none"}))
    """How replicas are kept together: `name` and its own fields."""

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        optim, loop = self.optim, self.loop
        scheduled = optim.warmup_steps + (optim.decay_steps or 0)
        if scheduled > loop.steps:
            parts = "optim.warmup_steps" if optim.decay_steps is None else "optim.warmup_steps + optim.decay_steps"
            raise ValueError(
                f"{parts} is {scheduled}, expected at most loop.steps ({loop.steps}), for a warm-up and a decay lie"
                f" within the run; lower {'it' if optim.decay_steps is None else 'them'}, as with"
                " --optim.warmup_steps 0, or give more --loop.steps"
            )
        if loop.spikes.threshold is not None and self.sync.get("replicas", 1) > 1:
            raise ValueError("loop.spikes goes back alone, and sync has several replicas: leave one of them out")
        if loop.keep < 2 and self.sync.get("replicas", 1) > 1:
            raise ValueError("loop.keep must be at least 2 with several replicas, or they have no checkpoint in common")
        if self.memory.shard and self.sync["name"] != "none":
            raise ValueError("memory.shard and sync do not go together: outer copies are of whole weights")
        if self.memory.shard and self.optim.name not in SHARDABLE:
            raise ValueError(f"memory.shard is for optim.name {' or '.join(SHARDABLE)}, got {self.optim.name}")
        others = sorted(name for name, spec in self.channels.items() if spec["weight"] and name != "cross_entropy")
        if loop.embedding_noise and (others or not self.channels):
            raise ValueError(
                "loop.embedding_noise is for cross_entropy alone: other channels compare log-probabilities"
                f" that noise would change; got channels {', '.join(others) or 'none'}"
            )
        return self

    @field_validator("sync")
    @classmethod
    def _complete_sync(cls, sync: dict[str, Any]) -> dict[str, Any]:
        """Check the sync's own fields and write their defaults out."""
        return complete_sync(sync)

    @field_validator("channels")
    @classmethod
    def _complete(cls, channels: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Check channels and write their defaults out, so that a stored configuration says what was run."""
        if not channels:
            return channels
        from postgrad.train.channels import complete_specs  # needs torch

        return complete_specs(channels)
