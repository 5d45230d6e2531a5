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
from training.data import learnable

ROOT = Path(__file__).parents[1]
TRACES = Path(os.environ.get("POSTGRAD_SHARED", ROOT.parent / "shared")) / "traces" / "swe_agent"
FULL = {"layers": 30, "vocabulary": 49152, "limit": 1800}
QUICK = {"layers": 6, "vocabulary": 9830, "limit": 90}
TRL, TUNED, DEFAULT = "trl_arms", {"checkpointing": False}, {"checkpointing": True}
STEPS = 16
LOSS, GRADIENT = 1e-4, 1e-3
"""Agreement asked for: of losses absolutely, of gradients relatively."""


@dataclass(frozen=True)
class Case:
    """A comparison: what runs, on what, against whom, and how much better it is to be."""

    name: str
    function: str
    settings: dict[str, Any]
    peers: tuple[tuple[str, dict[str, Any], float], ...]
    quick: dict[str, Any]
    peer_library: str = "trl"
    full_peers: tuple[tuple[str, dict[str, Any], float], ...] = ()


def cases(trace: Path | None) -> list[Case]:
    """All of them."""
    tuned = "TRL {}, tuned"
    both = ((tuned.format("GRPOTrainer"), TUNED, 2.5), ("TRL GRPOTrainer, defaults (bf16 where faster)", DEFAULT, 4.5))
    group = {"warm": {"P": 16, "C": 4, "G": 2}}
    long_pair = {"steps": 1, "context": 1024, "lora": True, "warm": {"context": 64}}
    replay = {"steps": STEPS, "context": 4096, "lora": True, "warm": {"steps": 1, "context": 64, "trace": None}}
    distil = {"P": 256, "C": 64, "G": 8, "hint": 64, "lora": True, **group}
    kind = "a real trace" if trace else "a synthetic trace"
    dpo = (tuned.format("DPOTrainer"), TUNED)
    return [
        Case(
            f"preference on {kind}",
            "preference",
            replay | {"trace": str(trace) if trace else None},
            ((*dpo, 10.0),),
            {"context": 768},
            full_peers=(("TRL DPOTrainer, defaults (bf16 where faster)", DEFAULT, 10.0),),
        ),
        Case("GRPO loss", "grpo", {"P": 256, "C": 64, "G": 8, **group}, both, {}),
        Case("GRPO loss", "grpo", {"P": 512, "C": 32, "G": 8, **group}, both, {}),
        Case("self-distillation", "distil", distil, (("TRL SDPOTrainer, full_logits", TUNED, 3.0),), {}),
        Case(
            "SFT, skewed lengths",
            "sft",
            {"documents": 64, "longest": 1024, "rows": 4, "warm": {"documents": 2}},
            (("TRL SFTTrainer, packing bfd", TUNED, 1.0),),
            {},
        ),
        Case("DPO pair, long prompt", "preference", long_pair, ((*dpo, 1.8),), {}),
        Case(
            "rollout, 8 samples a prompt",
            "rollout",
            {"prompts": 4, "P": 256, "C": 64, "G": 8, "seed": 0, "warm": {"prompts": 1, "P": 8, "C": 4, "G": 2}},
            (("transformers generate", {}, 2.0),),
            {"prompts": 2, "C": 32},
            "transformers",
        ),
    ]


@dataclass
class Runs:
    """A peer's runs, and what it ran out of."""

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
        """Our runs, and each peer's, taken in turns."""
        ours: list[Numbers] = []
        theirs = [Runs() for _ in case.peers]
        for _ in range(self._repeats):
            ours.append(self.arm("ours").run(case.function, case.settings, self._folder))
            for runs, (_, extra, _) in zip(theirs, case.peers, strict=True):
                try:
                    runs.done.append(self.arm(TRL).run(case.function, case.settings | extra, self._folder))
                except Unfinished as ended:
                    runs.unfinished = ended.what
        return ours, theirs

    def rate(self) -> float:
        """fp32 products of this machine now, GFLOP by CPU second: the best of three, as others can only lower it."""
        return max(float(self.arm("ours").run("products", {}, self._folder)["gflops"]) for _ in range(3))


def rows_of(case: Case, bench: Bench) -> Iterator[Row]:
    """Time, and memory where it is asked for."""
    ours, theirs = bench.turns(case)
    shape = ", ".join(
        f"{name} {case.settings[name]}" for name in ("P", "C", "G", "context", "steps") if name in case.settings
    )
    name = f"{case.name} ({shape})" if shape else case.name
    for (peer, _, target), runs in zip(case.peers, theirs, strict=True):
        yield from peer_rows(name, case, ours, runs, (peer, installed(case.peer_library)), target)
    if case.function == "grpo":
        yield floor_row(name, case, ours, bench)
    if case.function == "distil":
        yield from vocabulary_rows(case, bench, ours)


def peer_rows(
    name: str, case: Case, ours: list[Numbers], runs: Runs, about: tuple[str, str], target: float
) -> Iterator[Row]:
    """Ours beside one peer."""
    if not runs.done:
        ended = {"unfinished": runs.unfinished}
        if runs.unfinished == "memory":  # how long it would have taken, nobody knows
            mine, room = _work(ours), available() / 2**20
            yield Row(f"{name}: memory", "MB above the weights", mine, room, *about, 1.0, False, more=ended)
        else:
            limit = float(case.settings["limit"])
            yield Row(name, "CPU s", least(ours, "cpu"), limit, *about, target, False, more=ended)
        return
    if case.function == "rollout":
        apart = max(float(run["apart"]) for run in ours)
        mine, other = (least(own, "tokens") / least(own, "cpu") for own in (ours, runs.done))
        more: dict[str, Any] = {"logprob_difference": apart}
        yield Row(name, "tokens/CPU s", mine, other, *about, target, apart < 1e-3, higher_is_better=True, more=more)
        return
    loss = abs(float(ours[0]["loss"] - runs.done[0]["loss"]))
    gradient = gradient_difference(ours[0], runs.done[0])
    mine, other = _work(ours), _work(runs.done)
    more = {"loss_difference": loss, "gradient_difference": gradient, "work_mb": [mine, other]}
    correct = loss <= LOSS and gradient <= GRADIENT
    yield Row(name, "CPU s", least(ours, "cpu"), least(runs.done, "cpu"), *about, target, correct, more=more)
    memory = 4.0 if case.function == "distil" else 1.0
    yield Row(f"{name}: memory", "MB above the weights", mine, other, *about, memory, correct)


def _work(runs: Sequence[Numbers]) -> float:
    """MB that a run needed above what was there before."""
    return float(least(runs, "peak_mb") - least(runs, "before_mb"))


def floor_row(name: str, case: Case, ours: Sequence[Numbers], bench: Bench) -> Row:
    """6 N_b (P + G C) + 6 N_h G C at the rate of this machine's products, N_b and N_h the weights of body and head."""
    s = case.settings
    body = s["layers"] * 576 * (2 * 576 + 2 * 192 + 3 * 1536)
    flops = 6 * body * (s["P"] + s["G"] * s["C"]) + 6 * 576 * s["vocabulary"] * s["G"] * s["C"]
    rate = bench.rate()
    more = {"gflop": flops / 1e9, "gflops": rate}
    seconds = flops / 1e9 / rate
    return Row(name, "CPU s", least(ours, "cpu"), seconds, "FLOP floor", "", 1.25, True, bound="<=", more=more)


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


def sample(steps: int) -> Path | None:
    """The first sample with a trace of so many steps, from the smallest file on."""
    from postgrad.core.errors import DataError
    from postgrad.traces import readers

    for path in sorted(TRACES.rglob("*.*"), key=lambda path: path.stat().st_size) if TRACES.is_dir() else []:
        try:
            if path.stat().st_size > 50_000 and any(learnable(trace) >= steps for trace in readers.read(path).traces):
                return path
        except DataError:
            continue  # a folder of samples holds broken ones too
    return None


if __name__ == "__main__":
    main()
