"""Many sources are read in batches, each into a segment of its own; by several processes where there is much to read.

What comes out does not depend on how many processes there are: batches come back in the order of the sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from postgrad.core.errors import OutsideFailure
from postgrad.traces.storage.journal import StoredSource
from postgrad.verbs.ingest_settings import Item, Outcome, Settings

_BATCH_BYTES, _LEAST_BYTES, _BATCH_FILES = 32 << 20, 8 << 20, 256
_SPREAD, _MUCH = 24 << 20, 64 << 20  # bytes from which on starting processes, and preparing the sieve, is worth it


def read_all(settings: Settings, pending: list[Item], known: dict[str, StoredSource]) -> Iterator[list[Outcome]]:
    """What became of the sources, batch by batch; commit each before asking for the next.

    Args:
        settings: how to read.
        pending: what to read.
        known: sources that the store holds, by hash.

    Raises:
        OutsideFailure: a worker was killed.
    """
    if not pending:
        return
    from postgrad.traces.redaction import sieve

    size = sum(_size(item.place) for item in pending)
    cores = _cores() if size >= _SPREAD else 1
    batches = list(_batches(pending, max(_LEAST_BYTES, min(_BATCH_BYTES, size // (2 * cores)))))
    if size >= _MUCH:
        sieve.prepare()
    yield from _done(settings, batches, known, min(len(batches), cores))


def _cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _done(
    settings: Settings, batches: list[list[Item]], known: dict[str, StoredSource], workers: int
) -> Iterator[list[Outcome]]:
    """The batches in order, read here or by processes; as many are under way as there are processes, and one more."""
    from postgrad.verbs.ingest_sources import read_sources

    if workers <= 1:
        yield from (read_sources(settings, batch, known) for batch in batches)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    todo = iter(batches)
    # Not forked: Arrow's threads do not survive that.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        try:
            running = [pool.submit(read_sources, settings, batch, known) for batch in islice(todo, workers + 1)]
            while running:
                outcomes = running.pop(0).result()
                running += [pool.submit(read_sources, settings, batch, known) for batch in islice(todo, 1)]
                yield outcomes
        except BrokenProcessPool:
            do = "the same command goes on from there"
            raise OutsideFailure(f"a process that was reading was killed; what was read is kept; {do}") from None
        finally:
            pool.shutdown(cancel_futures=True)


def _batches(items: Iterable[Item], limit: int) -> Iterator[list[Item]]:
    """Neighbours together, about `limit` bytes: what one segment should hold, less where many processes wait."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += _size(item.place)
        if size >= limit or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(path: Path) -> int:
    """Bytes on disk; what lies in archives and folders counts as little, for want of knowing."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # gone in this moment: whoever reads it says so
        return 0
