"""Layers that keep only their input and are computed again in the backward pass: less memory, the same bits."""

from __future__ import annotations

from typing import Any

from torch import nn

from postgrad.core.errors import ConfigError


def compute_again(model: nn.Module, *, every: int, offload: bool = False) -> None:
    """Let every n-th layer of `model` keep only its input while training; with `offload` in host memory.

    Raises:
        ConfigError: its family cannot, or its weights are in host memory already.
    """
    get = getattr(model, "get_base_model", None)
    network: Any = model if get is None else get()
    if not getattr(network, "supports_gradient_checkpointing", False):
        raise ConfigError("memory.checkpoint_every: this model cannot compute layers again", got=type(network).__name__)
    if offload and next(model.parameters()).device.type == "cpu":
        raise ConfigError("memory.offload moves to host memory, and the model is there already", do="leave it out")
    network.activation_checkpointing_enable(every_n_layers=every, offload=offload)
    # It also lets gradients run down to the embeddings, which layers below the lowest trained one do not need.
    network.disable_input_require_grads()
