"""What a trace is assembled from: the message pool, unique call ids, and results matched to their calls.

Providers' call ids need not be unique: in some logs every call has the id "0". So a repeated id gets a suffix, and a
result belongs to the nearest earlier call of its id that has none yet (formats: tau-bench, ATIF, OpenAI servers).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from postgrad.core.message import Message, ToolCall


class MessagePool:
    """Messages by content id, each once; equal messages of several records keep all their record numbers."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}

    def add(self, message: Message) -> str:
        """Put `message` into the pool and return its id."""
        key = message.id
        known = self.messages.setdefault(key, message)
        if known is not message and not set(message.records) <= set(known.records):
            records = tuple(sorted({*known.records, *message.records}))
            self.messages[key] = msgspec.structs.replace(known, records=records)
        return key

    def extend(self, messages: Iterable[Message]) -> tuple[str, ...]:
        """Add several, in order."""
        return tuple([self.add(message) for message in messages])


class CallIds:
    """Unique call ids, and who answers whom. `place` is any number that grows along the history (a record number)."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._open: dict[str, list[tuple[int, str]]] = {}

    def unique(self, call: ToolCall, *, place: int) -> ToolCall:
        """`call` with an id that is unique in the trace; the provider's is kept beside it where it differs."""
        provider_id = call.id
        self._count[provider_id] = nth = self._count.get(provider_id, 0) + 1
        if nth > 1 or not provider_id:
            call = msgspec.structs.replace(call, id=f"{provider_id}~{nth}", provider_id=provider_id)
        self._open.setdefault(provider_id, []).append((place, call.id))
        return call

    def answered(self, provider_id: str, *, place: int) -> str | None:
        """The id of the call that a result at `place` answers, None for an orphan. A call is answered once.

        Rows can be out of order; only then a later call is taken.
        """
        waiting = self._open.get(provider_id)
        if not waiting:
            return None
        if len(waiting) == 1:
            del self._open[provider_id]
            return waiting[0][1]
        earlier = [entry[0] for entry in waiting if entry[0] <= place]
        nearest = max(earlier) if earlier else min(entry[0] for entry in waiting)
        # Calls of one message are answered in their order.
        chosen = next(entry for entry in waiting if entry[0] == nearest)
        waiting.remove(chosen)
        return chosen[1]
