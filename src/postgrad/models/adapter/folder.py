"""Adapters on disk: PEFT's own two files, and beside them what PEFT does not note.

    adapter_model.safetensors  adapter_config.json    as PEFT writes and reads them
    postgrad_adapter.json                             the configuration that the adapter was made from
    quantised_base.safetensors                        of LoftQ: codes and scales of the weights that it is an adapter to

PiSSA is written as the LoRA adapter of twice the rank to the untouched model that computes the same: with A0, B0 at the
start, W - s B0 A0 + s B A = W + s [B, -B0] [A; A0]. So any program can load it and no decomposition is ever repeated
(randomised ones are not repeatable). A LoftQ folder names `loftq` as PEFT's own initialisation, so that a program that
would put it on unquantised weights stops instead.

What is written is read back and compared before the folder is put in place.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from peft import AdaLoraConfig, PeftConfig, PeftModel
from peft.utils import get_peft_model_state_dict
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from postgrad.core.errors import DataError, TrainingFault
from postgrad.core.files import write_json
from postgrad.models.adapter.attach import adapted_layers, freeze
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.layerdrop import drop_layers
from postgrad.models.adapter.loftq import Quantised, codes_of
from postgrad.models.adapter.start import Start
from postgrad.models.adapter.variants import LayerDrop, LoftQ, Pissa

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
NOTE = "postgrad_adapter.json"
QUANTISED = "quantised_base.safetensors"


def write_adapter(model: PeftModel, folder: Path, *, start: Start) -> None:
    """Write the adapter of `model` into `folder`, which exists.

    Raises:
        TrainingFault: a trained weight would not be written, or what was written is not what is in memory.
    """
    peft_config = copy.deepcopy(model.peft_config["default"])
    state = _state(model)
    _require_all(model, state)
    if start.variant(Pissa) is not None and start.fresh:
        state = _without_residual(model, state, start)
        peft_config.lora_alpha *= 2**0.5 if peft_config.use_rslora else 2
        peft_config.r, peft_config.init_lora_weights = 2 * peft_config.r, True
    peft_config.inference_mode = True
    if isinstance(peft_config, AdaLoraConfig):
        peft_config.rank_pattern = None
    stored = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    save_file(stored, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    peft_config.save_pretrained(str(folder))
    if (loftq := start.variant(LoftQ)) is not None:
        _write_quantised(model, folder, loftq)
    if start.config is not None:
        write_json(folder / NOTE, start.config.model_dump(mode="json"))
    written = load_file(folder / ADAPTER_WEIGHTS)
    if written.keys() != stored.keys() or not all(torch.equal(written[name], stored[name]) for name in stored):
        raise TrainingFault(f"what was written to {folder} is not the adapter in memory")


def read_adapter(model: PreTrainedModel, folder: Path, *, base: str) -> tuple[PeftModel, AdapterConfig | None]:
    """Put the adapter saved in `folder` on `model`, trainable; and its configuration, if it was made here.

    Raises:
        DataError: the folder holds no adapter that fits the model, weight by weight.
    """
    config = read_note(folder)
    model.config._name_or_path = model.name_or_path = base
    try:
        peft_config = _peft_config(folder)
        adapted = PeftModel.from_pretrained(model, str(folder), config=peft_config, is_trainable=True)
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise DataError(f"the adapter does not load: {error}", got=str(folder)) from None
    _require_same(adapted, folder)
    if config is not None:
        if (loftq := config.variant_of(LoftQ)) is not None:
            _read_quantised(adapted, folder, loftq)
        if (drop := config.variant_of(LayerDrop)) is not None:
            drop_layers(adapted.get_base_model(), rate=drop.rate)
        freeze(adapted, config)
    return adapted, config


def read_note(folder: Path) -> AdapterConfig | None:
    """The configuration that the adapter in `folder` was made from; None where it was made elsewhere.

    Raises:
        DataError: it is broken.
    """
    try:
        return AdapterConfig.model_validate_json((folder / NOTE).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DataError(f"broken note on an adapter: {error}", got=str(folder / NOTE)) from None


def base_of(folder: Path) -> str:
    """The model name that the adapter in `folder` was trained on.

    Raises:
        DataError: its configuration is broken.
    """
    try:
        return str(json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"broken adapter configuration: {error}", got=str(folder / ADAPTER_CONFIG)) from None


def _peft_config(folder: Path) -> PeftConfig:
    """PEFT's configuration, but the values to begin with are those of the file, never computed anew."""
    fields: dict[str, Any] = PeftConfig.from_json_file(str(folder / ADAPTER_CONFIG))
    if str(fields.get("init_lora_weights")).startswith("pissa"):
        return PeftConfig.from_pretrained(str(folder))  # written elsewhere: its residual is all that it is known by
    if "init_lora_weights" in fields:
        fields |= {"init_lora_weights": True, "loftq_config": {}}
    return PeftConfig.from_peft_type(**fields)


def _state(model: PeftModel) -> dict[str, Tensor]:
    """The adapter's weights as PEFT names them in a file, AdaLoRA's with the directions that were set to 0.

    PEFT would leave those out, and what it reloads then differs in the last bits.
    """
    config = model.peft_config["default"]
    pattern = getattr(config, "rank_pattern", None)
    if isinstance(config, AdaLoraConfig):
        config.rank_pattern = None
    try:
        # Without the flag PEFT asks the hub whether the vocabulary has grown.
        state: dict[str, Tensor] = get_peft_model_state_dict(model, save_embedding_layers=False)
    finally:
        if isinstance(config, AdaLoraConfig):
            config.rank_pattern = pattern
    return state


def _require_all(model: PeftModel, state: dict[str, Tensor]) -> None:
    """Every trained weight is in `state`."""
    kept = {value.data_ptr() for value in state.values()}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.data_ptr() not in kept:
            raise TrainingFault(f"the trained weight {name} would not be saved with the adapter")


def _require_same(model: PeftModel, folder: Path) -> None:
    """PEFT only warns when a file and a model do not fit together; here that is an error."""
    try:
        stored = load_file(folder / ADAPTER_WEIGHTS)
    except FileNotFoundError:
        return  # an older file type, which PEFT has read
    except (OSError, SafetensorError) as error:
        raise DataError(f"the adapter does not load: {error}", got=str(folder / ADAPTER_WEIGHTS)) from None
    loaded = _state(model)
    for name in sorted(stored.keys() | loaded.keys()):
        if name not in stored or name not in loaded:
            where = "the file" if name not in stored else "the model"
            raise DataError(f"the adapter does not fit the model: {where} has no weight '{name}'", got=str(folder))
        if not torch.equal(loaded[name].cpu(), stored[name].to(loaded[name].dtype)):
            raise DataError(f"the adapter's weight '{name}' was not loaded", got=str(folder))


def _without_residual(model: PeftModel, state: dict[str, Tensor], start: Start) -> dict[str, Tensor]:
    """[A; A0] and [B, -B0]: a PiSSA adapter as one to the untouched weights."""
    first = {name.replace(".default", ""): value.to(model.device) for name, value in start.values.items()}
    frozen = {name.replace(".default", ""): p.detach() for name, p in model.named_parameters() if ".lora_A." in name}
    converted = {}
    for name, value in state.items():
        if ".lora_A." in name:
            converted[name] = torch.cat([value, first.get(name, frozen[name])], dim=0)
        elif ".lora_B." in name:
            converted[name] = torch.cat([value, -first[name]], dim=1)
        else:
            converted[name] = value
    return converted


def _write_quantised(model: PeftModel, folder: Path, config: LoftQ) -> None:
    tensors: dict[str, Tensor] = {}
    for name, layer in adapted_layers(model).items():
        quantised = codes_of(layer.get_base_layer().weight.detach(), config, crossed=layer.fan_in_fan_out)
        tensors |= {f"{name}.codes": _packed(quantised.codes_KB, config.bits), f"{name}.scales": quantised.scales_K}
    save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, folder / QUANTISED)
    path = folder / ADAPTER_CONFIG
    peft_config = json.loads(path.read_text(encoding="utf-8"))
    peft_config |= {
        "init_lora_weights": "loftq",
        "loftq_config": {"loftq_bits": config.bits, "loftq_iter": config.iterations},
    }
    write_json(path, peft_config)


@torch.no_grad()
def _read_quantised(model: PeftModel, folder: Path, config: LoftQ) -> None:
    try:
        tensors = load_file(folder / QUANTISED)
    except (OSError, SafetensorError) as error:
        raise DataError(f"the quantised weights do not load: {error}", got=str(folder / QUANTISED)) from None
    for name, layer in adapted_layers(model).items():
        weight, crossed = layer.get_base_layer().weight, layer.fan_in_fan_out
        shape = tuple(weight.T.shape if crossed else weight.shape)
        codes, scales = tensors.get(f"{name}.codes"), tensors.get(f"{name}.scales")
        if codes is None or scales is None:
            raise DataError(f"the quantised weights have none for '{name}'", got=str(folder / QUANTISED))
        codes_KB = _unpacked(codes, config.bits, count=len(scales) * config.block).reshape(len(scales), config.block)
        value = Quantised(codes_KB, scales, shape).weight(config.bits).to(weight.dtype)
        weight.copy_(value.T if crossed else value)


def _packed(codes: Tensor, bits: int) -> Tensor:
    """Two codes a byte where they fit."""
    flat = codes.flatten()
    if bits > 4:
        return flat
    flat = torch.nn.functional.pad(flat, (0, len(flat) % 2))
    return flat[0::2] | (flat[1::2] << 4)


def _unpacked(stored: Tensor, bits: int, *, count: int) -> Tensor:
    if bits > 4:
        return stored[:count]
    return torch.stack([stored & 15, stored >> 4], dim=1).flatten()[:count]
