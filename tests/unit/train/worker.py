"""One worker of a data-parallel run, for a subprocess: ``python worker.py FOLDER``; saves its weights by rank."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from postgrad.core.annotation import Unit
from postgrad.run.rundir import RunDir
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource, TinyPolicy, config, mixed_units


def units(step: int) -> list[Unit]:
    """Seven units; at step 2 a single one, so that one of two workers has nothing to do."""
    kinds = ("cross_entropy", "policy_gradient", "divergence", "preference")
    return mixed_units(step)[:7] if step != 2 else mixed_units(step, each=1, kinds=kinds[:1])


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    # fp64, because AdamW turns a gradient that is 0 but for rounding into a step of full size.
    policy = TinyPolicy(dtype=torch.float64)
    with torch.no_grad():
        policy.model.unembed.weight += rank  # workers start apart; the first one's weights win
    train(policy, StepSource(units), config(steps=4, save_every=2), RunDir(folder))
    torch.save(policy.weights(), folder / f"weights-{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
