"""LoRA adapters (arXiv 2106.09685) through PEFT: attach, load, save with a check that something was learned.

PEFT's `PeftModel` is used directly: `AutoModelForCausalLM.from_pretrained(adapter_folder)` loads some variants by
half. The embeddings and the head get no adapter, because merging into tied weights changes both.

Not covered: other PEFT variants.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from postgrad.core.errors import ConfigError, DataError, TrainingFault

ADAPTER_CONFIG = "adapter_config.json"
MAMBA_FUSED = {"conv1d", "dt_proj", "out_proj", "x_proj"}
"""Layers whose weights Mamba's code reads past the adapter, always or in its fused kernels."""


@dataclass(frozen=True)
class AdapterConfig:
    """A LoRA adapter: W + (alpha / rank) B A on each target, B zero at the start.

    `targets` is "all-linear" (every linear layer but the head) or names of modules. With `last_layers` only so many
    layers at the end are adapted, and the backward pass ends there. `seed` draws A.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
    last_layers: int | None = None
    seed: int = 0


def attach(model: PreTrainedModel, config: AdapterConfig, *, base: str) -> PeftModel:
    """Put a new adapter on `model`; `base` is the name by which a saved adapter finds the model again.

    Raises:
        ConfigError: no module of the model matches the targets.
    """
    model.config._name_or_path = model.name_or_path = base
    lora = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=_targets(model, config),
        layers_to_transform=_last_layers(model, config.last_layers),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            return get_peft_model(model, lora)
        except ValueError as error:
            raise ConfigError(f"the adapter fits nothing: {error}", got=config.targets) from None


def _targets(model: PreTrainedModel, config: AdapterConfig) -> list[str]:
    """Names of the modules to adapt, spelt out: PEFT's "all-linear" works neither for some layers nor for Mamba."""
    if config.targets != "all-linear":
        return [config.targets] if isinstance(config.targets, str) else list(config.targets)
    head = model.get_output_embeddings()
    names = {name.rpartition(".")[2] for name, part in model.named_modules() if _is_linear(part) and part is not head}
    mamba = any(name.rpartition(".")[2] == "conv1d" for name, _ in model.named_modules())
    return sorted(names - MAMBA_FUSED if mamba else names)


def _is_linear(part: nn.Module) -> bool:
    """A linear layer. A model's own subclass that computes something else (Phi-MoE's router gives a tuple) is none."""
    own = type(part).__module__.startswith("transformers.models.") and "forward" in vars(type(part))
    return isinstance(part, (nn.Linear, Conv1D)) and not own


def _last_layers(model: PreTrainedModel, count: int | None) -> list[int] | None:
    layers = model.config.get_text_config().num_hidden_layers
    if count is None:
        return None
    if not 1 <= count <= layers:
        raise ConfigError("adapter.last_layers is out of range", got=count, expected=f"1 to {layers}")
    return list(range(layers - count, layers))


def load_adapter(model: PreTrainedModel, folder: Path, *, base: str) -> PeftModel:
    """Put the adapter saved in `folder` on `model`, trainable.

    Raises:
        DataError: the folder holds no adapter that fits the model.
    """
    model.config._name_or_path = model.name_or_path = base
    try:
        return PeftModel.from_pretrained(model, str(folder), is_trainable=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"the adapter does not load: {error}", got=str(folder)) from None


def base_of(folder: Path) -> str:
    """The model name that the adapter in `folder` was trained on.

    Raises:
        DataError: its configuration is broken.
    """
    try:
        return str(json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"broken adapter configuration: {error}", got=str(folder / ADAPTER_CONFIG)) from None


def merge(model: PeftModel) -> PreTrainedModel:
    """A plain fp32 model that computes what `model` does; `model` itself stays as it is.

    Raises:
        TrainingFault: the merged model computes something else, so a layer does not go through its adapter.
    """
    merged: PreTrainedModel = copy.deepcopy(model).float().eval().merge_and_unload()
    network = model.get_base_model()
    probe_1L = torch.arange(3, 15, device=network.device)[None] % network.config.get_text_config().vocab_size
    training = model.training
    with torch.no_grad():
        live = model.eval()(input_ids=probe_1L, use_cache=False).logits.float()
        difference = float((merged(input_ids=probe_1L, use_cache=False).logits - live).abs().max())
    model.train(training)
    # Measured on SmolLM2-135M (30 layers, fp32): 1.5e-4 of the largest logit by rounding alone. A wrong merge of an
    # adapter that moves the logits by less than the allowance would pass.
    allowed = (1e-3 if network.dtype == torch.float32 else 5e-2) * float(live.abs().max())
    if difference > allowed:
        raise TrainingFault(
            f"merged, the model differs from the adapted one: logits by {difference:.1e} > {allowed:.1e}"
        )
    return merged


def check_learned(model: PeftModel) -> None:
    """Stop an adapter that is empty or still as it was made from being saved as a result.

    Raises:
        TrainingFault: there is no adapter weight, or every B is still zero.
    """
    halves = [weight for name, weight in model.named_parameters() if "lora_B" in name]
    if not halves:
        raise TrainingFault("the adapter is empty: nothing would be saved")
    if all(not bool(weight.any()) for weight in halves):
        raise TrainingFault("the adapter equals its initial values: nothing was learned, so nothing is saved")
