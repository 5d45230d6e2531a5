"""Configuration of training: optimiser, loop, channels. Importing it imports no torch; naming a channel does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from postgrad.run.config import Config

Positive = Annotated[float, Field(gt=0)]
Beta = Annotated[float, Field(ge=0, lt=1)]


class OptimConfig(Config):
    """AdamW and its learning rate."""

    lr: Positive = 1e-4
    """Peak learning rate."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay of AdamW's two moments."""
    eps: Positive = 1e-8
    """Added to the root of the second moment."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Decoupled weight decay; vectors (norms, biases) are exempt."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up; the first already has 1/warmup_steps of the peak."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up: constant, or down to 0 at the end."""
    clip_norm: Positive | None = 1.0
    """Largest norm of the whole gradient; null clips nothing."""


class LoopConfig(Config):
    """Steps, batching, checkpoints."""

    steps: Annotated[int, Field(ge=1)] = 100
    """Optimiser steps."""
    token_budget: Annotated[int, Field(ge=1)] = 4096
    """Most tokens of one forward and backward pass; it changes memory and speed, never a loss."""
    save_every: Annotated[int, Field(ge=1)] = 50
    """Steps between checkpoints; the last step is always saved."""
    keep: Annotated[int, Field(ge=1)] = 2
    """Checkpoints kept."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds dropout and the source of units."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """bfloat16 = autocast; auto takes it on GPUs that have it, and float32 on CPUs."""
    patience: Annotated[int, Field(ge=1)] = 8
    """Consecutive steps without items or with a gradient of exactly 0 after which a channel stops the run."""


class TrainConfig(Config):
    """Everything the loop needs beside the policy and the source."""

    optim: OptimConfig = OptimConfig()
    """Optimiser."""
    loop: LoopConfig = LoopConfig()
    """Loop."""
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Channel name -> its weight (default 1) and its own fields."""

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if self.optim.warmup_steps > self.loop.steps:
            raise ValueError(
                f"optim.warmup_steps is {self.optim.warmup_steps}, expected at most loop.steps ({self.loop.steps})"
            )
        return self

    @field_validator("channels")
    @classmethod
    def _complete(cls, channels: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Check channels and write their defaults out, so that a stored configuration says what was run."""
        if not channels:
            return channels
        from postgrad.train.channels import complete_specs  # needs torch

        return complete_specs(channels)
