"""Peak memory of a run, for a subprocess: ``python measured.py FOLDER JSON``; prints bytes above what was there before.

JSON: `model`, `adapter` (rank or null), `optim`, `memory`, `token_budget`, `preference`. Two full forests a step, two
steps: at the second all gradients and optimiser states are there. The kernel's own high-water mark is read, reset once
the model is loaded; what was there before the model was is taken off.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo
from accelerate import Accelerator

from postgrad.core.annotation import CrossEntropyItem, PreferenceItem, Span, Unit
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import load_policy
from postgrad.run.rundir import RunDir
from postgrad.train.config import TrainConfig
from postgrad.train.footprint import footprint
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource


def full_units(spec: dict[str, Any]) -> list[Unit]:
    """Two rows of exactly the budget, every token scored; or pairs that share nothing, half a budget each."""
    rng, budget = np.random.default_rng(0), spec["token_budget"]
    made = []
    for k in range(2):
        row = (k, *map(int, rng.integers(3, 250, budget - 1)))
        if spec.get("preference"):
            half = budget // 2
            spans = [Span(b, tuple(range(1, half))) for b in range(2)]
            made.append(Unit((row[:half], (k + 2, *row[half + 1 :])), (PreferenceItem(*spans),)))
        else:
            made.append(Unit((row,), (CrossEntropyItem(Span(0, tuple(range(1, budget)))),)))
    return made


def status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def main(folder: Path, spec: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    Accelerator()
    torch.nn.Linear(8, 8)(torch.randn(64, 8)).sum().backward()  # the libraries' own buffers are there now
    adapter = AdapterConfig(rank=spec["adapter"]) if spec.get("adapter") else None
    channel = "preference" if spec.get("preference") else "cross_entropy"
    sections = {
        "optim": {"name": spec.get("optim", "adamw")},
        "loop": {"steps": 2, "save_every": 1000, "token_budget": spec["token_budget"]},
        "channels": {channel: {}},
        "memory": spec.get("memory", {}),
    }
    config = TrainConfig.model_validate(sections)
    expected = footprint(spec["model"], adapter, config).plain()
    load_policy("tiny-random")
    before = status("VmRSS")
    policy = load_policy(spec["model"], adapter=adapter)
    if spec.get("preference"):
        policy.freeze_reference()
    Path("/proc/self/clear_refs").write_text("5")
    units = full_units(spec)
    train(policy, StepSource(lambda step: units), config, RunDir(folder))
    print(json.dumps({"measured": status("VmHWM") - before, **expected}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
