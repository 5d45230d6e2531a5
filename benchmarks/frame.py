"""What every side-by-side benchmark prints: rows of one form, and arms that run in processes of their own.

    {"machine": {...}, "rows": [{"case", "unit", "ours", "peer", "peer_name", "peer_version", "ratio", "target",
                                 "correct", ...}]}

`ratio` says how much better ours is (peer by ours, for costs), so it is to be at least `target`; where `bound` is "<="
it is ours by peer, to be at most that. `met` needs `correct` too. Numbers of one run on one machine: absolute ones are
not comparable between machines.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POSTGRAD_THREADS"), "1")
QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One comparison."""

    case: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    peer_version: str
    target: float
    correct: bool
    bound: Literal[">=", "<="] = ">="
    higher_is_better: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """See the module."""
        swap = (self.bound == "<=") != self.higher_is_better
        above, below = (self.ours, self.peer) if swap else (self.peer, self.ours)
        return above / below if below else float("inf")

    def plain(self) -> dict[str, Any]:
        """The row as JSON."""
        ratio = self.ratio
        met = ratio >= self.target if self.bound == ">=" else ratio <= self.target
        kept = {name: value for name, value in asdict(self).items() if name not in ("more", "higher_is_better")}
        rounded = {name: round(kept[name], 4) for name in ("ours", "peer")}
        return kept | rounded | {"ratio": round(ratio, 3), "met": met and self.correct} | self.more


class Unfinished(Exception):
    """An arm needed more than it was given; `what` is "CPU seconds" or "memory"."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


_ENDED = {-signal.SIGXCPU: "CPU seconds", errno.ENOMEM: "memory"}


class Arm:
    """A process of `arm.py` that has the libraries of one module loaded and runs cases in forks."""

    def __init__(self, module: str) -> None:
        self.module = module
        said, self._said = tempfile.mkstemp(prefix="benchmark-")  # a pipe that nobody reads would fill up
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "arm.py"), module],
            env=os.environ | ONE_THREAD | QUIET,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        os.close(said)

    def run(self, case: str, settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The numbers of one case.

        Raises:
            Unfinished: it took more CPU seconds than the settings' `limit`, or all memory.
        """
        out = folder / f"{self.module}-{case}.npz"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"case": case, "settings": dict(settings), "out": str(out)}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        done = json.loads(answer)["done"] if answer else None
        if done in _ENDED:
            raise Unfinished(_ENDED[done])
        if done != 0:
            raise SystemExit(f"arm {self.module}, case {case} failed:\n{Path(self._said).read_text()[-2000:]}")
        with np.load(out) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        os.unlink(self._said)


def gradient_difference(ours: Numbers, theirs: Numbers) -> float:
    """Relative L2 difference over the gradients' fingerprints."""
    names = [name for name in ours if name.startswith("gradient/")]
    strip = {name.replace(".default", ""): name for name in theirs}
    if sorted(n.replace(".default", "") for n in names) != sorted(n for n in strip if n.startswith("gradient/")):
        return float("inf")  # the arms train different weights
    pairs = [(ours[n].astype(np.float64), theirs[strip[n.replace(".default", "")]]) for n in names]
    squares, norm = sum(((b - a) ** 2).sum() for a, b in pairs), sum((a**2).sum() for a, _ in pairs)
    return float((squares / norm) ** 0.5)


def least(runs: Sequence[Numbers], name: str) -> float:
    """The smallest of a number over runs: what else the machine does can only add to it."""
    return min(float(run[name]) for run in runs)


def installed(name: str) -> str:
    """The version of a library, or "" where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def machine(**more: Any) -> dict[str, Any]:
    """Where the numbers come from."""
    libraries = ("torch", "transformers", "peft", "trl", "numpy")
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    versions = {name: found for name in libraries if (found := installed(name))}
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions, **more}


def report(rows: Sequence[Row], about: Mapping[str, Any], *, as_json: bool) -> None:
    """Print JSON on stdout, or a table."""
    plain = [row.plain() for row in rows]
    if as_json:
        print(json.dumps({"machine": dict(about), "rows": plain}, indent=2))
        return
    shown = Table(title=f"{about['cpu']}, one thread")
    for column in ("case", "unit", "ours", "peer", "peer", "ratio", "target", "correct"):
        shown.add_column(column, justify="left" if column in ("case", "unit") else "right")
    for row in plain:
        cells = (row["case"], row["unit"], f"{row['ours']:.3g}", f"{row['peer']:.3g}", row["peer_name"])
        shown.add_row(*cells, f"{row['ratio']:.2f}", f"{row['bound']} {row['target']:g}", str(row["correct"]))
    Console(width=160).print(shown)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
