"""Claims: of several processes that ask the same at the same moment, one asks, and the others take its answer.

A claim is a lock on one byte of a file beside the answers; the key says on which. The system takes the lock back when
its process ends, however it ends, so a killed process holds nobody up. Such locks belong to the process and are lost
when it closes the file anywhere: the file is opened once and stays open. Not covered: file systems without such locks
(some over a network), where both pay.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

FILE = ".claims"
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds between two looks
_DIGITS = 15  # of the key: 60 bits, as files reach


@asynccontextmanager
async def claimed(
    folder: Path, key: str, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Hold the claim to ask what `key` stands for; waits while another process holds it.

    Args:
        folder: of the answers; made where it is missing.
        key: hexadecimal.
        sleep: how to wait, in seconds; what it raises ends the wait.
    """
    place, wait = int(key[:_DIGITS], 16), _FIRST_WAIT
    file = _opened(folder.resolve())
    while not _lock(file, place):
        await sleep(wait)
        wait = min(_LONGEST_WAIT, 2 * wait)
    try:
        yield
    finally:
        _unlock(file, place)


@cache
def _opened(folder: Path) -> int | None:
    """The folder's file, open for the rest of the process; None where it cannot be: then nobody waits."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None  # what is wrong with the folder is said when an answer is to be kept


def _lock(file: int | None, place: int) -> bool:
    if file is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):  # another process holds it
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _unlock(file: int | None, place: int) -> None:
    if file is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
        except OSError:  # it had none to begin with
            return
