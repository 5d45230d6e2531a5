"""Data-parallel workers: every one holds the whole policy and a share of each step's units.

Gradients are summed, not averaged: each loss is already divided by the count of all workers together. The model is
not wrapped, so one all-reduce a step is all the traffic there is, and one process needs no process group.

Weights that are split over workers (`sharding`) take care of their gradients themselves and are passed over here.

Not covered: tensor and pipeline parallelism, workers that come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list, gather_object
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from postgrad.core.annotation import Unit


class Workers:
    """The process group, or the one process there is."""

    def __init__(self) -> None:
        # without `cpu` accelerate passes over the processes that torchrun started on a machine without GPUs
        self._accelerator = Accelerator(cpu=not torch.cuda.is_available())

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        return int(self._accelerator.process_index)

    @property
    def size(self) -> int:
        """Number of workers."""
        return int(self._accelerator.num_processes)

    @property
    def device(self) -> torch.device:
        """Where this worker computes."""
        device: torch.device = self._accelerator.device
        return device

    @property
    def is_first(self) -> bool:
        """Whether this worker asks the source, logs and writes."""
        return self.rank == 0

    def same(self, value: Any) -> Any:
        """The first worker's `value`, on all."""
        return broadcast_object_list([value])[0] if self.size > 1 else value

    def gathered(self, value: Any) -> list[Any]:
        """Every worker's `value`, in order of rank."""
        return list(gather_object([value])) if self.size > 1 else [value]

    def total(self, values: Tensor) -> Tensor:
        """Sum over workers."""
        return self._accelerator.reduce(values, reduction="sum") if self.size > 1 else values

    def wait(self) -> None:
        """Wait for all."""
        self._accelerator.wait_for_everyone()

    @torch.no_grad()
    def same_weights(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give all workers the first one's weights."""
        if self.size > 1:
            for parameter in parameters:
                if not isinstance(parameter, DTensor):
                    parameter.copy_(broadcast(parameter.detach()))

    @torch.no_grad()
    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum gradients over workers; a parameter that no worker reached keeps None."""
        parameters = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
        if self.size == 1 or not parameters:
            return
        device = parameters[0].device
        reached = self.total(torch.tensor([p.grad is not None for p in parameters], dtype=torch.int32, device=device))
        for parameter, workers in zip(parameters, reached.tolist(), strict=True):
            if workers:
                own = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                parameter.grad = self.total(own)


def shares(units: Sequence[Unit], n: int) -> list[list[Unit]]:
    """Split `units` in `n` runs of about equal tokens; neighbours in sorted order share prefixes and stay together."""
    ordered = sorted(units, key=lambda unit: unit.branches[0])
    split: list[list[Unit]] = [[] for _ in range(n)]
    whole = max(1, sum(unit.tokens for unit in ordered))
    ends = accumulate(unit.tokens for unit in ordered)
    for unit, end in zip(ordered, ends, strict=True):
        middle = end - unit.tokens / 2
        split[min(n - 1, int(n * middle / whole))].append(unit)
    return split
