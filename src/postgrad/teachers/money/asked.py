"""What a provider has been asked and its prompt cache may still hold: in this plan, and in runs a short while ago.

A cache finds the longest beginning of a request that some earlier request had, unless that is longer ago than it keeps
things. Of one trace every request counts. Of the others counts the first request of each that was answered in an
earlier run, and of those that this plan will ask the very first, for only that one is waited for before the others
start (`schedule`). Not covered: traces that begin alike for several steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from postgrad.teachers.money.schedule import Item, root_of


class Beginnings:
    """Requests as lists of message ids, each at a time; a tree, so that looking one up costs its length."""

    __slots__ = ("_after", "first", "last")

    def __init__(self) -> None:
        self.first, self.last = math.inf, -math.inf
        self._after: dict[str, Beginnings] = {}

    def add(self, ids: Sequence[str], at: float) -> None:
        """A request at the Unix time `at`."""
        place = self
        for one in ids:
            known = place._after.get(one)
            if known is None:
                known = place._after[one] = Beginnings()
            place = known
            place.first, place.last = min(place.first, at), max(place.last, at)

    def before(self, ids: Sequence[str], at: float, *, keeps: float) -> int:
        """How many messages at the beginning of `ids` were asked before `at`, and not more than `keeps` seconds."""
        place = self
        for length, one in enumerate(ids):
            known = place._after.get(one)
            if known is None or known.first > at or at - known.last > keeps:
                return length
            place = known
        return len(ids)


class Asked:
    """What one provider was asked; `keeps` is for how many seconds its prompt cache holds it.

    Requests come trace by trace: of a trace that is over only its first request is kept, for others to begin like.
    """

    def __init__(self, keeps: float) -> None:
        self._keeps = keeps
        self._trace, self._root = "", ""
        self._own = Beginnings()
        self._shared: dict[str, Beginnings] = {}

    def before(self, item: Item, at: float, *, earlier_run: bool) -> int:
        """How many messages at the beginning of `item`, which is asked at the Unix time `at`, are held by then."""
        ids, first_of_trace = item.step.request.messages, item.trace.id != self._trace
        if first_of_trace:
            self._trace, self._root, self._own = item.trace.id, root_of(item), Beginnings()
        held = self._own.before(ids, at, keeps=self._keeps)
        if self._root:
            first_of_root = self._root not in self._shared
            shared = self._shared.setdefault(self._root, Beginnings())
            held = max(held, shared.before(ids, at, keeps=self._keeps))
            if first_of_root or (first_of_trace and earlier_run):
                shared.add(ids, at)
        self._own.add(ids, at)
        return held
