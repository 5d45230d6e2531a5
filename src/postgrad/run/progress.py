"""Progress on stderr: a bar on a terminal, a plain line every few seconds otherwise. stdout is never touched."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")

LINE_SECONDS = 10.0
_active = False


def note(text: str) -> None:
    """One plain line for the person watching."""
    print(text, file=sys.stderr, flush=True)


def track(iterable: Iterable[Item], description: str, total: int | None = None, *, done: int = 0) -> Iterator[Item]:
    """Yield the items and show how far they are: of `total`, by default all of them, `done` were there before.

    A bar inside another bar stays silent: the outer one already moves.
    """
    count = len(iterable) if total is None and isinstance(iterable, Sized) else total
    if _active:
        yield from iterable
    elif sys.stderr.isatty():
        yield from _bar(iterable, description, count, done)
    else:
        yield from _lines(iterable, description, count, done)


def _bar(iterable: Iterable[Item], description: str, total: int | None, before: int) -> Iterator[Item]:
    global _active
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    _active = True
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=total, completed=before)
            for item in iterable:
                yield item
                bar.advance(task)
    finally:
        _active = False


def _lines(iterable: Iterable[Item], description: str, total: int | None, before: int) -> Iterator[Item]:
    """A loop shorter than `LINE_SECONDS` prints nothing."""
    started = last = time.monotonic()
    for done, item in enumerate(iterable, start=before + 1):
        yield item
        now = time.monotonic()
        if now - last >= LINE_SECONDS:
            last = now
            of = f"/{total}" if total is not None else ""
            note(f"{description}: {done}{of}, {now - started:.0f} s")
