"""Put a new adapter on a model, as its configuration says.

The embeddings and the head get no adapter under "all-linear", and a weight that two modules share is refused: merging
into one of the two would change both. Experts whose weights are fused into one parameter of three axes are no linear
layers and stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from peft import AdaLoraConfig, LoraConfig, PeftConfig, PeftModel, VeraConfig, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from postgrad.core.errors import ConfigError
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.layerdrop import drop_layers
from postgrad.models.adapter.loftq import start_loftq
from postgrad.models.adapter.variants import AdaLora, Full, LayerDrop, LoftQ, LoraFA, Vera

MAMBA_FUSED = {"conv1d", "dt_proj", "out_proj", "x_proj"}
"""Layers whose weights Mamba's code reads past the adapter, always or in its fused kernels."""

LONGEST = 10**9
"""AdaLoRA's number of steps until the loop says how many there are."""


def attach(model: PreTrainedModel, config: AdapterConfig, *, base: str) -> PeftModel | PreTrainedModel:
    """Put a new adapter on `model`; `base` is the name by which a saved adapter finds the model again.

    Raises:
        ConfigError: no module of the model matches the targets, or one shares its weight with another module.
    """
    model.config._name_or_path = model.name_or_path = base
    if (drop := config.variant_of(LayerDrop)) is not None:
        drop_layers(model, rate=drop.rate)
    if config.variant_of(Full) is not None:
        return model.requires_grad_(True)
    refuse_shared(model, config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            adapted = get_peft_model(model, _peft_config(model, config))
        except ValueError as error:
            raise ConfigError(f"the adapter fits nothing: {error}", got=config.targets) from None
        if (start := config.variant_of(LoftQ)) is not None:
            start_loftq(adapted, start)
    freeze(adapted, config)
    return adapted


def freeze(model: PeftModel, config: AdapterConfig) -> None:
    """Freeze what the variant does not train, of a new adapter or a loaded one."""
    if config.variant_of(LoraFA) is not None:
        for name, parameter in model.named_parameters():
            if ".lora_A." in name:
                parameter.requires_grad_(False)


def adapted_layers(model: PeftModel) -> dict[str, Any]:
    """The layers that carry the adapter, by their names in the plain model."""
    network = model.get_base_model()
    return {name: part for name, part in network.named_modules() if isinstance(part, BaseTunerLayer)}


def _peft_config(model: PreTrainedModel, config: AdapterConfig) -> PeftConfig:
    common: dict[str, Any] = {
        "target_modules": target_names(model, config),
        "layers_to_transform": _last_layers(model, config.last_layers),
        "task_type": "CAUSAL_LM",
    }
    if (vera := config.variant_of(Vera)) is not None:
        # The random matrices are saved: what another version draws from the same seed is not certain.
        return VeraConfig(
            r=config.rank,
            vera_dropout=config.dropout,
            d_initial=vera.d_initial,
            projection_prng_key=config.seed,
            save_projection=True,
            **common,
        )
    lora: dict[str, Any] = {"lora_alpha": config.alpha, "lora_dropout": config.dropout, **common}
    if (ada := config.variant_of(AdaLora)) is not None:
        first = ada.initial_rank or config.rank + (config.rank + 1) // 2
        if first < config.rank:
            raise ConfigError("options.initial_rank", got=first, expected=f"adapter.rank ({config.rank}) or more")
        return AdaLoraConfig(
            init_r=first,
            target_r=config.rank,
            deltaT=ada.interval,
            beta1=ada.beta1,
            beta2=ada.beta2,
            orth_reg_weight=ada.orthogonal,
            total_step=LONGEST,
            **lora,
        )
    for variant in config.variants():
        lora |= variant.lora_fields()
    return LoraConfig(r=config.rank, **lora)


def target_names(model: PreTrainedModel, config: AdapterConfig) -> list[str]:
    """Names of the modules to adapt, spelt out: PEFT's "all-linear" works neither for some layers nor for Mamba."""
    if config.targets != "all-linear":
        return [config.targets] if isinstance(config.targets, str) else list(config.targets)
    head = model.get_output_embeddings()
    names = {name.rpartition(".")[2] for name, part in model.named_modules() if _is_linear(part) and part is not head}
    mamba = any(name.rpartition(".")[2] == "conv1d" for name, _ in model.named_modules())
    return sorted(names - MAMBA_FUSED if mamba else names)


def refuse_shared(model: PreTrainedModel, config: AdapterConfig) -> None:
    """Refuse a target whose weight another module holds too (a head tied to the embeddings).

    Raises:
        ConfigError: such a target.
    """
    owners: dict[int, list[str]] = {}
    for name, part in model.named_modules():
        weight = part._parameters.get("weight")
        if weight is not None:
            owners.setdefault(id(weight), []).append(name)
    wanted = target_names(model, config)
    for names in owners.values():
        for name in names:
            if len(names) > 1 and any(name == target or name.endswith(f".{target}") for target in wanted):
                others = ", ".join(other for other in names if other != name)
                raise ConfigError(
                    f"module '{name}' shares its weight with {others}: merging an adapter would change both",
                    do="leave it out of adapter.targets",
                )


def _is_linear(part: nn.Module) -> bool:
    """A linear layer. A model's own subclass counts if it computes one (Falcon's does, Phi-MoE's router does not)."""
    if not isinstance(part, (nn.Linear, Conv1D)):
        return False
    own = type(part).__module__.startswith("transformers.models.") and "forward" in vars(type(part))
    return not own or _computes_linear(part)


@torch.no_grad()
def _computes_linear(part: nn.Linear) -> bool:
    probe_NI = torch.linspace(-1, 1, 2 * part.in_features, device=part.weight.device, dtype=part.weight.dtype)
    probe_NI = probe_NI.reshape(2, part.in_features)
    expected_NO = nn.functional.linear(probe_NI, part.weight, part.bias)
    try:
        found = part(probe_NI)
    except (RuntimeError, TypeError, ValueError, IndexError):  # its code wants something else than an activation
        return False
    return isinstance(found, torch.Tensor) and found.shape == expected_NO.shape and torch.allclose(found, expected_NO)


def _last_layers(model: PreTrainedModel, count: int | None) -> list[int] | None:
    layers = model.config.get_text_config().num_hidden_layers
    if count is None:
        return None
    if not 1 <= count <= layers:
        raise ConfigError("adapter.last_layers is out of range", got=count, expected=f"1 to {layers}")
    return list(range(layers - count, layers))
