"""Claims: one process asks, the others wait; a killed one holds nobody up."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from postgrad.teachers.claims import claimed

KEY, OTHER = "0" * 39 + "1", "f" * 40
HOLD = """
import asyncio, sys, time
from pathlib import Path
from postgrad.teachers.claims import claimed

async def hold():
    async with claimed(Path(sys.argv[1]), sys.argv[2]):
        print("held", flush=True)
        time.sleep(float(sys.argv[3]))

asyncio.run(hold())
"""


def holder(folder: Path, key: str, seconds: float) -> subprocess.Popen[str]:
    """Another process, when it has the claim."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), key, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def seconds_to_claim(folder: Path, key: str) -> float:
    async def claim() -> None:
        async with claimed(folder, key):
            pass

    started = time.monotonic()
    asyncio.run(claim())
    return time.monotonic() - started


def test_another_process_is_waited_for_and_another_key_is_not(tmp_path: Path) -> None:
    process = holder(tmp_path, KEY, 1.0)
    assert seconds_to_claim(tmp_path, OTHER) < 0.5
    assert seconds_to_claim(tmp_path, KEY) > 0.3
    assert process.wait() == 0


def test_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    process = holder(tmp_path, KEY, 100.0)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert seconds_to_claim(tmp_path, KEY) < 1.0


def test_a_folder_that_cannot_be_written_makes_nobody_wait(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert seconds_to_claim(tmp_path / "file" / "answers", KEY) < 0.5
