"""A run for a subprocess: ``python kill_me.py FOLDER [kill STEP | fill BYTES | slow 1]``.

`kill` sends SIGKILL to itself when the units of STEP are asked for; `fill` lets no file grow beyond BYTES; `slow` takes
its time, on rollout buffers, with units that depend on the random generators, and says when it starts.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch

from postgrad.core.errors import OutsideFailure
from postgrad.run.rundir import RunDir
from postgrad.train.loop import train
from unit.train.tiny_training import StepSource, TinyPolicy, config, mixed_units


def main(folder: Path, what: str, number: int) -> int:
    torch.set_num_threads(1)

    def units(step: int) -> list:
        if what == "kill" and step == number:
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "fill" and step == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (number, resource.RLIM_INFINITY))
        return mixed_units(step)

    def slow_units(step: int) -> list:
        print("training", flush=True)
        return mixed_units(1000 * step + int(np.random.randint(100)), each=4)

    policy = TinyPolicy(dropout=0.1)
    settings = config(steps=6, save_every=2)
    if what == "slow":
        settings = config(steps=16, save_every=1, reuse={"parts": 2, "passes": 3}, optim={"name": "muon"})
        policy.model.embed.register_forward_hook(lambda *_: time.sleep(number / 40))
    try:
        train(policy, StepSource(slow_units if what == "slow" else units), settings, RunDir(folder))
    except OutsideFailure as error:
        print(error)
        return error.exit_code
    torch.save(policy.weights(), folder / "weights.pt")
    return 0


if __name__ == "__main__":
    folder, what, number = (*sys.argv[1:], "plain", "0")[:3]
    sys.exit(main(Path(folder), what, int(number)))
