"""Ten steps of all four channels on a tiny policy against committed numbers: a refactor must leave them alone.

After a change that is meant to move them: ``python tests/golden/test_train_curve.py`` writes the file anew.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from postgrad.train.loop import train
from unit.train.tiny_training import KINDS, MemoryRun, StepSource, TinyPolicy, config

FILE = Path(__file__).with_name("train_curve.json")
KEYS = ("loss", "gradient_norm", "lr", *(f"loss/{kind}" for kind in KINDS))


def curve(folder: Path) -> list[dict[str, float]]:
    run = MemoryRun(folder)
    train(TinyPolicy(), StepSource(), config(steps=10), run)
    return [{key: line[key] for key in KEYS} for line in run.lines]


def test_curve(tmp_path: Path):
    golden = json.loads(FILE.read_text())
    lines = curve(tmp_path)
    assert len(lines) == len(golden) == 10
    for line, expected in zip(lines, golden, strict=True):
        assert line == pytest.approx(expected, rel=1e-4, abs=1e-4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FILE.write_text(json.dumps(curve(Path(scratch)), indent=1) + "\n")
