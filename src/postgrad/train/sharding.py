"""Weights split over workers (FSDP2): each holds a share of every layer, of its gradient and of its optimiser's state.

A layer's weights are gathered when a pass comes to it and dropped when it has passed; gradients are summed on the way
back and split again. Embeddings, the last norm and the head stay whole on every worker: body and head run apart here,
and with tied embeddings they share a weight. So the cut is torch's own `fully_shard` layer by layer, over accelerate's
process group, and not accelerate's wrapping of a whole model, which gathers when the model's `forward` is called.

Gathering is a joint act: workers must run equally many passes in one order. `Lockstep` sees to it in training; when
something asks the policy on the first worker alone (a source that samples), the weights are whole for that time.

Not covered: the flat layout, teachers that are copies, evolution strategies, adapters that share weights over layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import clip_grad_norm_

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, build_forest
from postgrad.objectives.channel import Scored
from postgrad.train.workers import Workers


class Sharding:
    """`model` cut over `workers`, in place; its parameters are other objects afterwards.

    Raises:
        ConfigError: a model without layers, or whose layers share weights.
    """

    def __init__(self, model: nn.Module, workers: Workers) -> None:
        parent, layers = _layers(model)
        workers.same_weights(p for p in model.parameters() if p.requires_grad)
        mesh = init_device_mesh(workers.device.type, (workers.size,))
        split = [fully_shard(layer, mesh=mesh) for layer in layers]
        unsplit = {p for p in parent.parameters() if not isinstance(p, DTensor)}
        fully_shard(parent, mesh=mesh, ignored_params=unsplit)
        for layer, before in zip(split, [split[0], *split[:-1]], strict=True):
            # Said outright: what is gathered ahead by default follows the passes that this worker ran, others or not.
            layer.set_modules_to_backward_prefetch([before])
        self._parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
        for part in self._parts:
            part.set_gradient_divide_factor(1.0)  # every loss is divided by the count of all workers already
            part.set_force_sum_reduction_for_comms(True)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Inside, every worker has all weights, and one may use the model without the others."""
        for part in self._parts:
            part.set_reshard_after_forward(False)
            part.unshard()
        yield  # an error ends the run, and with it the shares
        for part in self._parts:
            part.reshard()
            part.set_reshard_after_forward(True)


@dataclass(frozen=True)
class Lockstep:
    """Equally many passes on all workers; `reference` says whether each forest has a reference pass as well."""

    workers: Workers
    reference: bool

    def padded(self, forests: Sequence[Forest]) -> list[Forest]:
        """`forests`, and idle ones as far as other workers have more."""
        most = max(self.workers.gathered(len(forests)))
        return [*forests, *[IDLE] * (most - len(forests))]

    def pass_reference(self, scored: Scored) -> None:
        """Run the reference pass of a forest, whether a channel will ask for it or not."""
        if self.reference:
            scored.reference_logprobs(np.zeros(0, dtype=np.int64))


IDLE = build_forest([Unit(((0,),))])
"""One token that nothing is asked of."""


def whole(tensor: Tensor) -> Tensor:
    """A tensor that may be shared out, as a whole; all workers must ask together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def put(target: Tensor, value: Tensor) -> None:
    """Set `target`, which may be shared out, to the whole `value`."""
    if isinstance(target, DTensor):
        value = value.to(target.device)
        shared = distribute_tensor(value, target.device_mesh, target.placements, src_data_rank=None)
        target.to_local().copy_(shared.to_local())
    else:
        target.copy_(value)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> float:
    """Norm of the whole gradient, in fp64."""
    squares = (whole(p.grad.double().square().sum()) for p in parameters if p.grad is not None)
    return float(sum(map(float, squares)) ** 0.5)


@torch.no_grad()
def clip(parameters: Sequence[nn.Parameter], limit: float) -> float:
    """Scale gradients down to a norm of at most `limit`; their norm before."""
    if not any(isinstance(p, DTensor) for p in parameters):
        return float(clip_grad_norm_(parameters, limit))
    norm = gradient_norm(parameters)
    factor = min(1.0, limit / (norm + 1e-6))  # as torch has it
    for parameter in parameters:
        if parameter.grad is not None:
            gradient = parameter.grad
            (gradient.to_local() if isinstance(gradient, DTensor) else gradient).mul_(factor)
    return norm


def _layers(model: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """The layers of a model and what they hang on: its largest list of modules."""
    lists = [(m, child) for m in model.modules() for child in m.children() if isinstance(child, nn.ModuleList)]
    if not lists:
        raise ConfigError("memory.shard needs a model with a list of layers", got=type(model).__name__)
    parent, layers = max(lists, key=lambda pair: sum(p.numel() for p in pair[1].parameters()))
    owners: dict[Any, int] = {}
    for k, layer in enumerate(layers):
        for name, parameter in layer.named_parameters():
            if owners.setdefault(parameter, k) != k:
                raise ConfigError("memory.shard: a weight is shared by several layers", got=name)
    return parent, list(layers)
