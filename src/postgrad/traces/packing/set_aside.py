"""`SetAside`: the traces of a large source, on disk until they are asked for, one at a time.

While a reader puts a session of hundreds of megabytes together, its rows, what it knows about them and the trace are in
memory, and their parts lie between one another: when the reader is done, most of that memory holds something that is
still in use. So the trace is written to disk piece by piece, all is let go of, and what comes back lies in one place.
It is taken apart as for a store (`packed`), with every message and every list of tools once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

import msgspec

from postgrad.core.message import Block, Message, Text, Tool, ToolResult
from postgrad.core.trace import Step, Trace
from postgrad.traces.packing.packed import bare_steps, key_of, stand_in_for, tools_for, whole_steps
from postgrad.traces.packing.spool import Tape

LARGE = 16 << 20
"""Bytes of a source from which on its traces are set aside."""
_OVERHEAD = 500  # bytes of a message or a step beside its texts


class SetAside(Sequence[Trace]):
    """The traces given, in their order. Each is made anew whenever it is asked for."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        self._parts = [_taken_apart(trace) for trace in traces]

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, place: int) -> Trace: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Trace, ...]: ...
    def __getitem__(self, place: int | slice) -> Trace | tuple[Trace, ...]:
        if isinstance(place, slice):
            return tuple(map(_put_together, self._parts[place]))
        return _put_together(self._parts[place])

    def __iter__(self) -> Iterator[Trace]:
        return map(_put_together, self._parts)


class _Parts(NamedTuple):
    """A trace without messages and steps; what its messages hold, by id; both with stand-ins; its lists of tools.

    All on disk: whatever small thing stayed in memory would keep all from being let go of that lies around it.
    """

    bare: Tape[Trace]
    blocks: Tape[tuple[str, tuple[Block, ...]]]
    messages: Tape[tuple[str, Message]]
    steps: Tape[Step]
    tools: Tape[tuple[Tool, ...]]


def _taken_apart(trace: Trace) -> _Parts:
    parts = _Parts(Tape(), Tape(), Tape(), Tape(), Tape())
    parts.bare.append(msgspec.structs.replace(trace, messages={}, steps=()), weight=_OVERHEAD)
    known: set[str] = set()
    places: dict[int, Tool] = {}

    def stand_in(message: Message) -> Message:
        if message.id not in known:
            known.add(message.id)
            parts.blocks.append((message.id, message.blocks), weight=_weight(message))
        return stand_in_for(message)

    def toolset(tools: tuple[Tool, ...]) -> Tool:
        if id(tools) not in places:
            places[id(tools)] = tools_for(str(len(parts.tools)))
            parts.tools.append(tools, weight=_OVERHEAD)
        return places[id(tools)]

    for key, message in trace.messages.items():
        parts.messages.append((key, stand_in(message)), weight=_OVERHEAD)
    for step in bare_steps(trace, stand_in, toolset):
        parts.steps.append(step, weight=_OVERHEAD)
    for tape in parts:
        tape.flush()
    return parts


def _put_together(parts: _Parts) -> Trace:
    blocks, toolsets = dict(parts.blocks), list(parts.tools)
    names = dict(_names(blocks))
    made: dict[str, Message] = {}

    def message(stand_in: Message) -> Message:
        """An action is mostly the message that stands in later contexts."""
        key = names[key_of(stand_in)]
        if key not in made or made[key].records != stand_in.records:
            made[key] = Message(stand_in.role, blocks[key], stand_in.records)
            vars(made[key])["id"] = key  # worked out once already, from all that it says
        return made[key]

    def toolset(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        return toolsets[int(key_of(tools))]

    messages = {names[key]: message(stand_in) for key, stand_in in parts.messages}
    steps = whole_steps((_renamed(step, names) for step in parts.steps), message, toolset, messages)
    bare = parts.bare[0]
    records = {names.get(call, call): record for call, record in bare.result_records.items()}
    return msgspec.structs.replace(bare, messages=messages, steps=steps, result_records=records)


def _names(blocks: Mapping[str, tuple[Block, ...]]) -> Iterator[tuple[str, str]]:
    """Ids of messages and calls. They come from disk once for every place that they stand in, and are kept once."""
    for key, said in blocks.items():
        yield key, key
        yield from ((block.call_id, block.call_id) for block in said if isinstance(block, ToolResult))


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    ids = tuple([names.get(one, one) for one in step.request.messages])
    return msgspec.structs.replace(step, request=msgspec.structs.replace(step.request, messages=ids))


def _weight(message: Message) -> int:
    texts = (len(block.text) for block in message.blocks if isinstance(block, Text | ToolResult))
    return _OVERHEAD + sum(texts)
