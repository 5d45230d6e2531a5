"""A causal LM in two parts: the body (tokens to hidden states) and the head (hidden states to logits).

Families differ in what follows the last hidden state (a bias, a multiplier, soft-capping) and in where they keep the
body, and each has it written in its own ``forward``. So nothing is rewritten here. The body is the first submodule that
the model calls; the head is the model's own ``forward`` with the body replaced by one that hands its input on. Both
share every parameter with the model and hold no state.

Shapes: N positions, L positions, D hidden width, V vocabulary.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from postgrad.core.errors import ConfigError


class SplitModel:
    """`model` taken apart.

    Attributes:
        model: the whole.
        config: its text configuration.
        body: called as transformers calls it; its output has `last_hidden_state`.

    Raises:
        ConfigError: the model's forward cannot be split into body and head.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.config: Any = model.config.get_text_config(decoder=True)
        probe_1L = torch.arange(2, device=model.device)[None]
        path, output = _first_called(model, probe_1L)
        self.body: nn.Module = model.get_submodule(path)
        if not isinstance(getattr(output, "last_hidden_state", None), Tensor):
            raise ConfigError("no body that gives hidden states", got=type(model).__name__, expected="a causal LM")
        self._whole = _with_body(model, path.split("."), _PassOn(self.body, type(output)))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are stored in."""
        dtype: torch.dtype = self.model.dtype
        return dtype

    def head(self, hidden_ND: Tensor) -> Tensor:
        """Logits (N, V) of `hidden_ND` in fp32, exactly as the model computes its own."""
        logits_1NV: Tensor = self._whole(inputs_embeds=hidden_ND[None], use_cache=False, return_dict=True).logits
        return logits_1NV.squeeze(0).float()  # an index would make a buffer of zeros in the backward pass


class _PassOn(nn.Module):
    """A body that returns its input embeddings as the last hidden state, in the output type of the real body.

    Some heads read settings off the body (a multiplier); those come from the real one.
    """

    def __init__(self, body: nn.Module, output_type: type[Any]) -> None:
        super().__init__()
        # Kept out of the module's children: the body's parameters are not the head's.
        self.__dict__["_real"] = body
        self._output_type = output_type

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_real"], name)

    def forward(self, *args: Any, inputs_embeds: Tensor, **kwargs: Any) -> Any:
        return self._output_type(last_hidden_state=inputs_embeds)


def _first_called(model: PreTrainedModel, ids_1L: Tensor) -> tuple[str, Any]:
    """The path and output of the first submodule that `model` calls."""
    called: list[str] = []
    outputs: dict[str, Any] = {}
    hooks = []
    for path, module in model.named_modules():
        if path:
            hooks.append(module.register_forward_pre_hook(lambda *_, path=path: called.append(path)))
            hooks.append(module.register_forward_hook(lambda *given, path=path: outputs.__setitem__(path, given[-1])))
    try:
        with torch.no_grad():
            model(input_ids=ids_1L, use_cache=False, return_dict=True)
    finally:
        for hook in hooks:
            hook.remove()
    return called[0], outputs[called[0]]


def _with_body(module: nn.Module, path: list[str], body: nn.Module) -> nn.Module:
    """A copy of `module` that shares everything with it but the submodule at `path`."""
    if not path:
        return body
    shell = copy.copy(module)
    children = {**module._modules, path[0]: _with_body(module.get_submodule(path[0]), path[1:], body)}
    object.__setattr__(shell, "_modules", children)
    return shell
