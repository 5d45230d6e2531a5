"""Progress on stderr: a bar on a terminal, a plain line every few seconds otherwise. stdout is never touched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

from postgrad.core.pulse import listening

Item = TypeVar("Item")

LINE_SECONDS = 10.0
_active = False


def note(text: str) -> None:
    """One plain line for the person watching."""
    print(text, file=sys.stderr, flush=True)


def track(
    iterable: Iterable[Item],
    description: str,
    total: int | None = None,
    *,
    done: int = 0,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield the items and show how far they are: of `total`, by default all of them, `done` were there before.

    An item counts for its `size` (a batch for its rows). What the work on an item tells of itself (`core.pulse`) is
    shown as well, so that one long item is no silence. A bar inside another bar stays silent: the outer one moves.
    """
    if total is None and isinstance(iterable, Sized):
        total = sum(map(size, iterable))
    if _active:
        yield from iterable
    elif sys.stderr.isatty():
        yield from _bar(iterable, description, total, done, size)
    else:
        yield from _lines(iterable, description, total, done, size)


def _bar(
    iterable: Iterable[Item], description: str, total: int | None, before: int, size: Callable[[Item], int]
) -> Iterator[Item]:
    global _active
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # Two lines: the words of a beat beside a bar would not fit in 80 columns.
    columns = (
        TextColumn("{task.description}{task.fields[words]}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    _active = True
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(description, total=total, completed=before, words="")
            done = before
            for item in iterable:
                within = size(item)

                def hear(share: float, words: str, *, done: int = done, within: int = within) -> None:
                    bar.update(task, completed=done + share * within, words=f"\n  {words}")

                with listening(hear):
                    yield item
                done += within
                bar.update(task, completed=done, words="")
    finally:
        _active = False


def _lines(
    iterable: Iterable[Item], description: str, total: int | None, before: int, size: Callable[[Item], int]
) -> Iterator[Item]:
    """A loop shorter than `LINE_SECONDS` prints nothing."""
    started = last = time.monotonic()
    done = before

    def say(words: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_SECONDS:
            last = now
            of = f"/{total}" if total is not None else ""
            note(f"{description}: {done}{of}, {now - started:.0f} s{words}")

    with listening(lambda share, words: say(f"; now {words}")):
        for item in iterable:
            yield item
            done += size(item)
            say()
