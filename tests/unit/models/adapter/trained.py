"""A tiny policy with any adapter, trained for a few steps on its own logits; also run as a program that reloads one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from postgrad.core.annotation import Unit
from postgrad.core.forest import build_forest
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy

FOREST = build_forest([Unit(((5, 6, 7, 8, 9), (5, 6, 7, 10, 11, 12))), Unit(((40, 41, 80, 90, 95),))])
VARIANTS: dict[str, dict[str, Any]] = {
    "lora": {},
    "rslora": {},
    "dora": {},
    "vera": {},
    "lora-fa": {},
    "pissa": {},
    "pissa randomised": {"variant": "pissa", "options": {"iterations": 2}},
    "loftq": {},
    "loftq 3 bits": {"variant": "loftq", "options": {"bits": 3, "iterations": 1, "block": 50}},
    "adalora": {},
    "layerdrop": {"options": {"rate": 0.5}},
    "rslora+dora": {},
    "pissa+dora": {},
    "pissa+rslora": {},
    "pissa+lora-fa": {},
    "loftq+dora+lora-fa": {},
    "vera+layerdrop": {},
}


def fresh(name: str, *, model: str | Path = "tiny-random") -> Policy:
    """The policy with a new adapter of rank 4."""
    return load_policy(model, adapter=AdapterConfig(**{"variant": name, "rank": 4} | VARIANTS[name]))


@torch.no_grad()
def logits(policy: Policy) -> Tensor:
    """Logits (T, V) of one forest."""
    return policy.head(policy.hidden_TD(FOREST))


def train(policy: Policy, *, steps: int = 3) -> None:
    """A few steps of AdamW with decay, as the loop does them: companions around the optimiser."""
    optimizer = torch.optim.AdamW([p for p in policy.model.parameters() if p.requires_grad], lr=1e-2)
    companions = policy.companions(steps=steps)
    for step in range(steps):
        policy.model.train()
        optimizer.zero_grad()
        logits_TV = policy.head(policy.hidden_TD(FOREST))
        (logits_TV.logsumexp(-1).mean() + logits_TV[:, 7].square().mean()).backward()
        for companion in companions:
            companion.before_step(step)
        optimizer.step()
        for companion in companions:
            companion.after_step(step)
    policy.model.eval()


if __name__ == "__main__":
    found = {folder: logits(load_policy(Path(folder))).tolist() for folder in sys.argv[1:]}
    json.dump(found, sys.stdout)
