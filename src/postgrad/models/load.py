"""Models and tokenizers from where `resolve` says that they are."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from postgrad.core.errors import DataError
from postgrad.models.adapter import ADAPTER_CONFIG, base_of, load_adapter
from postgrad.models.resolve import TINY_RANDOM, resolve_model
from postgrad.models.tiny import byte_tokenizer, tiny_model


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
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(source))
    except (OSError, ValueError) as error:
        raise DataError(f"the tokenizer does not load: {error}", got=str(source)) from None
    return tokenizer


def load_adapted(folder: Path, *, dtype: torch.dtype) -> PeftModel:
    """The saved adapter in `folder` on its own base, trainable."""
    base = base_of(folder)
    return load_adapter(load_plain(resolve_model(base), dtype=dtype), folder, base=base)


def load_plain(source: Path | str, *, dtype: torch.dtype) -> PreTrainedModel:
    """A plain model; an adapter folder gives its base with the adapter merged in."""
    if source == TINY_RANDOM:
        return tiny_model().to(dtype)
    if is_adapter(source):
        merged: PreTrainedModel = load_adapted(source, dtype=dtype).merge_and_unload()
        return merged
    disable_progress_bar()  # a bar per load would drown those of the run
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(str(source), dtype=dtype)
    except (OSError, ValueError) as error:
        raise DataError(f"the model does not load: {error}", got=str(source)) from None
    return model
