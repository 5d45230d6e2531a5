"""Which of several workers this process is, as `torchrun` and `accelerate launch` tell it. No torch needed."""

from __future__ import annotations

import os


def worker() -> tuple[int, int]:
    """Number of this worker, from 0, and how many there are; (0, 1) for a process started by itself."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def own_device(device: str) -> str:
    """`device` for this worker: with several of them, "cuda" is each one's own GPU."""
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" and worker()[1] > 1 else device


def is_first_worker() -> bool:
    """Whether this worker keeps the books: the run folder, the artifact, what is printed."""
    return worker()[0] == 0
