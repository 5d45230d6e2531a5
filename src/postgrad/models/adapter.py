"""LoRA adapters (arXiv 2106.09685) through PEFT: attach, load, save with a check that something was learned.

PEFT's `PeftModel` is used directly: `AutoModelForCausalLM.from_pretrained(adapter_folder)` loads some variants by
half. The embeddings and the head get no adapter, because merging into tied weights changes both.

Not covered: other PEFT variants.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel

from postgrad.core.errors import ConfigError, DataError, TrainingFault

ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class AdapterConfig:
    """A LoRA adapter: W + (alpha / rank) B A on each target, B zero at the start.

    `targets` is "all-linear" (every linear layer but the head) or names of modules. `seed` draws A.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
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
        target_modules=config.targets if isinstance(config.targets, str) else list(config.targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        try:
            return get_peft_model(model, lora)
        except ValueError as error:
            raise ConfigError(f"the adapter fits nothing: {error}", got=config.targets) from None


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
