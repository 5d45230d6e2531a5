"""Traces as rows of tables: messages once per group of traces, steps with references to them.

A trace of the store is two things: a row with plain columns and the trace as JSON, in which every message, every list
of tools and every result that stands in a message is a reference; and rows in the table of messages, each once for
all traces of the same group (a row group of the file). A step's context begins mostly as that of the step before: its
first item, ``=N``, stands for the first N of those, so that K steps cost K items and not K times as many.

`Packer` takes traces apart, `unpack` puts one together again, exactly: lone surrogates, NaN and integers beyond 64
bits, which JSON libraries made for speed refuse or change, go through `json`. A trace of any length is taken apart
piece by piece (`trace_json`), and its messages are handed on as they come (`Packer.full`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Block, Message, Opaque, Tool, ToolResult
from postgrad.core.prefix import beginning, common, grown
from postgrad.core.trace import Step, Trace
from postgrad.traces.packing.trace_json import encoded, trace_json
from postgrad.traces.records import counts

T = TypeVar("T")

_REFERENCE = "postgrad:message"
_TOOLS = "tools"  # the role of a row that holds a list of tools
PIECE = 4 << 20
"""Bytes of messages that are handed on together."""

Messages = dict[str, tuple[str, str]]
"""Id -> (role, blocks as JSON)."""


class Packer:
    """Takes the traces of one group apart. `messages` are those not handed on yet, `size` counts all of it in bytes.

    Args:
        full: is given the messages whenever there are `PIECE` bytes of them, each once in the group; without it they
            are all kept.
    """

    def __init__(self, full: Callable[[Messages], None] | None = None) -> None:
        self.messages: Messages = {}
        self.size = self._waiting = 0
        self._full = full
        self._known: set[str] = set()

    def pack(self, trace: Trace) -> dict[str, Any]:
        """The row of a trace; its JSON as UTF-8."""
        used: dict[str, None] = {}

        def stand_in(message: Message) -> Message:
            key = message.id
            used[key] = None
            if key not in self._known:
                self._add(key, message.role, encoded(message.blocks))
            return stand_in_for(message)

        toolsets: dict[int, Tool] = {}

        def toolset(tools: tuple[Tool, ...]) -> Tool:
            """The steps of a trace share one list of tools, mostly the same object."""
            if id(tools) not in toolsets:
                toolsets[id(tools)] = tools_for(self._toolset(tools))
            key = toolsets[id(tools)].description
            used[key] = None
            return toolsets[id(tools)]

        text = trace_json(
            trace,
            lambda: ((key, stand_in(one)) for key, one in trace.messages.items()),
            lambda: bare_steps(trace, stand_in, toolset),
        )
        self.size += len(text)
        return {**columns(trace), "messages": list(used), "trace": text}

    def _toolset(self, tools: tuple[Tool, ...]) -> str:
        text = encoded(tools)
        key = content_id([_TOOLS, text])
        if key not in self._known:
            self._add(key, _TOOLS, text)
        return key

    def _add(self, key: str, role: str, text: str) -> None:
        self._known.add(key)
        self.messages[key] = (role, text)
        self.size += len(text)
        self._waiting += len(text)
        if self._full is not None and self._waiting >= PIECE:
            self._full(self.messages)
            self.messages, self._waiting = {}, 0


def unpack(row: Mapping[str, Any], messages: Mapping[str, tuple[str, str]]) -> Trace:
    """The trace of a row; `messages` are those of its group."""
    trace = decoded(row["trace"], Trace)
    blocks: dict[str, tuple[Block, ...]] = {}
    toolsets: dict[str, tuple[Tool, ...]] = {}

    def message(stand_in: Message) -> Message:
        key = key_of(stand_in)
        if key not in blocks:
            blocks[key] = decoded(messages[key][1], tuple[Block, ...])
        return Message(stand_in.role, blocks[key], stand_in.records)

    def toolset(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        key = key_of(tools)
        if key not in toolsets:
            toolsets[key] = decoded(messages[key][1], tuple[Tool, ...])
        return toolsets[key]

    whole = {key: message(stand_in) for key, stand_in in trace.messages.items()}
    return msgspec.structs.replace(trace, messages=whole, steps=whole_steps(trace.steps, message, toolset, whole))


def stand_in_for(message: Message) -> Message:
    """What stands for a message where it is not told again."""
    return Message(message.role, (Opaque(_REFERENCE, message.id),), message.records)


def tools_for(key: str) -> Tool:
    """What stands for a list of tools."""
    return Tool(_REFERENCE, key)


def key_of(stand_in: Message | tuple[Tool, ...]) -> str:
    """The key of what a message, or the only tool of a list, stands for."""
    if isinstance(stand_in, Message):
        return str(cast(Opaque, stand_in.blocks[0]).raw)
    return stand_in[0].description


def bare_steps(
    trace: Trace, stand_in: Callable[[Message], Message], toolset: Callable[[tuple[Tool, ...]], Tool]
) -> Iterator[Step]:
    """The steps with stand-ins for actions and tools, contexts told by what is new, no result that is in a message."""
    return _shortened(_with(step, stand_in, lambda tools: (toolset(tools),)) for step in _bare(trace))


def whole_steps(
    steps: Iterable[Step],
    message: Callable[[Message], Message],
    toolset: Callable[[tuple[Tool, ...]], tuple[Tool, ...]],
    messages: Mapping[str, Message],
) -> tuple[Step, ...]:
    """The steps that `bare_steps` were made of; `messages` are those of the trace, whole."""
    return tuple(_filled(_with(step, message, toolset), messages) for step in _lengthened(steps))


class _Place(NamedTuple):
    """Where a result stands: in which message, as which of its blocks."""

    message: str
    block: int


def _bare(trace: Trace) -> Iterator[Step]:
    """Steps without the results that a message of the trace holds just so: those are its key and place there."""
    held = {
        block.call_id: _Place(key, place)
        for key, message in trace.messages.items()
        for place, block in enumerate(message.blocks)
        if isinstance(block, ToolResult)
    }

    def bare(result: ToolResult) -> ToolResult:
        at = held.get(result.call_id)
        if at is None or trace.messages[at.message].blocks[at.block] != result:
            return result
        return ToolResult(at.message, str(at.block), provider_id=_REFERENCE)

    for step in trace.steps:
        yield msgspec.structs.replace(step, results=tuple(map(bare, step.results)))


def _filled(step: Step, messages: Mapping[str, Message]) -> Step:
    if not any(result.provider_id == _REFERENCE for result in step.results):
        return step
    return msgspec.structs.replace(step, results=tuple(_whole(result, messages) for result in step.results))


def _whole(result: ToolResult, messages: Mapping[str, Message]) -> ToolResult:
    """What a reference stands for. A source can have written one itself: that is a result as any other."""
    message = messages.get(result.call_id) if result.provider_id == _REFERENCE else None
    if message is None or not (result.text.isdecimal() and int(result.text) < len(message.blocks)):
        return result
    block = message.blocks[int(result.text)]
    return block if isinstance(block, ToolResult) else result


def _shortened(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps whose contexts are told by what is new in them."""
    before: tuple[str, ...] = ()
    for step in steps:
        ids = step.request.messages
        same = common(before, ids)
        yield _with_context(step, (f"={same}", *ids[same:]))
        before = ids


def _lengthened(steps: Iterable[Step]) -> Iterator[Step]:
    before: tuple[str, ...] = ()
    for step in steps:
        same, *new = step.request.messages
        before = grown(beginning(before, int(same[1:])), new)
        yield _with_context(step, before)


def _with_context(step: Step, ids: tuple[str, ...]) -> Step:
    return msgspec.structs.replace(step, request=msgspec.structs.replace(step.request, messages=ids))


def _with(
    step: Step, message: Callable[[Message], Message], toolset: Callable[[tuple[Tool, ...]], tuple[Tool, ...]]
) -> Step:
    """A step with other messages and tools."""
    request = step.request
    if request.tools:
        request = msgspec.structs.replace(request, tools=toolset(request.tools))
    candidates = tuple(msgspec.structs.replace(c, message=message(c.message)) for c in step.candidates)
    return msgspec.structs.replace(step, candidates=candidates, request=request)


def decoded(text: str | bytes | bytearray, type: type[T]) -> T:
    """The value of that type that `encoded` or `trace_json` wrote."""
    try:
        return cast(T, _decoder(cast(Hashable, type)).decode(text))
    except (msgspec.DecodeError, UnicodeError):
        return msgspec.convert(json.loads(text), type)


@lru_cache(maxsize=8)
def _decoder(type: Any) -> Any:
    return msgspec.json.Decoder(type)


def columns(trace: Trace) -> dict[str, Any]:
    """The plain columns of a trace's row."""
    times = sorted(step.time for step in trace.steps if step.time)
    source = trace.source
    return {
        "id": trace.id,
        "format": source.format,
        "path": source.path,
        "source": source.sha256,
        "app": source.app,
        "app_version": source.app_version,
        "parent": trace.parent,
        "task_id": trace.task_id,
        "first_time": times[0] if times else None,
        "last_time": times[-1] if times else None,
        "index": trace.index,
        **counts(trace),
        "models": sorted({c.model for step in trace.steps for c in step.candidates if c.model}),
        "fidelities": sorted({step.request.fidelity for step in trace.steps}),
        "step_keys": _step_keys(trace),
    }


def _step_keys(trace: Trace) -> list[str]:
    """A key per step that two readings of one session share: the action, and how often it was taken before."""
    seen: dict[str, int] = {}
    keys = []
    for step in trace.steps:
        action = step.action.id
        seen[action] = seen.get(action, 0) + 1
        keys.append(content_id([action, seen[action]]))
    return keys
