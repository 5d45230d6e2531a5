"""Traces as rows of tables: messages once per group of traces, steps with references to them.

A trace of the store is two things: a row with plain columns and the trace as JSON, in which every message, every list
of tools and every result that stands in a message is a reference; and rows in the table of messages, each once for
all traces of the same group (a row group of the file). A step's context begins mostly as that of the step before: its
first item, ``=N``, stands for the first N of those, so that K steps cost K items and not K times as many.

`Packer` takes traces apart, `unpack` puts one together again, exactly: lone surrogates, NaN and integers beyond 64
bits, which JSON libraries made for speed refuse or change, go through `json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from postgrad.core.canonical import content_id, holds_null, plain_json
from postgrad.core.message import Block, Message, Opaque, Tool, ToolResult
from postgrad.core.prefix import beginning, common, grown
from postgrad.core.trace import Step, Trace
from postgrad.traces.records import counts

T = TypeVar("T")

_REFERENCE = "postgrad:message"
_TOOLS = "tools"  # the role of a row that holds a list of tools


class Packer:
    """Takes the traces of one group apart. `messages`: id -> (role, blocks as JSON), each once; `size` in bytes."""

    def __init__(self) -> None:
        self.messages: dict[str, tuple[str, str]] = {}
        self.size = 0

    def pack(self, trace: Trace) -> dict[str, Any]:
        """The row of a trace."""
        used: dict[str, None] = {}

        def stand_in(message: Message) -> Message:
            key = message.id
            used[key] = None
            if key not in self.messages:
                self._add(key, message.role, encoded(message.blocks))
            return Message(message.role, (Opaque(_REFERENCE, key),), message.records)

        toolsets: dict[int, Tool] = {}

        def toolset(tools: tuple[Tool, ...]) -> Tool:
            """The steps of a trace share one list of tools, mostly the same object."""
            if id(tools) not in toolsets:
                toolsets[id(tools)] = Tool(_REFERENCE, self._toolset(tools))
            key = toolsets[id(tools)].description
            used[key] = None
            return toolsets[id(tools)]

        packed = msgspec.structs.replace(
            trace,
            messages={key: stand_in(message) for key, message in trace.messages.items()},
            steps=_shortened(_with(step, stand_in, lambda tools: (toolset(tools),)) for step in _bare(trace)),
        )
        text = encoded(packed)
        self.size += len(text)
        return {**columns(trace), "messages": list(used), "trace": text}

    def _toolset(self, tools: tuple[Tool, ...]) -> str:
        text = encoded(tools)
        key = content_id([_TOOLS, text])
        if key not in self.messages:
            self._add(key, _TOOLS, text)
        return key

    def _add(self, key: str, role: str, text: str) -> None:
        self.messages[key] = (role, text)
        self.size += len(text)


def unpack(row: Mapping[str, Any], messages: Mapping[str, tuple[str, str]]) -> Trace:
    """The trace of a row; `messages` are those of its group."""
    trace = decoded(row["trace"], Trace)
    blocks: dict[str, tuple[Block, ...]] = {}
    toolsets: dict[str, tuple[Tool, ...]] = {}

    def message(stand_in: Message) -> Message:
        key = cast(Opaque, stand_in.blocks[0]).raw
        if key not in blocks:
            blocks[key] = decoded(messages[key][1], tuple[Block, ...])
        return Message(stand_in.role, blocks[key], stand_in.records)

    def toolset(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        key = tools[0].description
        if key not in toolsets:
            toolsets[key] = decoded(messages[key][1], tuple[Tool, ...])
        return toolsets[key]

    whole = {key: message(stand_in) for key, stand_in in trace.messages.items()}
    steps = tuple(_filled(_with(step, message, toolset), whole) for step in _lengthened(trace.steps))
    return msgspec.structs.replace(trace, messages=whole, steps=steps)


def _bare(trace: Trace) -> Iterator[Step]:
    """Steps without the results that a message of the trace holds just so: those are its key and place there."""
    held = {
        block.call_id: (block, ToolResult(key, str(place), provider_id=_REFERENCE))
        for key, message in trace.messages.items()
        for place, block in enumerate(message.blocks)
        if isinstance(block, ToolResult)
    }
    for step in trace.steps:
        pairs = [(result, held.get(result.call_id, (None, result))) for result in step.results]
        results = tuple([reference if same == result else result for result, (same, reference) in pairs])
        yield msgspec.structs.replace(step, results=results)


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


def _shortened(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Steps whose contexts are told by what is new in them."""
    before: tuple[str, ...] = ()
    found = []
    for step in steps:
        ids = step.request.messages
        same = common(before, ids)
        found.append(_with_context(step, (f"={same}", *ids[same:])))
        before = ids
    return tuple(found)


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


def encoded(value: object) -> str:
    """JSON of structs and plain data, from which `decoded` gives an equal value."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return plain_json(msgspec.to_builtins(value))
    # msgspec writes NaN and infinities as null.
    return plain_json(msgspec.to_builtins(value)) if holds_null(data) else data.decode()


def decoded(text: str, type: type[T]) -> T:
    """The value of that type that `encoded` wrote."""
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
