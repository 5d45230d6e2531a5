"""`postgrad train` under torchrun: two workers, one run folder, and the weights that one process gives.

The `--` keeps torchrun from reading our `--run` as its own `--run-path`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.signals.rows.records import write_records

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "--", "postgrad")


def trained(folder: Path | None, records: Path, *start: str) -> subprocess.CompletedProcess[str]:
    options = {"model": "tiny-random", "adapter.last_layers": "1", "loop.steps": "2", "run": str(folder or "")}
    options |= {"method.records": str(records), "method.batch_size": "4"}
    flags = [part for key, value in options.items() if value for part in (f"--{key}", value)]
    command = [sys.executable, *start, "train", "sft", "--json", *flags]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=alone)


@pytest.mark.slow
def test_two_workers_train_what_one_does(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    asks = [Message.of("user", f"say {letter}") for letter in "abcdefgh"]
    write_records(records, [Record((ask,), Message.of("assistant", ask.text[-1] * 3)) for ask in asks])
    one = trained(tmp_path / "one", records, "-m", "postgrad")
    two = trained(tmp_path / "two", records, *TORCHRUN)
    assert one.returncode == 0, one.stderr[-2000:]
    assert two.returncode == 0, two.stderr[-2000:]
    results = [json.loads(run.stdout) for run in (one, two)]  # one object on stdout, not one a worker
    lines = [(tmp_path / run / "metrics.jsonl").read_text().splitlines() for run in ("one", "two")]
    assert [len(own) for own in lines] == [2, 2]  # two that do not know of each other would each write every step
    first, second = (load_file(Path(r["artifact"]) / "model.safetensors") for r in results)
    assert first.keys() == second.keys()
    for name, weight in first.items():
        assert (weight - second[name]).abs().max() <= 1e-6 * max(1.0, float(weight.abs().max()))
    nameless = trained(None, records, *TORCHRUN)
    assert nameless.returncode != 0
    assert "several workers must share one run folder" in nameless.stderr
