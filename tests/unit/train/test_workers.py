from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from postgrad.run.rundir import RunDir
from unit.train import worker


def start(folder: Path, rank: int, port: int, *more: str) -> subprocess.Popen[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "ACCELERATE_USE_CPU": "true",
    }
    command = [sys.executable, worker.__file__, str(folder), *more]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [(), ("frozen",), ("ema",)], ids=["four channels", "frozen", "ema"])
def test_two_workers_equal_one(tmp_path: Path, teacher: tuple[str, ...]):
    """Gloo, units split by tokens, one idle worker at step 2: losses and weights agree to 1e-6.

    Four channels; or the divergence to a copy that each worker keeps: as the run began, or following the weights.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    port = free_port()
    workers = [start(two, rank, port, *teacher) for rank in range(2)]
    worker.main(one, *teacher)
    for process in workers:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    single, *both = (torch.load(path) for path in (one / "weights-0.pt", two / "weights-0.pt", two / "weights-1.pt"))
    for name in single:
        assert torch.equal(both[0][name], both[1][name])
        torch.testing.assert_close(both[0][name], single[name], rtol=0, atol=1e-6)
    lines = [RunDir(folder).metrics() for folder in (one, two)]
    assert [line["step"] for line in lines[1]] == [0, 1, 2, 3]
    for alone, split in zip(*lines, strict=True):
        keys = [
            key
            for key in alone
            if key.startswith(("loss", "count", "weight_gradient", "preference", "policy", "divergence"))
        ]
        assert [split[key] for key in keys] == pytest.approx([alone[key] for key in keys], rel=1e-5, abs=1e-6)
    assert len(list((two / "checkpoints").iterdir())) == 2
