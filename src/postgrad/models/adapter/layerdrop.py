"""LayerDrop (arXiv:1909.11556): while training, whole layers are passed over at random, drawn once a forward pass.

A layer that is passed over hands its input on, so the residual stream stays whole and the layer gets no gradient.
Every pass computes at least one layer that is trained. In evaluation mode nothing changes.

Not covered: leaving layers out for good after training.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from postgrad.core.errors import ConfigError


def drop_layers(model: PreTrainedModel, *, rate: float) -> None:
    """Make `model` pass over each of its layers with probability `rate` in training mode.

    Raises:
        ConfigError: the model has no stack of layers that can be told.
    """
    stack, layers = _layers(model)
    draw = _Draw(layers, rate)
    stack.register_forward_pre_hook(draw.anew)  # a bound method, so that a deep copy of the model draws for itself
    with torch.no_grad():
        hooks = [layer.register_forward_hook(draw.note) for layer in layers]
        model(input_ids=torch.arange(2, device=model.device)[None], use_cache=False)
        for hook in hooks:
            hook.remove()
    for index, layer in enumerate(layers):
        layer.forward = _Droppable(layer.forward, layer, draw, index)


class _Draw:
    """Which layers the pass under way computes."""

    def __init__(self, layers: nn.ModuleList, rate: float) -> None:
        self._layers, self._rate = layers, rate
        self.kept = [True] * len(layers)
        self.tuples: dict[nn.Module, int] = {}

    def anew(self, *_: Any) -> None:
        """Draw for a new pass, from torch's own generator, which checkpoints hold."""
        self.kept = (torch.rand(len(self._layers)) >= self._rate).tolist()
        trained = [i for i, layer in enumerate(self._layers) if any(p.requires_grad for p in layer.parameters())]
        if trained and not any(self.kept[i] for i in trained):
            self.kept[trained[int(torch.randint(len(trained), (1,)))]] = True

    def note(self, layer: nn.Module, _: Any, output: Any) -> None:
        """Remember the form of a layer's output: 0 for a tensor, else the length of the tuple."""
        self.tuples[layer] = len(output) if isinstance(output, tuple) else 0


class _Droppable:
    """A layer's forward that may hand its input on."""

    def __init__(self, forward: Any, layer: nn.Module, draw: _Draw, index: int) -> None:
        self._forward, self._layer, self._draw, self._index = forward, layer, draw, index

    def __call__(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self._layer.training or self._draw.kept[self._index]:
            return self._forward(hidden_states, *args, **kwargs)
        length = self._draw.tuples[self._layer]
        return (hidden_states, *[None] * (length - 1)) if length else hidden_states


def _layers(model: PreTrainedModel) -> tuple[nn.Module, nn.ModuleList]:
    """The module that runs the stack of layers, and the stack."""
    count = model.config.get_text_config().num_hidden_layers
    for module in model.modules():
        for child in module.children():
            if isinstance(child, nn.ModuleList) and len(child) == count:
                return module, child
    expected = f"a ModuleList of {count} layers"
    raise ConfigError("layerdrop finds no stack of layers", got=type(model).__name__, expected=expected)
