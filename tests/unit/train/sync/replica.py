"""One replica of a DiLoCo run, for a subprocess: ``python replica.py FOLDER JSON``; saves its weights.

JSON: `sync`, the section of the recipe; `loop`, keys of the loop; `kill`, a step at whose units it kills itself;
`optim` as in a recipe; `dtype` of the weights.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from postgrad.core.annotation import CrossEntropyItem, Unit
from postgrad.core.errors import PostgradError
from postgrad.run.rundir import RunDir
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource, TinyPolicy, config, random_tokens, span

SFT: dict[str, dict[str, Any]] = {"cross_entropy": {"weight": 1.0}}


def own_units(step: int, replica: int) -> list[Unit]:
    """Four units of imitation with three scored tokens each, other ones for every replica."""
    rng = np.random.default_rng([replica, step])
    prompts = [random_tokens(rng, 4) for _ in range(4)]
    actions = [random_tokens(rng, 3) for _ in range(4)]
    return [
        Unit(((*prompt, *action),), (CrossEntropyItem(span(0, prompt, action)),))
        for prompt, action in zip(prompts, actions, strict=True)
    ]


def run(folder: Path, spec: dict[str, Any]) -> TinyPolicy:
    replica = spec["sync"].get("replica", 0)
    policy = TinyPolicy(dtype=getattr(torch, spec.get("dtype", "float32")))
    with torch.no_grad():
        policy.model.unembed.weight += replica  # they start apart; the first one's weights win

    def units(step: int) -> list[Unit]:
        if step == spec.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        return own_units(step, replica)

    settings = config(channels=SFT, optim=spec.get("optim", {}), **spec["loop"])
    settings = type(settings).model_validate(settings.resolved() | {"sync": spec["sync"]})
    train(policy, StepSource(units), settings, RunDir(folder))
    assert not dist.is_initialized(), "the default process group was touched"
    return policy


def main(folder: Path, spec: dict[str, Any]) -> int:
    torch.set_num_threads(1)
    try:
        policy = run(folder, spec)
    except PostgradError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    torch.save(policy.weights(), folder / "weights.pt")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
