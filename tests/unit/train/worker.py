"""One worker of a data-parallel run, for a subprocess: ``python worker.py FOLDER [TEACHER]``; saves weights by rank.

With a teacher (a kind of `objectives.teaching`) the run has the divergence channel alone, and copies that follow it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from postgrad.core.annotation import Unit
from postgrad.run.rundir import RunDir
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource, Twinned, config, mixed_units


def units(step: int) -> list[Unit]:
    """Seven units; at step 2 a single one, so that one of two workers has nothing to do."""
    kinds = ("cross_entropy", "policy_gradient", "divergence", "preference")
    return mixed_units(step)[:7] if step != 2 else mixed_units(step, each=1, kinds=kinds[:1])


def taught(step: int) -> list[Unit]:
    """Five hinted units; at step 2 one."""
    return mixed_units(step, each=1 if step == 2 else 5, kinds=("divergence",))


def main(folder: Path, teacher: str = "") -> None:
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    # fp64, because AdamW turns a gradient that is 0 but for rounding into a step of full size.
    policy = Twinned(dtype=torch.float64)
    with torch.no_grad():
        policy.model.unembed.weight += rank  # workers start apart; the first one's weights win
    source, channels = StepSource(taught if teacher else units), None
    if teacher:
        rate = {"rate": 0.25} if teacher == "ema" else {}
        channels = {"divergence": {"beta": 0.5, "teacher": {"kind": teacher, **rate}}}
    train(policy, source, config(steps=4, save_every=2, channels=channels), RunDir(folder))
    torch.save(policy.weights(), folder / f"weights-{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
