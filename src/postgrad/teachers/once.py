"""Things that are made once: per object (`PerObject`), per event loop (`PerLoop`).

`PerObject`: a value that is worked out once per object, because the contexts of a trace share their messages.

A trace of K steps names its messages K times; hashing or weighing each of them every time would cost K contexts. Values
are kept by the object's identity, and the object with them, so that its identity stays its own. With `equal`, an object
that equals the one before takes its value: a store gives every step its own list of the same tools. `PerLoop`: locks of
asyncio belong to the loop in which someone first waited for them; in another loop they are made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class PerObject(Generic[KeyT, ValueT]):
    """`make` with its values kept; call it with an object."""

    def __init__(self, make: Callable[[KeyT], ValueT], *, equal: bool = False) -> None:
        self._make = make
        self._equal = equal
        self._known: dict[int, tuple[KeyT, ValueT]] = {}
        self._last: tuple[KeyT, ValueT] | None = None

    def __call__(self, key: KeyT) -> ValueT:
        """The value of `key`."""
        known = self._known.get(id(key))
        if known is None:
            same = self._last if self._equal and self._last is not None and self._last[0] == key else None
            known = self._known[id(key)] = (key, same[1] if same else self._make(key))
        self._last = known
        return known[1]


class PerLoop(Generic[ValueT]):
    """What `make` gives, once for the running event loop; call it to get it."""

    def __init__(self, make: Callable[[], ValueT]) -> None:
        self._make = make
        self._made: tuple[asyncio.AbstractEventLoop, ValueT] | None = None

    def __call__(self) -> ValueT:
        """The value for this loop."""
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            self._made = (loop, self._make())
        return self._made[1]
