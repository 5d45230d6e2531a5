"""`Exporter`: what writes traces in one form, and `Losses`: what the form could not carry, counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from postgrad.core.canonical import plain_json, valid_text
from postgrad.core.files import replacing
from postgrad.core.message import Media, Message, Opaque, Reasoning, Text, ToolCall
from postgrad.core.trace import Step, Trace
from postgrad.traces.formats.openai_chat.messages import link_key

Losses = Counter[str]
"""Kind of loss, in plain words -> how many times."""


class Exporter(Protocol):
    """A form of traces."""

    def write(self, traces: Iterable[Trace], path: Path, losses: Losses) -> int:
        """Write `traces` to `path` and count into `losses` what was not carried; the number of rows written.

        Raises:
            MissingDependency: a library that the form needs is not there.
            OutsideFailure: the disk is full or not writable.
        """
        ...


@dataclass(frozen=True)
class Run:
    """Steps of which each goes on from the one before: what a list of messages can hold.

    `actions` are the places among `messages` that are the steps' actions; other assistant messages are context.
    """

    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    actions: frozenset[int]


def runs(trace: Trace) -> Iterator[Run]:
    """A trace cut where a step does not see what the one before it saw and did (compaction, rewind, another branch)."""
    messages: list[Message] = []
    steps: list[Step] = []
    actions: set[int] = set()
    same = Sameness()
    for step in trace.steps:
        context = trace.context(step)
        if steps and not same.goes_on(messages, context):
            yield _run(messages, steps, actions)
            steps, actions = [], set()
        messages = [*context, step.action]
        actions.add(len(context))
        steps.append(step)
    if steps:
        yield _run(messages, steps, actions)


def _run(messages: Sequence[Message], steps: Sequence[Step], actions: Iterable[int]) -> Run:
    """A finished run: no context holds the results of its last step."""
    tail = [Message("tool", (result,)) for result in steps[-1].results]
    return Run((*messages, *tail), tuple(steps), frozenset(actions))


class Sameness:
    """Whether messages are the same but for what clients change when they send an answer back (its thoughts, ids)."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[Message, str]] = {}

    def key(self, message: Message) -> str:
        """Equal for messages that are the same."""
        known = self._keys.get(id(message))
        if known is None:
            known = self._keys[id(message)] = message, link_key(message)
        return known[1]

    def goes_on(self, before: Sequence[Message], context: Sequence[Message]) -> bool:
        """Whether a context begins with these messages."""
        pairs = zip(before, context, strict=False)
        return len(context) >= len(before) and all(self.key(a) == self.key(b) for a, b in pairs)


def count_step(step: Step, losses: Losses) -> None:
    """What hardly any form has a place for."""
    taken = next(candidate for candidate in step.candidates if candidate.chosen and candidate.teacher is None)
    losses["candidates that were not taken"] += len(step.candidates) - 1
    losses["model names"] += taken.model is not None
    losses["stop reasons"] += taken.stop_reason is not None
    losses["usage"] += bool(taken.usage)
    losses["times"] += step.time is not None
    losses["feedback"] += len(step.feedback)
    losses["sampling parameters"] += bool(step.request.params)
    losses["abandoned branches (steps kept, not marked)"] += step.abandoned


def count_results(step: Step, losses: Losses) -> None:
    """Error flags and states of results, and calls that were never answered."""
    losses["error flags"] += sum(result.is_error is not None for result in step.results)
    losses["result states"] += sum(result.status not in ("ok", "error") for result in step.results)
    losses["calls without result"] += len(step.action.tool_calls) - len(step.results)


def count_trace(trace: Trace, losses: Losses) -> None:
    """What belongs to a whole trace."""
    losses["events"] += len(trace.events)
    losses["results without a call"] += len(trace.orphans)
    losses["links to a parent trace"] += trace.parent is not None
    losses["environments"] += bool(trace.environment)


def count_blocks(message: Message, losses: Losses, *, reasoning: bool) -> None:
    """Blocks without a place; `reasoning`: the form has one for thoughts, though not for signatures."""
    for block in message.blocks:
        if isinstance(block, Opaque):
            losses[f"blocks of type {block.type}"] += 1
        elif isinstance(block, Media):
            losses["media without an address"] += block.uri is None
        elif isinstance(block, Reasoning):
            losses["thoughts"] += not reasoning
            losses["thought signatures"] += block.signature is not None or block.encrypted is not None
    kinds = [type(block) for block in message.blocks if isinstance(block, Text | Reasoning | ToolCall)]
    order = {Reasoning: 0, Text: 1, ToolCall: 2}
    losses["order of blocks"] += kinds != sorted(kinds, key=lambda kind: order[kind])


def argument_text(call: ToolCall, losses: Losses) -> str:
    """The argument string, as it was; one that is no JSON but was understood is written anew."""
    again = ToolCall.from_raw(id=call.id, name=call.name, raw=call.arguments_raw)
    if call.arguments is None or again.arguments == call.arguments:
        return call.arguments_raw
    losses["argument strings (written anew as JSON)"] += 1
    return plain_json(call.arguments)


def iso(time: str | None) -> str | None:
    """A time if it is one in ISO form."""
    try:
        datetime.fromisoformat((time or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return time


def write_lines(path: Path, rows: Iterable[object]) -> int:
    """Write JSON lines in one step; the number of lines. Lone surrogates become U+FFFD: the form is UTF-8."""
    count = 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(valid_text(plain_json(valid(row))) + "\n")
            count += 1
    return count


def valid(value: object) -> object:
    """JSON data with every text as UTF-8 can say it."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list | tuple):
        return [valid(item) for item in value]
    return {valid_text(key): valid(item) for key, item in value.items()} if isinstance(value, dict) else value
