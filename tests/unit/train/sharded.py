"""One worker of a run whose weights are split, or whole, for a subprocess: ``python sharded.py FOLDER JSON``.

JSON: `memory`, `adapter` (rank or null), `steps`, `samples` (the source asks the policy, on the first worker alone),
`stop` (a step at which the run is cut off by an error).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from postgrad.core.annotation import CrossEntropyItem, PreferenceItem, Span, Unit
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sampler import generate
from postgrad.run.rundir import RunDir
from postgrad.train.config import TrainConfig
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource


def tokens(rng: np.random.Generator, n: int) -> tuple[int, ...]:
    return tuple(int(token) for token in rng.integers(3, 200, n))


def units(step: int) -> list[Unit]:
    """Five units, forests of few tokens: workers have different numbers of them, and at step 1 one has none."""
    rng = np.random.default_rng(step)
    found = []
    for k in range(1 if step == 1 else 5):
        prompt, a, b = tokens(rng, 6), tokens(rng, 3 + k), tokens(rng, 4)
        chosen = Span(0, tuple(range(6, 9 + k)))
        if k % 2:
            item = PreferenceItem(chosen, Span(1, tuple(range(6, 10))))
            found.append(Unit(((*prompt, *a), (*prompt, *b)), (item,)))
        else:
            found.append(Unit(((*prompt, *a),), (CrossEntropyItem(chosen),)))
    return found


def source(policy: Policy, spec: dict[str, Any]) -> StepSource:
    def make(step: int) -> Sequence[Unit]:
        if step == spec.get("stop"):
            raise KeyboardInterrupt
        if not spec.get("samples"):
            return units(step)
        [[sample]] = generate(policy, [[1, 70 + step]], temperature=1.0, max_new_tokens=5, seed=step)
        own = tuple(range(2, 2 + len(sample.tokens)))
        return [*units(step), Unit(((1, 70 + step, *sample.tokens),), (CrossEntropyItem(Span(0, own)),))]

    made = StepSource(make)
    made.samples = bool(spec.get("samples"))  # type: ignore[attr-defined]
    return made


def main(folder: Path, spec: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    rank = spec.get("adapter")
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=rank, alpha=8.0) if rank else None)
    if not rank:
        policy.freeze_reference()
    config = TrainConfig.model_validate(
        {
            "optim": {"lr": 1e-3, "weight_decay": 0.1, "clip_norm": 0.5},
            "loop": {"steps": spec.get("steps", 4), "save_every": 2, "token_budget": 20},
            "channels": {"cross_entropy": {"weight": 1.0}, "preference": {"weight": 0.5}},
            "memory": spec.get("memory", {}),
        }
    )
    train(policy, source(policy, spec), config, RunDir(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
