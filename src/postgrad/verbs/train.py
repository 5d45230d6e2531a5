"""`postgrad train`: annotate with a method, train a policy, write an artifact with its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from postgrad.core.artifact import MANIFEST, Manifest, write_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.files import write_json
from postgrad.methods import METHODS
from postgrad.methods.method import Method
from postgrad.run.config import Config, validate
from postgrad.run.plugins import resolve
from postgrad.run.rundir import RunDir
from postgrad.train.config import LoopConfig, OptimConfig, TrainConfig
from postgrad.verbs.command import verb_command

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


class Adapter(Config):
    """LoRA: W + (alpha / rank) B A on the targets."""

    rank: int = 16
    """Rank of the update."""
    alpha: float = 32.0
    """Numerator of the update's scale."""
    dropout: float = 0.0
    """Dropout before A."""
    targets: str | tuple[str, ...] = "all-linear"
    """"all-linear", or names of modules."""
    last_layers: int | None = None
    """Adapt only the last so many layers: the others need no backward pass. Null adapts all."""
    seed: int = 0
    """Draws A."""


class TrainVerb(Config):
    """A model, a method, and how to train."""

    model: str = "smollm2-135m"
    """Short name, folder, hub id, or the folder of a saved adapter."""
    adapter: Adapter | None = Adapter()
    """LoRA; null trains all weights, or of an adapter folder its adapter."""
    method: dict[str, Any]
    """`name` of the method and its own fields."""
    optim: OptimConfig = OptimConfig()
    """Optimiser."""
    loop: LoopConfig = LoopConfig()
    """Loop."""
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Channel name -> its own fields; weights are the method's."""
    save: Literal["merged", "adapter"] = "merged"
    """What the artifact holds: the whole model, or the adapter alone."""
    device: str = "cpu"
    """Torch device."""

    @model_validator(mode="after")
    def _method_is_known(self) -> TrainVerb:
        build_method(self.method)
        return self


CONFIG = TrainVerb


def plan(config: TrainVerb) -> dict[str, Any]:
    """Method and channels as they will be used; refuses what cannot work before anything is loaded."""
    method = build_method(config.method)
    return {"method": config.method["name"], "channels": training(config, method).channels}


def run(config: TrainVerb, out: Path) -> dict[str, Any]:
    """Train and save; goes on from the newest checkpoint in `out`, and does nothing where the artifact is whole."""
    from postgrad.models.adapter import AdapterConfig
    from postgrad.models.policy import load_policy
    from postgrad.train.loop import train

    method = build_method(config.method)
    loop_config = training(config, method)
    folder, run_dir = out / "artifact", RunDir(out)
    data = _unchanged(method, out / "data.json")
    if not (folder / MANIFEST).exists():
        adapter = AdapterConfig(**config.adapter.model_dump()) if config.adapter else None
        policy = load_policy(config.model, adapter=adapter, device=config.device)
        if _needs_reference(loop_config):
            policy.freeze_reference()
        source = method.source(policy, seed=config.loop.seed)
        train(policy, source, loop_config, run_dir)
        _save(policy, config, folder, data=data)
    metrics = run_dir.metrics()
    return {
        "artifact": str(folder),
        "steps": config.loop.steps,
        "tokens": sum(line.get("tokens", 0) for line in metrics),
        "last": {name: value for name, value in metrics[-1].items() if name.startswith("loss")} if metrics else {},
        "metrics": str(run_dir.metrics_path),
    }


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
    return TrainConfig(optim=config.optim, loop=config.loop, channels=channels)


def _needs_reference(config: TrainConfig) -> bool:
    """Whether a channel compares with the weights as they were; with an adapter these are at hand anyway."""
    credit = config.channels.get("policy_gradient", {})
    return "preference" in config.channels or credit.get("kl_coefficient", 0) > 0


def _unchanged(method: Method, noted: Path) -> dict[str, str]:
    """Hashes of the files that the method reads, the same ones whenever the run goes on.

    Raises:
        DataError: a file is missing, or is not the one that the run began with.
    """
    for path in method.data():
        if not path.is_file():
            raise DataError("no such file of records", got=str(path), do="build it with `postgrad build`")
    data = {str(path): file_sha256(path) for path in method.data()}
    if noted.exists():
        for name, before in json.loads(noted.read_bytes()).items():
            if data.get(name) != before:
                raise DataError("the records changed since this run began", got=name, do="give another --run")
    else:
        write_json(noted, data)
    return data


def _save(policy: Policy, config: TrainVerb, folder: Path, *, data: dict[str, str]) -> None:
    if config.save == "adapter":
        policy.save(folder)
    else:
        policy.save_merged(folder)
    name = config.method["name"]
    manifest = Manifest(parent=config.model, method=name, kind=config.save, recipe=config.resolved(), data=data)
    write_manifest(folder, manifest)


def show(result: dict[str, Any]) -> str:
    """One line for a person."""
    losses = ", ".join(f"{name} {value:.4f}" for name, value in result["last"].items())
    return f"{result['steps']} steps, {result['tokens']} tokens; last {losses}; artifact: {result['artifact']}"


command = verb_command(
    "train",
    TrainVerb,
    run,
    help="Train a policy with a method (sft, dpo, sdpo, composer) and write an artifact.",
    show=show,
    plan=plan,
)
