"""Training beside TRL and transformers: CPU seconds, memory, and whether loss and gradients agree.

Every arm computes the same thing on the same random weights and tokens (`training/`), in turns, in a process of its
own. Full: SmolLM2-135M's shape, and a real trace where one is found. `--quick`: a fifth of it (6 layers, a vocabulary
of 9,830, contexts of 768 tokens for the trace), under five minutes. A run that takes more CPU seconds than `limit`, or
more memory than there is, is ended: a row about a peer that did not finish says what it ran out of (`unfinished`), has
that limit as its number, and is not met.

CPU seconds and memory are the least of `--repeats` runs: whatever else a machine does can only add to them.

Run: python benchmarks/train.py [--quick] [--json] [--only preference grpo ...] [--trace FILE] [--repeats 3]
TRL has to be installed (pip install 'postgrad[bench]').
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from arm import available
from frame import (
    ONE_THREAD,
    QUIET,
    Arm,
    Numbers,
    Row,
    Unfinished,
    gradient_difference,
    installed,
    least,
    machine,
    report,
)
from training.cases import FULL, QUICK, STEPS, Case, Peer, cases, sample

TRL = "trl_arms"
LOSS, GRADIENT = 1e-4, 1e-3
"""Agreement asked for in fp32: of losses absolutely, of gradients relatively."""
AS_NEAR = 1.2
"""In bf16 our gradients may be so many times as far from those in fp32 as the peer's."""


@dataclass
class Runs:
    """A peer's runs and ours in the same precision, and what the peer ran out of."""

    bf16: bool
    ours: list[Numbers] = field(default_factory=list)
    done: list[Numbers] = field(default_factory=list)
    unfinished: str = ""


class Bench:
    """Runs cases on arms that stay up."""

    def __init__(self, *, repeats: int, folder: Path) -> None:
        self._repeats, self._folder = repeats, folder
        self._arms: dict[str, Arm] = {}

    def arm(self, module: str) -> Arm:
        """Start it when it is first needed."""
        if module not in self._arms:
            self._arms[module] = Arm(module)
        return self._arms[module]

    def close(self) -> None:
        """End all arms."""
        for arm in self._arms.values():
            arm.close()

    def turns(self, case: Case) -> tuple[list[Numbers], list[Runs]]:
        """Our runs in fp32, and every peer's with ours beside it, taken in turns."""
        exact: list[Numbers] = []
        theirs = [Runs(bool(peer.settings.get("bf16")) and self.bf16_pays) for peer in case.peers]
        for _ in range(self._repeats):
            exact.append(self.arm("ours").run(case.function, case.settings, self._folder))
            for runs, peer in zip(theirs, case.peers, strict=True):
                settings = case.settings | {"bf16": runs.bf16}
                mine = self.arm("ours").run(case.function, settings, self._folder) if runs.bf16 else exact[-1]
                runs.ours.append(mine)
                try:
                    runs.done.append(self.arm(TRL).run(case.function, peer.settings | settings, self._folder))
                except Unfinished as ended:
                    runs.unfinished = ended.what
        return exact, theirs

    @cached_property
    def bf16_pays(self) -> bool:
        """Whether products in bf16 are faster than in fp32 on this machine."""
        return bool(self.arm("ours").run("precision", {}, self._folder)["bf16"])

    def steady_step(self, case: Case) -> float:
        """CPU seconds of our step after two equal ones."""
        settings = case.settings | {"steps_before": 2}
        runs = [self.arm("ours").run(case.function, settings, self._folder) for _ in range(self._repeats)]
        return least(runs, "cpu")

    def rate(self) -> float:
        """fp32 products of this machine now, GFLOP by CPU second: the best of three, as others can only lower it."""
        return max(float(self.arm("ours").run("products", {}, self._folder)["gflops"]) for _ in range(3))


def rows_of(case: Case, bench: Bench) -> Iterator[Row]:
    """Time, and memory where it is asked for."""
    exact, theirs = bench.turns(case)
    shape = ", ".join(
        f"{name} {case.settings[name]}" for name in ("P", "C", "G", "context", "steps") if name in case.settings
    )
    name = f"{case.name} ({shape})" if shape else case.name
    for peer, runs in zip(case.peers, theirs, strict=True):
        yield from peer_rows(f"{name}, bf16" if runs.bf16 else name, case, peer, runs, exact[0])
    if case.function == "grpo":
        yield floor_row(name, case, bench)
    if case.function == "distil":
        yield from vocabulary_rows(case, bench, exact)


def peer_rows(name: str, case: Case, peer: Peer, runs: Runs, exact: Numbers) -> Iterator[Row]:
    """Ours beside one peer; `exact` is ours in fp32."""
    about = (peer.name, installed(case.peer_library))
    if not runs.done:
        ended = {"unfinished": runs.unfinished}
        if runs.unfinished == "memory":  # how long it would have taken, nobody knows
            mine, room = _work(runs.ours), available() / 2**20
            yield Row(f"{name}: memory", "MB above the weights", mine, room, *about, 1.0, False, more=ended)
        else:
            limit = float(case.settings["limit"])
            yield Row(name, "CPU s", least(runs.ours, "cpu"), limit, *about, peer.target, False, more=ended)
        return
    if case.function == "rollout":
        apart = max(float(run["apart"]) for run in runs.ours)
        mine, other = (least(own, "tokens") / least(own, "cpu") for own in (runs.ours, runs.done))
        told: dict[str, Any] = {"logprob_difference": apart}
        yield Row(
            name, "tokens/CPU s", mine, other, *about, peer.target, apart < 1e-3, higher_is_better=True, more=told
        )
        return
    correct, more = agreement(runs, exact)
    mine, other = _work(runs.ours), _work(runs.done)
    more |= {"work_mb": [mine, other]}
    yield Row(name, "CPU s", least(runs.ours, "cpu"), least(runs.done, "cpu"), *about, peer.target, correct, more=more)
    memory = 4.0 if case.function == "distil" else 1.0
    yield Row(f"{name}: memory", "MB above the weights", mine, other, *about, memory, correct)


def agreement(runs: Runs, exact: Numbers) -> tuple[bool, dict[str, Any]]:
    """Whether both arms computed the same, and how far they are apart; in bf16, how far each is from fp32."""
    mine, other = runs.ours[0], runs.done[0]
    if not runs.bf16:
        loss, gradient = abs(float(mine["loss"] - other["loss"])), gradient_difference(mine, other)
        return loss <= LOSS and gradient <= GRADIENT, {"loss_difference": loss, "gradient_difference": gradient}
    off = [gradient_difference(exact, one) for one in (mine, other)]
    return off[0] <= AS_NEAR * off[1], {"gradient_off_fp32": off}


def _work(runs: Sequence[Numbers]) -> float:
    """MB that a run needed above what was there before."""
    return float(least(runs, "peak_mb") - least(runs, "before_mb"))


def floor_row(name: str, case: Case, bench: Bench) -> Row:
    """6 N_b (P + G C) + 6 N_h G C at the rate of this machine's products, N_b and N_h the weights of body and head.

    The floor knows neither the pages that a process touches for the first time nor kernels that are not loaded yet, so
    a third step is compared with it: nearly all of a training are such.
    """
    s = case.settings
    body = s["layers"] * 576 * (2 * 576 + 2 * 192 + 3 * 1536)
    flops = 6 * body * (s["P"] + s["G"] * s["C"]) + 6 * 576 * s["vocabulary"] * s["G"] * s["C"]
    rate, ours = bench.rate(), bench.steady_step(case)
    more = {"gflop": flops / 1e9, "gflops": rate}
    return Row(name, "CPU s", ours, flops / 1e9 / rate, "FLOP floor", "", 1.25, True, bound="<=", more=more)


def vocabulary_rows(case: Case, bench: Bench, small: Sequence[Numbers]) -> Iterator[Row]:
    """Work memory at about three times the vocabulary, which is to stay what it was."""
    large = case.settings["vocabulary"] * 152 // 49
    grown = bench.arm("ours").run(case.function, case.settings | {"vocabulary": large}, bench._folder)
    after, before = (float(run["peak_mb"] - run["before_mb"]) for run in (grown, small[0]))
    name = f"self-distillation: vocabulary {case.settings['vocabulary']} to {large}"
    yield Row(name, "MB above the weights", after, before, "the smaller vocabulary", "", 1.1, True, bound="<=")


def startup_rows(repeats: int) -> Iterator[Row]:
    """CPU seconds of a fresh process: an import, and a verb's help; the least of some runs."""
    postgrad = Path(sys.executable).with_name("postgrad")
    empty = best_of(repeats, [sys.executable, "-c", ""])
    imported = best_of(repeats, [sys.executable, "-c", "import postgrad"]) - empty
    peer = best_of(1, [sys.executable, "-W", "ignore", "-c", "import trl; trl.GRPOTrainer"]) - empty
    more = {"trl": round(peer, 3)}
    yield Row("import postgrad", "CPU s", imported, 0.05, "limit", "", 1.0, True, bound="<=", more=more)
    asked = best_of(repeats, [str(postgrad), "train", "--help"])
    yield Row("postgrad train --help", "CPU s", asked, 0.3, "limit", "", 1.0, True, bound="<=", more=more)


def best_of(repeats: int, command: list[str]) -> float:
    """CPU seconds of the command's cheapest run."""
    spent = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=os.environ | ONE_THREAD | QUIET)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], help="functions: preference grpo distil sft rollout startup")
    parser.add_argument(
        "--trace", type=Path, help="a file with a trace of 17 steps; without one a sample or random tokens"
    )
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    if not installed("trl"):
        raise SystemExit("TRL is what this compares with: pip install 'postgrad[bench]'")
    size = QUICK if given.quick else FULL
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(repeats=given.repeats, folder=Path(folder))
        stack.callback(bench.close)
        for case in cases(given.trace or sample(STEPS + 1)):
            if given.only and case.function not in given.only:
                continue
            settings = case.settings | size | (case.quick if given.quick else {})
            peers = case.peers if given.quick else (*case.peers, *case.full_peers)
            for row in rows_of(replace(case, settings=settings, peers=peers), bench):
                rows.append(row)
                print(f"{row.case}: {row.ratio:.2f} {row.unit} against {row.peer_name}", file=sys.stderr)
        if not given.only or "startup" in given.only:
            rows += startup_rows(5)
    report(rows, machine(size=size), as_json=given.json)


if __name__ == "__main__":
    main()
