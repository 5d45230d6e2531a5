"""In which order requests go out, so that providers' prompt caches find what they have seen.

The contexts of a trace's steps begin alike, each with the whole of the one before. A provider that keeps prompts gives
a discount for that beginning once it has answered the earlier request. So, where some teacher gives a discount, the
steps of a trace form a lane and are asked one after the other, while lanes run side by side; and of lanes that begin
with the same system text and tools only the first starts, until its first step is answered. Without a discount every
step is a lane of its own. The plan goes by the same rules (`common`, `root_of`), so it knows what will be found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from postgrad.core.actor import Ask
from postgrad.core.canonical import content_id
from postgrad.core.message import Message, Tool
from postgrad.core.trace import Step, Trace


class Item(NamedTuple):
    """A step to be asked about, with its trace."""

    trace: Trace
    step: Step


def ask_of(trace: Trace, step: Step) -> Ask:
    """The step as a question: its context, its tools, its task."""
    return Ask(trace.context(step), step.request.tools, trace.task_id)


class Schedule:
    """The order of one replay; it remembers what has been asked from group to group.

    Args:
        steps: trace id -> all selected steps.
        in_order: whether beginnings are worth something.
    """

    def __init__(self, steps: Mapping[str, Sequence[int]], *, in_order: bool) -> None:
        self._selected = {trace: len(indices) for trace, indices in steps.items()}
        self._in_order = in_order
        self._last: dict[str, Sequence[str]] = {}
        self._answered: dict[str, asyncio.Event] = {}

    def shared(self, item: Item) -> int | None:
        """How many messages at the beginning of `item` the trace's last request had; None for a trace asked once."""
        ids = item.step.request.messages
        if not self._in_order or self._selected.get(item.trace.id, 0) < 2:
            return None
        before = self._last.get(item.trace.id, ())
        self._last[item.trace.id] = ids
        return common(before, ids)

    def lanes(self, group: Sequence[Item], ask: Callable[[int], Awaitable[None]]) -> list[Coroutine[Any, Any, None]]:
        """Coroutines to run side by side, which call ``ask(place)`` for every place of the group."""
        by_trace: dict[str, list[int]] = {}
        for place, item in enumerate(group):
            lane = item.trace.id if self._in_order else str(place)
            by_trace.setdefault(lane, []).append(place)
        return [self._lane(places, group, ask) for places in by_trace.values()]

    async def _lane(self, places: Sequence[int], group: Sequence[Item], ask: Callable[[int], Awaitable[None]]) -> None:
        first = group[places[0]]
        root = root_of(first) if self._in_order else ""
        leader = bool(root) and root not in self._answered
        if leader:
            self._answered[root] = asyncio.Event()
        elif root:
            await self._answered[root].wait()
        try:
            for place in places:
                await ask(place)
                if leader:
                    self._answered[root].set()
        finally:
            if leader:  # a leader that failed must not hold the others
                self._answered[root].set()


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many entries at the beginning are equal."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def root_of(item: Item) -> str:
    """What a trace begins with before anyone speaks, as a hash: tools and system text; "" for nothing."""
    system = leading_system(item.trace.context(item.step))
    tools = item.step.request.tools
    return content_id([_plain(tools), [message.id for message in system]]) if system or tools else ""


def leading_system(messages: Sequence[Message]) -> Sequence[Message]:
    """The system messages at the beginning."""
    length = 0
    while length < len(messages) and messages[length].role in ("system", "developer"):
        length += 1
    return messages[:length]


def _plain(tools: Sequence[Tool]) -> list[list[object]]:
    return [[tool.name, tool.description, tool.parameters] for tool in tools]
