"""QLoRA (arXiv:2305.14314): frozen weights in 4-bit normal floats, held and computed by bitsandbytes.

The library is an extra of its own and, for anything but tiny models, wants a GPU. Only adapters are saved; a merged
model is made from the dequantised weights, since merging into 4 bits would round most of the adapter away.
"""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import torch
from peft import PeftModel, get_peft_model, set_peft_model_state_dict
from peft.utils import get_peft_model_state_dict
from peft.utils.integrations import dequantize_module_weight
from torch import nn

from postgrad.core.errors import MissingDependency
from postgrad.models.adapter.variants import QLora


def loading_in_4_bits(config: QLora, *, dtype: torch.dtype) -> dict[str, Any]:
    """Arguments of `from_pretrained` that load a model quantised.

    Raises:
        MissingDependency: bitsandbytes is not installed.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise MissingDependency("bitsandbytes", extra="qlora")
    from transformers import BitsAndBytesConfig

    quantisation = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=config.double_quantised,
        bnb_4bit_compute_dtype=dtype,
    )
    return {"quantization_config": quantisation}


@torch.no_grad()
def dequantised(model: PeftModel) -> PeftModel:
    """`model`, which is used up, with its frozen weights as plain fp32 layers and the same adapter."""
    import bitsandbytes

    config = copy.deepcopy(model.peft_config["default"])
    state = {
        name: value.clone() for name, value in get_peft_model_state_dict(model, save_embedding_layers=False).items()
    }
    plain = model.unload()
    for name, part in list(plain.named_modules()):
        if isinstance(part, bitsandbytes.nn.Linear4bit):
            parent, _, child = name.rpartition(".")
            linear = nn.Linear(
                part.in_features, part.out_features, bias=part.bias is not None, device=part.weight.device
            )
            linear.weight.copy_(dequantize_module_weight(part).float())
            if part.bias is not None:
                linear.bias.copy_(part.bias)
            setattr(plain.get_submodule(parent), child, linear)
    plain.is_loaded_in_4bit = plain.is_quantized = False
    for holder in (plain, plain.config):
        for attribute in ("quantization_method", "quantization_config", "hf_quantizer"):
            holder.__dict__.pop(attribute, None)
    twin = get_peft_model(plain, config)
    set_peft_model_state_dict(twin, state)
    return twin
