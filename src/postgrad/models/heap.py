"""Freed memory given back to the system while a forward pass on a CPU builds up its activations.

glibc seldom fits an aligned buffer into the hole that an equal one left (torch aligns all of its buffers), so the
temporaries of every layer stay in the process, holes between the activations that live: 45 % of a step's memory on
SmolLM2-135M. `core.heap` gives the holes back. It costs some 20 ms, which is nothing beside the seconds that a model
computes for the memory to grow by `GROWN`. What was free before a pass began is left for it to use: given back, it
would be asked for again at once, page by page, which is a tenth of a step.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedModel

from postgrad.core.heap import give_back

GROWN = 256 << 20
"""Bytes that the process may grow by in a pass before its holes are given back."""

_STATM = Path("/proc/self/statm")


class Heap:
    """The memory of this process.

    Args:
        resident: bytes in memory now.
        give_back: returns freed memory to the system.
    """

    def __init__(self, resident: Callable[[], int], give_back: Callable[[], object]) -> None:
        self._resident, self._give_back = resident, give_back
        self.begin()

    def begin(self) -> None:
        """A pass begins: it may grow from here."""
        self._from = self._resident()

    def watch(self) -> None:
        """Give freed memory back if the pass has grown much since it began, or since memory was last given back."""
        if self._resident() > self._from + GROWN:
            self._give_back()
            self.begin()


def watch_layers(network: PreTrainedModel) -> None:
    """Before every layer that runs with gradients on a CPU, look whether freed memory should be given back."""
    heap = _heap()
    if heap is None or network.device.type != "cpu":
        return
    kinds = set(network._no_split_modules or ())  # what transformers calls a layer
    layers = [module for module in network.modules() if type(module).__name__ in kinds]
    for place, layer in enumerate(layers):
        layer.register_forward_pre_hook(_look if place else _begin)


def _begin(module: nn.Module, inputs: object) -> None:
    heap = _heap()
    if heap is not None and torch.is_grad_enabled():
        heap.begin()


def _look(module: nn.Module, inputs: object) -> None:
    heap = _heap()
    if heap is not None and torch.is_grad_enabled():
        heap.watch()


@cache
def _heap() -> Heap | None:
    """This process's, where the system says how large it is."""
    return Heap(_resident, give_back) if _STATM.exists() else None


def _resident() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
