"""One arm of a comparison, served from one process: CPU time and peak memory of each case are its own.

The libraries are imported once (`python benchmarks/arm.py MODULE`); every request, a JSON line `{"case", "settings",
"out"}` on stdin, then runs in a fork: set up, warm up on the `warm` settings, run `steps_before` equal steps, measure.
What it gave is written to the `out` file (numpy), and a line `{"done": rc}` says so. A fork that needs more CPU seconds
than its settings' `limit` is ended by the system, and `done` is -24 (SIGXCPU); one that needs more memory than there is
ends itself, and `done` is 12 (ENOMEM).
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import resource
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


def start_peak() -> float:
    """Forget the peak so far, where the system can (Linux); the memory in use now, in MB."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def peak_mb() -> float:
    """Largest resident memory since `start_peak`, in MB."""
    with suppress(OSError):
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def available() -> int:
    """Bytes of memory free for use, as the system estimates; where it does not (not Linux) a very large number."""
    with suppress(OSError):
        [line] = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")]
        return int(line.split()[1]) * 1024
    return sys.maxsize


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation was refused; torch says it in words."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def measured(module: Any, case: str, settings: dict[str, Any], out: str) -> None:
    """Set up, warm up, run, write."""
    from training.bodies import fingerprint

    if settings.get("limit"):
        spent = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(spent.ru_utime + spent.ru_stime + settings["limit"])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    most = int(start_peak() * 2**20 + 0.9 * available())  # beyond it the system would end any process, not this one
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    prepare = getattr(module, case)
    if settings.get("warm"):
        prepare(settings | settings["warm"])()
    step = prepare(settings)
    for _ in range(settings.get("steps_before", 0)):
        step()
    before = start_peak()
    began, wall = time.process_time(), time.perf_counter()
    outcome = step()
    cpu, wall = time.process_time() - began, time.perf_counter() - wall
    peak = peak_mb()
    numbers: dict[str, Any] = {name: value for name, value in outcome.items() if isinstance(value, (int, float))}
    if "check" in outcome:
        numbers["apart"] = outcome["check"]()
    if "model" in outcome:
        numbers |= {f"gradient/{name}": part for name, part in fingerprint(outcome["model"]).items()}
    np.savez(out, cpu=cpu, wall=wall, peak_mb=peak, before_mb=before, **numbers)


def main(name: str) -> None:
    """Serve requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    sys.path.insert(0, str(Path(__file__).parent))
    import torch

    torch.set_num_threads(1)
    module = importlib.import_module(f"training.{name}")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                measured(module, request["case"], request["settings"], request["out"])
                code = 0
            except BaseException as error:
                traceback.print_exc()
                code = errno.ENOMEM if is_out_of_memory(error) else 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
        answers.write(json.dumps({"done": os.waitstatus_to_exitcode(status)}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
