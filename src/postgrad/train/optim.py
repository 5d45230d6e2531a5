"""The optimiser of a run and its learning rate, a pure function of the step: a checkpoint needs no scheduler state.

With w warm-up steps, S steps in all and d decay steps, step s (from 0) has lr · f(s):

    s < w       f = (s + 1) / w
    constant    f = 1
    linear      f = (S − s) / (S − w)
    cosine      f = (1 + cos(π (s − w) / (S − w))) / 2
    wsd         f = min(1, (S − s) / d), the warmup-stable-decay of arXiv:2404.06395 with a linear decay

No step has a rate of 0: it would train nothing and say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from postgrad.run.plugins import resolve
from postgrad.train import OPTIMIZERS
from postgrad.train.config import OptimConfig
from postgrad.train.groups import make_groups
from postgrad.train.settings import build_settings


@dataclass(frozen=True)
class Optimizer:
    """What steps the weights: one of torch's optimisers, or two that share them out."""

    parts: Sequence[torch.optim.Optimizer]

    def step(self, rate: float) -> None:
        """One step at learning rate `rate`, scaled by each group's own factor."""
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * group.get("scale_lr", 1.0)
            part.step()


def build_optimizer(parameters: Mapping[str, nn.Parameter], config: OptimConfig) -> Optimizer:
    """The optimiser that `config` names, over named parameters.

    Raises:
        ConfigError: a setting that these parameters cannot serve.
        MissingDependency: the optimiser's library is not installed.
    """
    kind = resolve("optimizer", config.name, OPTIMIZERS)
    settings = build_settings(kind, config.settings, path="optim.settings")
    return Optimizer(settings.build(make_groups(parameters, config)))


def learning_rate(step: int, *, steps: int, config: OptimConfig) -> float:
    """Learning rate of `step` (from 0) of a run of `steps`."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return config.lr
    if config.decay_steps is not None:
        return config.lr * min(1.0, (steps - step) / config.decay_steps)
    done = (step - config.warmup_steps) / (steps - config.warmup_steps)
    return config.lr * ((1 - done) if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
