"""Every example runs as a newcomer would run it, and prints what its text promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def run(name: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "POSTGRAD_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def losses(lines: list[str], name: str) -> list[float]:
    return [float(line.split(f"{name} ")[1].split(",")[0]) for line in lines if line.startswith("step ")]


def test_new_format() -> None:
    lines = run("new_format")
    assert lines[0] == "records: {'message': 3, 'step': 2}"
    assert lines[1:4] == [
        "chat 17: 2 steps",
        "  after 1 messages: It arrives tomorrow.",
        "  after 3 messages: You are welcome.",
    ]


def test_new_env() -> None:
    """Every gold answer scores 1, and a plain answer is told apart."""
    *sums, last = run("new_env")
    for line in sums:
        question, result = line.removesuffix(", score 1.0").split("? -> ")
        a, b = question.removeprefix("What is ").split(" plus ")
        assert int(a) + int(b) == int(result)
    assert last == "without a call: no_call"


def test_raw_loop() -> None:
    """The loss starts at ln 2 = 0.6931 and falls at every step; the forest is smaller than its branches."""
    lines = run("raw_loop")
    values = losses(lines, "loss")
    assert values[0] == pytest.approx(0.6931, abs=1e-4)
    assert values == sorted(values, reverse=True)
    branches, forest = (int(word) for word in lines[0].split() if word.isdecimal())
    assert forest < branches


def test_new_method() -> None:
    """Both channels fall, the preference from ln 2."""
    lines = run("new_method")
    assert losses(lines, "preference")[0] == pytest.approx(0.6931, abs=1e-4)
    for name in ("cross_entropy", "preference"):
        values = losses(lines, name)
        assert values[-1] < values[0]


def test_every_example_is_run() -> None:
    assert {f"test_{name}" for name in EXAMPLES} <= set(globals())
