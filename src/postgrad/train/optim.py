"""AdamW and its learning rate, a pure function of the step, so that a checkpoint needs no scheduler state.

With w warm-up steps and S steps in all, step s (from 0) has lr · f(s):

    s < w       f = (s + 1) / w
    constant    f = 1
    linear      f = (S − s) / (S − w)
    cosine      f = (1 + cos(π (s − w) / (S − w))) / 2

No step has a rate of 0: it would train nothing and say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from postgrad.train.config import OptimConfig


def build_optimizer(parameters: Iterable[nn.Parameter], config: OptimConfig) -> torch.optim.AdamW:
    """AdamW with decay on matrices only."""
    every = list(parameters)
    groups = [
        {"params": [p for p in every if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in every if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=config.lr, betas=config.betas, eps=config.eps
    )


def learning_rate(step: int, *, steps: int, config: OptimConfig) -> float:
    """Learning rate of `step` (from 0) of a run of `steps`."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return config.lr
    done = (step - config.warmup_steps) / (steps - config.warmup_steps)
    return config.lr * ((1 - done) if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` in the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate
