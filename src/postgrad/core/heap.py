"""Memory where the defaults do not suit: `give_back` what was freed, `few_collections` while much is made.

glibc hands back what lies at the end of its heap and keeps the holes. Whoever has let go of hundreds of megabytes, and
goes on to need as much of another kind, would have both in the process. Without glibc (macOS, musl) nothing is done.

Python looks for cycles after every 700 new objects. Millions of objects that all live, and are in no cycle, are looked
through again and again: a sixth of the time of ingesting a long session.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_THRESHOLD = (10_000, 20, 20)


def give_back() -> None:
    """Give freed memory back; takes some 20 ms a gigabyte."""
    trim = _trim()
    if trim is not None:
        trim(ctypes.c_size_t(0))


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for cycles some ten times less often; also a decorator. It holds for the whole process."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
