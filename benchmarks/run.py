"""Side by side with peers, in one run, in ratios: the token forest against branch by branch.

Every arm computes the same loss and gradients (`arm.py` says which) in a process of its own, one after the other; a
ratio above 1 says how many times more CPU time or memory the peer takes. The correctness columns compare loss and
gradients with ours: a fast wrong answer would show there.

Run: make bench, or python benchmarks/run.py [--model smollm2-135m] [--steps 4 8] [--out benchmarks/results.json]
TRL is compared where it is installed (pip install 'postgrad[bench]'). One compute thread, fp32. Ratios of one run on
one machine; absolute times are not comparable between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
OURS = "forest"


def arms() -> list[str]:
    """Ours first, then the peers that are installed."""
    trl = ["trl"] if find_spec("trl") and find_spec("datasets") else []
    return [OURS, *trl, "branches"]


def measure(arm: str, model: str, steps: int, folder: Path) -> dict[str, Any]:
    """Numbers and gradients of one arm."""
    out = folder / f"{arm}-{steps}.npz"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POSTGRAD_THREADS"), "1")
    command = [sys.executable, "-W", "ignore", str(HERE / "arm.py"), arm, model, str(steps), str(out)]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"arm {arm} failed:\n{done.stderr[-2000:]}")
    with np.load(out) as arrays:
        return {name: arrays[name] for name in arrays.files}


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Ratios of cost, and how far loss and gradients are from ours."""
    names = [name for name in ours if name.startswith("gradient/")]
    assert names == [name for name in theirs if name.startswith("gradient/")], "the arms train different weights"
    squares = sum(float(((theirs[n] - ours[n]).astype(np.float64) ** 2).sum()) for n in names)
    norm = sum(float((ours[n].astype(np.float64) ** 2).sum()) for n in names)
    grown = {arm: float(r["peak_mb"] - r["before_mb"]) for arm, r in (("ours", ours), ("theirs", theirs))}
    return {
        "loss": float(theirs["loss"]),
        "cpu_seconds": float(theirs["cpu_seconds"]),
        "peak_mb": float(theirs["peak_mb"]),
        "work_mb": grown["theirs"],
        "cpu_ratio": float(theirs["cpu_seconds"] / ours["cpu_seconds"]),
        "work_memory_ratio": grown["theirs"] / max(grown["ours"], 1.0),
        "loss_difference": abs(float(theirs["loss"] - ours["loss"])),
        "gradient_difference": (squares / norm) ** 0.5,
    }


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--steps", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for steps in options.steps:
            ours = measure(OURS, options.model, steps, Path(folder))
            for arm in arms():
                theirs = ours if arm == OURS else measure(arm, options.model, steps, Path(folder))
                rows.append({"arm": arm, "steps": steps, **compare(ours, theirs)})
    libraries = ("torch", "transformers", "peft", *(["trl"] if "trl" in arms() else []))
    result = {
        "model": options.model,
        "machine": platform.processor() or platform.machine(),
        "versions": {name: version(name) for name in libraries},
        "rows": rows,
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    Console(width=120).print(table(result))
    print(f"written to {options.out}", file=sys.stderr)


def table(result: dict[str, Any]) -> Table:
    """The rows for a person."""
    title = f"DPO loss and gradients of one trace, {result['model']}, fp32, one thread"
    shown = Table(title=title)
    for column in ("steps", "arm", "CPU s", "x CPU", "work MB", "x memory", "peak MB", "loss diff.", "gradient diff."):
        shown.add_column(column, justify="left" if column == "arm" else "right")
    for row in result["rows"]:
        shown.add_row(
            str(row["steps"]),
            row["arm"],
            f"{row['cpu_seconds']:.2f}",
            f"{row['cpu_ratio']:.2f}",
            f"{row['work_mb']:.0f}",
            f"{row['work_memory_ratio']:.2f}",
            f"{row['peak_mb']:.0f}",
            f"{row['loss_difference']:.1e}",
            f"{row['gradient_difference']:.1e}",
        )
    return shown


if __name__ == "__main__":
    main()
