"""What this machine is fast at, measured once and remembered: how many threads, and whether bf16 products pay.

Two threads can be slower than one when decoding, and bf16 is four times faster than fp32 on a CPU with AMX and a
hundred times slower on one without. So both are measured (under a second each, kept in the cache folder by host and
library version), never assumed. ``POSTGRAD_THREADS`` overrides; a set ``OMP_NUM_THREADS`` is left alone.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import torch

from postgrad.core.errors import ConfigError
from postgrad.models.cachedir import recall, remember

BF16_MUST_GAIN = 1.2
"""Autocast also costs casts in every layer, so products alone must be this much faster."""

THREADS_MUST_GAIN = 1.3
"""Several threads must be this much faster than one to be used."""


def set_threads() -> int:
    """Set torch's thread count, the only place where that is done, and return it.

    Raises:
        ConfigError: ``POSTGRAD_THREADS`` is no positive number.
    """
    named = os.environ.get("POSTGRAD_THREADS")
    if named is not None:
        if not named.isdigit() or int(named) < 1:
            raise ConfigError("bad POSTGRAD_THREADS", got=named, expected="a positive number")
        torch.set_num_threads(int(named))
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(int(_remembered("threads", _measure_threads)))
    return torch.get_num_threads()


def usable_device(name: str) -> torch.device:
    """The torch device of that name, proved by a number put there and read back.

    Raises:
        ConfigError: no device is called so, or this machine or this build of torch has none.
    """
    try:
        device = torch.device(name)
        torch.zeros((), device=device).item()
    except (RuntimeError, AssertionError, ImportError) as error:  # torch refuses a device with any of them
        why = str(error).strip().partition("\n")[0]
        expected = "cpu, or cuda where torch sees a GPU"
        raise ConfigError(f"the device cannot be used ({why})", got=name, expected=expected) from None
    return device


def bf16_is_faster(device: torch.device) -> bool:
    """Whether bf16 products are enough faster than fp32 ones on `device` for autocast to be worth it."""
    if device.type != "cpu":
        return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(_remembered("bf16", _measure_bf16))


def _remembered(key: str, measure: Callable[[], int]) -> int:
    host = f"{platform.node()}|{os.cpu_count()}|{len(os.sched_getaffinity(0))}|{torch.__version__}"
    known = recall("machine.json")
    entry = known.setdefault(host, {})
    if key not in entry:
        entry[key] = measure()
        remember("machine.json", known)
    return int(entry[key])


def _measure_threads() -> int:
    """One thread per core if that is clearly faster than one thread, on products like those of decoding; else one.

    The mean counts, not the best run: threads that wait for each other lose most when the machine has other work.
    """
    cores = len(os.sched_getaffinity(0))
    rows, up, down = torch.randn(8, 576), torch.randn(576, 1536), torch.randn(1536, 576)

    def work() -> None:
        hidden = rows
        for _ in range(20):
            hidden = torch.tanh(torch.tanh(hidden @ up) @ down)

    before = torch.get_num_threads()
    seconds = {}
    for threads in (1, cores):
        torch.set_num_threads(threads)
        seconds[threads] = _mean_seconds(work)
    torch.set_num_threads(before)
    return cores if seconds[cores] * THREADS_MUST_GAIN < seconds[1] else 1


def _measure_bf16() -> int:
    a, b = torch.randn(64, 576), torch.randn(576, 576)
    a16, b16 = a.bfloat16(), b.bfloat16()
    return int(_mean_seconds(lambda: a16 @ b16) * BF16_MUST_GAIN < _mean_seconds(lambda: a @ b))


def _mean_seconds(work: Callable[[], object], *, budget: float = 0.25) -> float:
    """Mean time of a run over about `budget` seconds, after one run to warm up."""
    work()
    runs, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < budget or not runs:
        work()
        runs += 1
    return spent / runs
