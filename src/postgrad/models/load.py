"""Models and tokenizers from where `resolve` says that they are."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

import torch
from peft import PeftModel
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from postgrad.core.errors import ConfigError, DataError
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.folder import ADAPTER_CONFIG, base_of, read_adapter, read_note
from postgrad.models.adapter.quantised import loading_in_4_bits
from postgrad.models.adapter.variants import QLora
from postgrad.models.resolve import TINY_RANDOM, require_reachable, resolve_model
from postgrad.models.tiny import byte_tokenizer, tiny_model

WEIGHT_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "auto": torch.float32}
"""How weights are held -> the type; with `auto` a GPU or a CPU that is faster so computes in bfloat16 beside them."""


def is_adapter(source: Path | str) -> TypeGuard[Path]:
    """Whether `source` is the folder of a saved adapter."""
    return isinstance(source, Path) and (source / ADAPTER_CONFIG).exists()


def load_tokenizer(source: Path | str) -> PreTrainedTokenizerBase:
    """The tokenizer of a resolved model; an adapter folder without one uses its base's.

    Raises:
        DataError: there is none that loads.
    """
    if source == TINY_RANDOM:
        return byte_tokenizer()
    if is_adapter(source) and not (source / "tokenizer_config.json").exists():
        return load_tokenizer(resolve_model(base_of(source)))
    if isinstance(source, str):
        require_reachable(source)
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(source))
    except (OSError, ValueError) as error:
        raise DataError(f"the tokenizer does not load: {error}", got=str(source)) from None
    return tokenizer


def load_adapted(folder: Path, *, dtype: torch.dtype) -> tuple[PeftModel, AdapterConfig | None]:
    """The saved adapter in `folder` on its own base, trainable, and what it was made from."""
    base = base_of(folder)
    plain = load_plain(resolve_model(base), dtype=dtype, adapter=read_note(folder))
    return read_adapter(plain, folder, base=base)


def load_plain(source: Path | str, *, dtype: torch.dtype, adapter: AdapterConfig | None = None) -> PreTrainedModel:
    """A plain model, its weights held as `adapter` wants them; an adapter folder gives its base with it merged in."""
    held = adapter.variant_of(QLora) if adapter is not None else None
    if held is not None and (source == TINY_RANDOM or is_adapter(source)):
        raise ConfigError("qlora loads its weights from the files of a plain model", got=str(source))
    disable_progress_bar()  # a bar per load and per saved file would drown those of the run
    if source == TINY_RANDOM:
        return tiny_model().to(dtype)
    if is_adapter(source):
        merged: PreTrainedModel = load_adapted(source, dtype=dtype)[0].merge_and_unload()
        return merged
    if isinstance(source, str):
        require_reachable(source)
    quantised = {} if held is None else loading_in_4_bits(held, dtype=dtype)
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(str(source), dtype=dtype, **quantised)
    except (OSError, ValueError) as error:
        raise DataError(f"the model does not load: {error}", got=str(source)) from None
    silence_dropout(model)
    return model


def silence_dropout(model: PreTrainedModel) -> None:
    """Switch off the dropout that `model` was pretrained with (0.1 in GPT-2); that of an adapter comes later and stays.

    Under it a policy is not its own reference at the first step, a ratio to the policy that sampled is not 1, and how a
    step is packed changes its loss. What is saved keeps the model's configuration.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in list(vars(module).items()):
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def keep_weights(model: PreTrainedModel) -> None:
    """Stop RWKV from rescaling its weights in place whenever it changes between training and evaluation.

    That breaks a backward pass with an evaluation in between, and a model saved in evaluation mode; it helps fp16 only.
    """
    config = model.config.get_text_config()
    if getattr(config, "rescale_every", 0):
        config.rescale_every = 0
