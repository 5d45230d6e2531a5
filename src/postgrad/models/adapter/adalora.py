"""AdaLoRA's part in the loop (arXiv:2303.10512): the pull to orthogonality, and the budget after every step.

PEFT keeps the importance of every triplet and decides which are set to 0. It adds the pull to orthogonality only to a
loss that the model itself computes, so here its gradient is added to the others. The importances are state: a resumed
run goes on with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn

from postgrad.core.errors import ConfigError
from postgrad.models.adapter.variants import AdaLora

MEMORIES = ("ipt", "exp_avg_ipt", "exp_avg_unc")


class AdaLoraSchedule:
    """A companion of the loop that lays AdaLoRA's schedule over a run of `steps` optimiser steps.

    Raises:
        ConfigError: no step is left between the first and the last part.
    """

    name = "adalora"

    def __init__(self, model: PeftModel, config: AdaLora, *, steps: int) -> None:
        warmup, final = round(config.warmup * steps), round(config.final * steps)
        if warmup + final >= steps:
            part = f"{warmup} + {final} of {steps} steps"
            raise ConfigError("adapter.options.warmup and final leave no step in between", got=part, do="train longer")
        self._model, self._orthogonal = model, config.orthogonal
        peft = model.peft_config["default"]
        peft.total_step, peft.tinit, peft.tfinal = steps, warmup, final

    def before_step(self, step: int) -> None:
        """Add the gradient of the pull to orthogonality; a weight that no token reached gets a gradient of 0."""
        for parameter in self._parameters().values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        matrices = [p for name, p in self._parameters().items() if ".lora_A." in name or ".lora_B." in name]
        with torch.enable_grad():
            pull = torch.stack([_from_orthogonal(p) for p in matrices]).mean() * self._orthogonal
            for parameter, gradient in zip(matrices, torch.autograd.grad(pull, matrices), strict=True):
                assert parameter.grad is not None
                parameter.grad += gradient

    def after_step(self, step: int) -> None:
        """Update importances from the gradients, which are still there, and mask to the budget of `step`."""
        peft, tuner = self._model.peft_config["default"], self._model.base_model
        if step + 1 == peft.total_step - peft.tfinal and not tuner.rankallocator.exp_avg_ipt:
            tuner.rankallocator.update_ipt(tuner.model)  # so short a run that the ranks are fixed with its first step
        tuner.update_and_allocate(step + 1)

    def tensors(self) -> dict[str, Tensor]:
        """Importances, and which triplets are left."""
        allocator = self._model.base_model.rankallocator
        memories = {f"{memory}/{name}": t for memory in MEMORIES for name, t in getattr(allocator, memory).items()}
        pattern = self._model.peft_config["default"].rank_pattern or {}
        return memories | {f"kept/{name}": torch.tensor(kept, dtype=torch.bool) for name, kept in pattern.items()}

    def state(self) -> dict[str, Any]:
        """Nothing beside the tensors."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Take back what `tensors` gave."""
        allocator, device = self._model.base_model.rankallocator, self._model.device
        for memory in MEMORIES:
            setattr(allocator, memory, {name: t.to(device) for name, t in _under(memory, tensors).items()})
        kept = {name: t.tolist() for name, t in _under("kept", tensors).items()}
        self._model.peft_config["default"].rank_pattern = kept or None

    def _parameters(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self._model.named_parameters() if p.requires_grad}


def _under(head: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{head}/"): t for name, t in tensors.items() if name.startswith(f"{head}/")}


def _from_orthogonal(matrix: nn.Parameter) -> Tensor:
    """|M M' - I| over the shorter side, Frobenius: how far its singular vectors are from orthonormal ones."""
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    distance: Tensor = torch.linalg.norm(gram - torch.eye(len(gram), device=gram.device, dtype=gram.dtype))
    return distance
