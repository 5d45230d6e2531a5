"""Contexts that grow out of each other, without their sum: K steps of one history keep K ids and not K * K / 2.

A step's context is that of the step before it and a little more. As tuples, those of a session of 50,000 steps would
take some 20 GB. So a long context is a view of the beginning of one list that all of the history's steps share. It
behaves as a tuple (equality, hash, slices, order); short contexts are tuples.

    context = grown((), ["a", "b"])      # a tuple, or a view of the first two items of a list
    longer = grown(context, ["c"])       # the same list, one item more
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast, overload

LONG = 1024
"""Ids from which on a context is a view."""

Ids = tuple[str, ...]
"""Message ids in order. What is typed so is a tuple or a `Prefix`."""


class Prefix(Sequence[str]):
    """The first `length` items of a list to which items are only added."""

    __slots__ = ("items", "length")

    def __init__(self, items: list[str], length: int) -> None:
        self.items, self.length = items, length

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Ids: ...
    def __getitem__(self, place: int | slice) -> str | Ids:
        if isinstance(place, slice):
            return tuple(self.items[one] for one in range(*place.indices(self.length)))
        if not -self.length <= place < self.length:
            raise IndexError(place)
        return self.items[place % self.length]

    def __iter__(self) -> Iterator[str]:
        return islice(self.items, self.length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prefix | tuple) or len(other) != self.length:
            return False
        shared = isinstance(other, Prefix) and other.items is self.items
        return shared or all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def grown(base: Sequence[str], added: Iterable[str]) -> Ids:
    """`base` and what comes behind it. Whoever goes on first from a view shares its list."""
    new = list(added)
    if not isinstance(base, Prefix):
        ids = (*base, *new)
        return ids if len(ids) < LONG else cast(Ids, Prefix(list(ids), len(ids)))
    items, end = base.items, base.length + len(new)
    if len(items) == base.length:
        items += new
    elif items[base.length : end] != new:
        items = [*base, *new]
    return cast(Ids, Prefix(items, end))


def beginning(ids: Sequence[str], length: int) -> Ids:
    """The first `length` ids; of a view again a view."""
    if isinstance(ids, Prefix) and length >= LONG:
        return cast(Ids, Prefix(ids.items, min(length, ids.length)))
    return tuple(islice(ids, length))


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many ids both begin with."""
    least = min(len(one), len(other))
    if isinstance(one, Prefix) and isinstance(other, Prefix) and one.items is other.items:
        return least
    if isinstance(one, tuple) and isinstance(other, tuple) and one[:least] == other[:least]:
        return least
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), least)


class Renaming:
    """Puts other ids in the place of ids, and others before them; views that shared a list still share one."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        self._rename = rename
        self._lists: dict[tuple[int, Ids], tuple[Any, list[str]]] = {}

    def of(self, ids: Sequence[str], *, before: Ids = ()) -> Ids:
        """`before`, and behind it the ids renamed."""
        if not isinstance(ids, Prefix):
            return (*before, *map(self._rename, ids))
        _, new = self._lists.setdefault((id(ids.items), before), (ids.items, list(before)))
        end = len(before) + ids.length
        new += [self._rename(one) for one in islice(ids.items, len(new) - len(before), ids.length)]
        return cast(Ids, Prefix(new, end))
