"""An ingest that is killed at its Nth step towards the disk: `python ingest_killed.py FOLDER STORE N`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from postgrad.verbs import ingest_batches
from postgrad.verbs.ingest import IngestConfig, run


def counted(function: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    return call


if __name__ == "__main__":
    folder, store, last = sys.argv[1:]
    steps = [int(last)]
    for name in ("fsync", "replace", "ftruncate", "unlink"):
        setattr(os, name, counted(getattr(os, name), steps))
    ingest_batches._BATCH_FILES = 2  # several batches
    run(IngestConfig(paths=[folder], store=Path(store)), Path(store).parent / "run")
    print(int(last) - steps[0])
