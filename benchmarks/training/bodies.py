"""The model of the training cases: SmolLM2-135M's shape with random weights, the same in every process.

`layers` and `vocabulary` scale it down for quick runs; 6 layers and 9,830 tokens are a fifth of everything. With
`lora` its adapter has both halves non-zero, so that policy and reference differ and every adapter weight has a
gradient. A fingerprint of the gradients is what arms are compared by: up to `SAMPLED` entries of every weight's.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from postgrad.models.adapter.attach import attach
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.start import Start
from postgrad.models.policy import Policy, make_policy
from postgrad.models.tiny import byte_tokenizer
from training.data import Settings

SAMPLED = 4096


def model(settings: Settings) -> PreTrainedModel:
    """Random weights, in evaluation mode."""
    config = LlamaConfig(
        vocab_size=settings["vocabulary"],
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=settings["layers"],
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rope_theta=100000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    built: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return built.eval()


def policy(settings: Settings) -> Policy:
    """The model as a policy, with an adapter if the settings say so."""
    plain, tokenizer = model(settings), byte_tokenizer()
    if not settings.get("lora"):
        return make_policy("benchmark", plain, tokenizer)
    config = AdapterConfig(rank=16)
    adapted = attach(plain, config, base="benchmark")
    start = Start.of(adapted, config, fresh=True)
    use_adapter(adapted)
    return make_policy("benchmark", adapted, tokenizer, start=start)


def use_adapter(adapted: nn.Module) -> None:
    """Give B the values that training would have."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn(weight.shape, generator=draw) * (0.01 if "lora_B" in name else 0.04))


def fingerprint(module: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Entries of every gradient, by the weight's name."""
    draw = np.random.default_rng(0)
    found = {}
    for name, weight in sorted(module.named_parameters()):
        if weight.requires_grad and weight.grad is not None:
            places = draw.integers(0, weight.numel(), min(SAMPLED, weight.numel()))
            found[name] = weight.grad.flatten()[torch.from_numpy(places)].numpy().copy()
    return found
