"""What `postgrad train` is told: a model, a method, and how to train; and what comes of it together."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from postgrad.core.errors import ConfigError
from postgrad.methods import METHODS
from postgrad.methods.method import Method
from postgrad.models.adapter import AdapterConfig
from postgrad.run.config import Config, validate
from postgrad.run.plugins import resolve
from postgrad.train.config import LoopConfig, MemoryConfig, OptimConfig, TrainConfig
from postgrad.train.sync.choice import complete_sync, seed_of_replica


class TrainVerb(Config):
    """A model, a method, and how to train."""

    model: str = "smollm2-135m"
    """Short name, folder, hub id, or the folder of a saved adapter."""
    adapter: AdapterConfig | None = Field(default_factory=AdapterConfig)
    """LoRA or another adapter; null trains all weights, or of an adapter folder its adapter."""
    method: dict[str, Any]
    """`name` of the method and its own fields."""
    optim: OptimConfig = Field(default_factory=OptimConfig)
    """Optimiser."""
    loop: LoopConfig = Field(default_factory=LoopConfig)
    """Loop."""
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Channel name -> its own fields; weights are the method's."""
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    """What saves memory and changes no loss."""
    sync: dict[str, Any] = Field(default_factory=lambda: {"name": "none"})
    """How replicas, each a run of its own, are kept together: `name` (none, diloco) and its own fields."""
    save: Literal["merged", "adapter"] = "merged"
    """What the artifact holds: the whole model, or the adapter alone."""
    device: str = "cpu"
    """Torch device."""

    @model_validator(mode="after")
    def _method_is_known(self) -> TrainVerb:
        build_method(self.method)
        return self

    @field_validator("sync")
    @classmethod
    def _complete_sync(cls, sync: dict[str, Any]) -> dict[str, Any]:
        """Check the sync's own fields and write their defaults out."""
        return complete_sync(sync)


def build_method(section: dict[str, Any]) -> Method:
    """The method that a recipe's `method` section describes.

    Raises:
        ConfigError: no name, an unknown name, or fields that are not the method's.
    """
    fields = dict(section)
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("the method has no name", got=section, expected=f"method.name, one of {', '.join(METHODS)}")
    method: Method = validate(resolve("method", name, METHODS), fields, source=f"method '{name}'")
    return method


def training(config: TrainVerb, method: Method) -> TrainConfig:
    """The loop's configuration: the recipe's, with the method's channel weights.

    Raises:
        ConfigError: the recipe weighs a channel otherwise than the method, or configures one that it does not feed.
    """
    weights = dict(method.weights())
    channels = {name: {"weight": weight} for name, weight in weights.items()}
    for name, fields in config.channels.items():
        if name not in weights:
            raise ConfigError(f"channels.{name}: the method feeds no such channel", expected=" or ".join(weights))
        if fields.get("weight", weights[name]) != weights[name]:
            raise ConfigError(
                f"channels.{name}.weight conflicts with the method's",
                got=fields["weight"],
                expected=weights[name],
                do="set the weight in the method section only",
            )
        channels[name] |= fields
    method.check(channels)
    loop = config.loop.resolved() | {"seed": seed_of_replica(config.loop.seed, config.sync)}
    fields = {"optim": config.optim.resolved(), "loop": loop, "channels": channels, "sync": config.sync}
    fields["memory"] = config.memory.resolved()
    return validate(TrainConfig, fields, source="train")
