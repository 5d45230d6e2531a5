"""The demo's own recipe, turned on the tiny model: every stage up to the gate runs, and the same command goes on.

The tiny model learns nothing that held-out functions show, so the gate must not promote, and the stages behind it
must not run. What the real model does is `make demo`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = (
    "function_calling/heldout:4",
    "function_calling/heldout_irrelevant:2",
    "bfcl/simple_python:2",
    "retention/facts:4",
)
SMALL = {
    "before.with.benchmarks": f"[{', '.join(BENCHMARKS)}]",
    "before-constrained.with.benchmarks": "[function_calling/heldout:2]",
    "attempts.with.n": "4",
    "lessons.with.n": "12",
    "rehearsal.with.n": "8",  # of the real model, in full: an answer that is cut off gives no row
    "distil.with.loop.steps": "3",
    "distil.with.method.max_length": "8000",
    "practice.with.n": "4",
    "compose.with.loop.steps": "2",
    "compose.with.method.replay.max_length": "8000",
    "compose.with.method.rollouts.environment": "recipes.coin:Coin",
    "compose.with.method.rollouts.tasks": "8",
}
MODELS = ("before", "before-constrained", "attempts", "distil")
LENGTHS = ("before", "before-constrained", "after", "after-constrained")


def command(folder: Path) -> list[str]:
    options = {f"stages.{key}": value for key, value in SMALL.items()}
    options |= {f"stages.{stage}.with.model": "tiny-random" for stage in MODELS}
    options |= {f"stages.{stage}.with.max_new_tokens": "8" for stage in LENGTHS}
    options |= {f"stages.{stage}.with.benchmarks": SMALL["before.with.benchmarks"] for stage in ("after",)}
    options |= {"stages.after-constrained.with.benchmarks": SMALL["before-constrained.with.benchmarks"]}
    options |= {f"stages.{stage}.with.sampling.max_new_tokens": "8" for stage in ("attempts", "practice")}
    options |= {f"stages.{stage}.with.sampling.max_new_tokens": "8" for stage in ("replay", "second-opinion")}
    options |= {"stages.replay.with.teachers.base-constrained.model": "tiny-random"}
    options |= {"stages.compose.with.method.rollouts.max_new_tokens": "6"}
    options |= {f"stages.{stage}.with.adapter.last_layers": "1" for stage in ("distil", "compose")}
    flags = [part for key, value in options.items() for part in (f"--{key}", value)]
    return [sys.executable, "-m", "postgrad", "demo", "--json", "--run", str(folder), *flags]


def turn(folder: Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(command(folder), capture_output=True, text=True, timeout=600, check=False, env=environment())
    assert done.stdout, done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout)


def environment() -> dict[str, str]:

    return {**os.environ, "PYTHONPATH": f"{Path('src').resolve()}:{Path('tests').resolve()}"}


@pytest.mark.slow
def test_a_turn_on_the_tiny_model_survives_a_kill_and_is_not_promoted(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    process = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + 300
    while not list(folder.glob("*-lessons/stage.json")):
        assert process.poll() is None, f"it ended by itself, with code {process.returncode}"
        assert time.monotonic() < deadline, "it did not come so far in time"
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)

    code, result = turn(folder)
    assert code == 1, result
    assert result["verdict"]["decision"] in ("iterate", "rollback")
    assert result["verdict"]["passed"] is False
    status = {stage["name"]: stage["status"] for stage in result["stages"]}
    assert status["before"] == "kept"
    assert status["gate"] == "ran"
    assert status["promote"] == status["serve"] == status["next-turn"] == "not run"
    for side in (result["before"], result["after"], *result["outside"]["bfcl_simple_python"].values()):
        assert {"accuracy", "stderr", "n"} <= side.keys()
    assert (result["before"]["n"], result["outside"]["bfcl_simple_python"]["after"]["n"]) == (4, 2)
    assert Path(result["report"]).exists()
    assert Path(result["artifact"]).is_dir()

    code, again = turn(folder)
    assert code == 1
    assert {stage["status"] for stage in again["stages"]} == {"kept", "not run"}
    assert again["after"] == result["after"]
