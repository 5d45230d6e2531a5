"""Freed memory leaves the process where glibc would keep it; collections are rare for as long as it was asked for."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from postgrad.core import heap

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_holes_between_what_lives_are_given_back() -> None:
    """Of 2,000 buffers of 64 KB, written to so that they are in memory, every second is freed: 64 MB of holes."""
    buffers = [bytearray(b"x" * 65536) for _ in range(2000)]
    del buffers[::2]
    before = resident() if STATM.exists() else 0
    heap.give_back()
    if heap._trim() is not None:
        assert before - resident() > 40e6
    assert {bytes(buffer) for buffer in buffers} == {b"x" * 65536}


def test_without_glibc_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    heap._trim.cache_clear()
    monkeypatch.setattr(heap.sys, "platform", "darwin")
    try:
        assert heap._trim() is None
        heap.give_back()
    finally:
        heap._trim.cache_clear()


def test_collections_are_as_they_were_afterwards() -> None:
    """Also after an error, and where one stretch lies inside another."""
    before = gc.get_threshold()

    @heap.few_collections()
    def within() -> tuple[int, int, int]:
        return gc.get_threshold()

    def fails() -> None:
        with heap.few_collections():
            assert within()[0] == gc.get_threshold()[0] >= 10 * before[0]
            raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        fails()
    assert gc.get_threshold() == before
