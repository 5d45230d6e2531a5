"""An optimiser's state as named tensors and plain numbers, and back, for any optimiser and without pickle.

Libraries keep state in their own ways: tensors, quantised tensors made of several, objects that hold a projection, a
step count in the group. `_leaves` walks all of them and names every tensor and number by its path

    "model.layers.0.mlp.weight/exp_avg_sq/codes"

Going back, the optimiser first takes one step on gradients of zero, so that it makes its own objects; then their
leaves are overwritten. That step moves weights (decay), so weights are put in place afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from postgrad.core.errors import DataError
from postgrad.train.optim import Optimizer
from postgrad.train.sharding import put, whole

Number = bool | int | float


@dataclass(frozen=True)
class OptimizerState:
    """Tensors by path, and numbers by path."""

    tensors: Mapping[str, Tensor]
    numbers: Mapping[str, Number]


@dataclass(frozen=True)
class _Leaf:
    """A place that holds a tensor or a number: `owner[key]`, or an attribute of an object."""

    path: str
    value: Tensor | Number
    owner: Any
    key: Any

    def put(self, value: Any) -> None:
        if isinstance(self.owner, dict | list):
            self.owner[self.key] = value
        else:
            setattr(self.owner, self.key, value)


def read_state(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> OptimizerState:
    """State of `optimizer`, whose weights are `parameters` by name; all workers ask together."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Number] = {}
    for leaf in _leaves_of(optimizer, parameters):
        if isinstance(leaf.value, Tensor):
            tensors[leaf.path] = whole(leaf.value.detach()).contiguous()
        else:
            numbers[leaf.path] = leaf.value
    return OptimizerState(tensors, numbers)


@torch.no_grad()
def write_state(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter], state: OptimizerState) -> None:
    """Put `state` in place; the weights themselves are not restored by it and must be set afterwards.

    Raises:
        DataError: the state is of another optimiser.
    """
    with_state = {path.partition("/")[0] for path in (*state.tensors, *state.numbers)}
    for part in optimizer.parts:
        part.state.clear()
    for name, parameter in parameters.items():
        parameter.grad = torch.zeros_like(parameter) if name in with_state else None
    if any(parameter.grad is not None for parameter in parameters.values()):
        optimizer.step(0.0)
    for parameter in parameters.values():
        parameter.grad = None
    seen = set()
    for leaf in list(_leaves_of(optimizer, parameters)):
        seen.add(leaf.path)
        _overwrite(leaf, state)
    for path in (*state.tensors, *state.numbers):
        if path not in seen:
            raise DataError("the optimiser's state is another's", got=path, expected="what this optimiser keeps")


def _overwrite(leaf: _Leaf, state: OptimizerState) -> None:
    value = leaf.value
    stored = state.tensors.get(leaf.path) if isinstance(value, Tensor) else state.numbers.get(leaf.path)
    if stored is None:
        raise DataError("the optimiser's state lacks a part", expected=leaf.path)
    if isinstance(value, Tensor) and isinstance(stored, Tensor):
        if value.shape != stored.shape:
            raise DataError(
                f"the optimiser's state '{leaf.path}' is of another shape",
                got=tuple(stored.shape),
                expected=tuple(value.shape),
            )
        put(value, stored)
    else:
        leaf.put(stored)


def _leaves_of(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> Iterator[_Leaf]:
    names = {id(parameter): name for name, parameter in parameters.items()}
    for k, part in enumerate(optimizer.parts):
        for parameter in [p for group in part.param_groups for p in group["params"]]:
            if parameter in part.state:
                yield from _leaves(names[id(parameter)], part.state[parameter])
        if part.state:
            for g, group in enumerate(part.param_groups):
                if "step" in group:  # some libraries count steps here
                    yield _Leaf(f"/{k}/{g}/step", group["step"], group, "step")


def _leaves(path: str, value: Any, owner: Any = None, key: Any = None) -> Iterator[_Leaf]:
    if isinstance(value, Tensor) and is_traceable_wrapper_subclass(value) and not isinstance(value, DTensor):
        for name in value.__tensor_flatten__()[0]:
            yield from _leaves(f"{path}/{name}", getattr(value, name))
    elif isinstance(value, Tensor | bool | int | float):
        yield _Leaf(path, value, owner, key)
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(f"{path}/{name}", part, value, name)
    elif isinstance(value, list | tuple):
        for k, part in enumerate(value):
            yield from _leaves(f"{path}/{k}", part, value, k)
    elif hasattr(value, "__dict__"):
        for name, part in vars(value).items():
            yield from _leaves(f"{path}/{name}", part, value, name)
