"""What `benchmarks/train.py` compares: each case with its settings, and each peer with how much better we are to be."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from training.data import learnable

TRACES = Path(os.environ.get("POSTGRAD_SHARED", Path(__file__).parents[3] / "shared")) / "traces" / "swe_agent"
FULL = {"layers": 30, "vocabulary": 49152, "limit": 1800}
QUICK = {"layers": 6, "vocabulary": 9830, "limit": 90}
TUNED, DEFAULTS = {"checkpointing": False}, {"checkpointing": True, "bf16": True}
STEPS = 16


class Peer(NamedTuple):
    """Whom we are compared with, its settings, and how many times better we are to be.

    With `bf16` in its settings both arms run in bf16 where that is faster on this machine, else in fp32.
    """

    name: str
    settings: dict[str, Any]
    target: float


@dataclass(frozen=True)
class Case:
    """A comparison: what runs, on what, against whom."""

    name: str
    function: str
    settings: dict[str, Any]
    peers: tuple[Peer, ...]
    quick: dict[str, Any]
    peer_library: str = "trl"
    full_peers: tuple[Peer, ...] = ()


def cases(trace: Path | None) -> list[Case]:
    """All of them."""
    both = (Peer("TRL GRPOTrainer, tuned", TUNED, 2.5), Peer("TRL GRPOTrainer, defaults", DEFAULTS, 4.5))
    group = {"warm": {"P": 16, "C": 4, "G": 2}}
    long_pair = {"steps": 1, "context": 1024, "lora": True, "warm": {"context": 64}}
    replay = {"steps": STEPS, "context": 4096, "lora": True, "warm": {"steps": 1, "context": 64, "trace": None}}
    distil = {"P": 256, "C": 64, "G": 8, "hint": 64, "lora": True, **group}
    kind = "a real trace" if trace else "a synthetic trace"
    return [
        Case(
            f"preference on {kind}",
            "preference",
            replay | {"trace": str(trace) if trace else None},
            (Peer("TRL DPOTrainer, tuned", TUNED, 10.0),),
            {"context": 768},
            full_peers=(
                Peer("TRL DPOTrainer, checkpointing", {"checkpointing": True}, 10.0),
                Peer("TRL DPOTrainer, defaults", DEFAULTS, 10.0),
            ),
        ),
        Case("GRPO loss", "grpo", {"P": 256, "C": 64, "G": 8, **group}, both, {}),
        Case("GRPO loss", "grpo", {"P": 512, "C": 32, "G": 8, **group}, both, {}),
        Case("self-distillation", "distil", distil, (Peer("TRL SDPOTrainer, full_logits", TUNED, 3.0),), {}),
        Case(
            "SFT, skewed lengths",
            "sft",
            {"documents": 64, "longest": 1024, "rows": 4, "warm": {"documents": 2}},
            (Peer("TRL SFTTrainer, packing bfd", TUNED, 1.0),),
            {},
        ),
        Case("DPO pair, long prompt", "preference", long_pair, (Peer("TRL DPOTrainer, tuned", TUNED, 1.8),), {}),
        Case(
            "rollout, 8 samples a prompt",
            "rollout",
            {"prompts": 4, "P": 256, "C": 64, "G": 8, "seed": 0, "warm": {"prompts": 1, "P": 8, "C": 4, "G": 2}},
            (Peer("transformers generate", {}, 2.0),),
            {"prompts": 2, "C": 32},
            "transformers",
        ),
    ]


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
