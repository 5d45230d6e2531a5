"""Parameters in groups that share a learning rate, a weight decay and a role.

    rate of a weight = lr · layer_decay^(layers above it) · (lora_plus_ratio, if it is a LoRA B)

- layer-wise decay (ELECTRA, arXiv:2003.10555): the last layer has the full rate, as has what follows it; the
  embeddings lie below the first layer;
- LoRA+ (arXiv:2402.12354): B learns faster than A.

A weight's layer is the number in its name (`model.layers.3.mlp...`). A *hidden* weight is a matrix inside a layer:
what Muon and GaLore are made for; embeddings and the head are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.distributed.tensor import DTensor

from postgrad.core.errors import ConfigError
from postgrad.train.config import OptimConfig

_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blocks|block)\.(\d+)\.")
_BOTTOM = re.compile(r"(?:^|[._])(?:embed(?!_out)\w*|wte|wpe|word_embeddings|embeddings)(?:[._]|$)")
_LORA_B = re.compile(r"(?:^|\.)lora_(?:embedding_)?B(?:\.|$)")


@dataclass(frozen=True)
class Group:
    """Parameters that are stepped alike; `scale` multiplies the learning rate."""

    parameters: Sequence[nn.Parameter]
    scale: float
    weight_decay: float
    hidden: bool

    def section(self, parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
        """Some of the group's parameters in the form that torch's optimisers take."""
        return {"params": list(parameters), "weight_decay": self.weight_decay, "scale_lr": self.scale}


def make_groups(parameters: Mapping[str, nn.Parameter], config: OptimConfig) -> list[Group]:
    """Groups in the order in which their first member comes.

    Raises:
        ConfigError: layer-wise decay without layers in the names, or LoRA+ without a B matrix.
    """
    layers = {name: int(found[1]) for name in parameters if (found := _LAYER.search(name))}
    depth = max(layers.values(), default=-1) + 1
    if config.layer_decay != 1 and not layers:
        raise ConfigError("optim.layer_decay needs weights in numbered layers", got=sorted(parameters)[0])
    if config.lora_plus_ratio != 1 and not any(_LORA_B.search(name) for name in parameters):
        raise ConfigError("optim.lora_plus_ratio is for LoRA's B matrices, and no trainable weight is one")
    groups: dict[tuple[float, float, bool, bool], list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        above = depth - 1 - layers[name] if name in layers else depth if _BOTTOM.search(name) else 0
        scale = config.layer_decay**above * (config.lora_plus_ratio if _LORA_B.search(name) else 1.0)
        decay = config.weight_decay if parameter.ndim >= 2 else 0.0
        hidden = parameter.ndim == 2 and name in layers
        shared = isinstance(parameter, DTensor)  # one call over many weights takes those of one kind
        groups.setdefault((scale, decay, hidden, shared), []).append(parameter)
    return [Group(members, scale, decay, hidden) for (scale, decay, hidden, _), members in groups.items()]
