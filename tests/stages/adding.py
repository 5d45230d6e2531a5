"""Adds `step` to `start` `times` times, one line a time in count.txt, so that a kill in the middle leaves a part."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from postgrad.run.config import Config


class CONFIG(Config):
    start: float = 0
    step: float = 1
    times: int = 3
    source: Path | None = None
    die_at: Path | None = None
    """While this file exists, removing it and dying of SIGKILL is what happens at the second line."""


def run(config: CONFIG, out: Path) -> dict[str, Any]:
    log = out / "count.txt"
    kept = log.read_text().splitlines() if log.exists() else []
    start = float(config.source.read_text()) if config.source else config.start
    for number in range(len(kept), config.times):
        if number == 1 and config.die_at and config.die_at.exists():
            config.die_at.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        with log.open("a") as stream:
            stream.write(f"{number}\n")
    with (out.parent / "calls.txt").open("a") as stream:
        stream.write(f"{out.name} kept {len(kept)}\n")
    return {"total": start + config.step * config.times, "kept": len(kept), "log": str(log)}
