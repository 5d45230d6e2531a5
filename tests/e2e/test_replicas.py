"""`postgrad train` as two replicas of a DiLoCo run, and with weights split over the workers of torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from e2e.test_launch import TORCHRUN
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.signals.rows.records import write_records
from unit.train.test_workers import free_port

ALONE = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    asks = [Message.of("user", f"say {letter}") for letter in "abcdefgh"]
    write_records(path, [Record((ask,), Message.of("assistant", ask.text[-1] * 3)) for ask in asks])
    return path


def started(run: Path, records: Path, *start: str, **options: object) -> subprocess.Popen[str]:
    common = {"model": "tiny-random", "adapter.last_layers": 1, "loop.steps": 4, "method.batch_size": 4}
    given = common | {"method.records": records, "run": run} | {k.replace("__", "."): v for k, v in options.items()}
    flags = [part for key, value in given.items() for part in (f"--{key}", str(value))]
    command = [sys.executable, *start, "train", "sft", "--json", *flags]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=ALONE | {"OMP_NUM_THREADS": "1"})


def weights(process: subprocess.Popen[str]) -> dict[str, Tensor]:
    out, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors[-3000:]
    return load_file(Path(json.loads(out)["artifact"]) / "model.safetensors")


@pytest.mark.slow
def test_two_replicas_end_alike(tmp_path: Path, records: Path) -> None:
    sync = {"sync__name": "diloco", "sync__replicas": 2, "sync__every": 2, "sync__address": f"127.0.0.1:{free_port()}"}
    runs = [
        started(tmp_path / str(k), records, "-m", "postgrad", sync__replica=k, sync__timeout=200, **sync)
        for k in range(2)
    ]
    first, second = (weights(run) for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)
    lines = [(tmp_path / str(k) / "metrics.jsonl").read_text().splitlines() for k in range(2)]
    assert [len(part) for part in lines] == [4, 4]
    assert [json.loads(line)["loss"] for line in lines[0]] != [json.loads(line)["loss"] for line in lines[1]]


@pytest.mark.slow
def test_split_weights_make_the_artifact_of_one_process(tmp_path: Path, records: Path) -> None:
    one = weights(started(tmp_path / "one", records, "-m", "postgrad"))
    two = weights(started(tmp_path / "two", records, *TORCHRUN, memory__shard="true", memory__checkpoint_every=1))
    assert one.keys() == two.keys()
    for name, weight in one.items():
        assert (weight - two[name]).abs().max() <= 1e-5 * max(1.0, float(weight.abs().max()))
