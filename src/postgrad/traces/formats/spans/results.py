"""Which result belongs to which call: from what later calls were shown, and from the spans of the tools themselves.

A later context is what the model saw, so its text is the result; a tool's span adds whether the run failed, and stands
in where no later call shows a result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from postgrad.core.message import Message, ToolCall, ToolResult
from postgrad.traces.formats.openai_chat.messages import link_key
from postgrad.traces.formats.shapes.plain import opened
from postgrad.traces.formats.spans.span import Span

Found = dict[str, tuple[ToolResult, int]]
"""By call id: the result and the record that shows it."""


class Runs:
    """The tools' own spans, each given to one call: by call id, else by name and arguments, else by name, in order."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._waiting = sorted((span for span in spans if span.tool is not None), key=lambda span: span.start)

    @property
    def unused(self) -> list[Span]:
        """Runs that no call in the log asked for."""
        return self._waiting

    def take(self, call: ToolCall, *, after: float) -> Span | None:
        """The run of a call made at `after`."""
        own = call.provider_id or call.id
        later = [span for span in self._waiting if not after or not span.start or span.start >= after]
        named = [span for span in later if span.tool is not None and span.tool.name == call.name]
        asked = [span for span in named if span.tool is not None and opened(span.tool.arguments) == call.arguments]
        same = [span for span in self._waiting if span.tool is not None and span.tool.call_id == own]
        free = [span for span in (*asked, *named) if span.tool is not None and not self._others(span, own)]
        found = next(iter([*same, *free]), None)
        if found is not None:
            self._waiting = [span for span in self._waiting if span is not found]
        return found

    def _others(self, span: Span, id: str) -> bool:
        """Whether a run names another call; some tracers make up an id that the call's answer does not have."""
        key = span.tool.call_id if span.tool is not None else ""
        return bool(key) and key != id and not _made_up(id)


def _made_up(id: str) -> bool:
    return not id or id.startswith("~")


def shown(contexts: Sequence[tuple[list[Message], int]], actions: Sequence[Message]) -> list[Found]:
    """For every action of a trace the results that later contexts show.

    Args:
        contexts: the messages and the record number of each call, in order.
        actions: the answers, in the same order.
    """
    by_id, first_seen = _by_provider_id(contexts)
    times = Counter(_key(call) for action in actions for call in action.tool_calls)
    found: list[Found] = []
    for step, action in enumerate(actions):
        own: Found = {}
        unclear = False
        for call in action.tool_calls:
            key = _key(call)
            result = by_id.get(key) if times[key] == 1 and not _made_up(key) else None
            if result is not None and first_seen[key] > step:
                own[call.id] = (msgspec.structs.replace(result[0], call_id=call.id), result[1])
            else:
                unclear = True
        here = len(contexts[step][0])
        found.append(own | _behind(action, contexts[step + 1 :], here=here) if unclear else own)
    return found


def _key(call: ToolCall) -> str:
    return call.provider_id if call.provider_id is not None else call.id


def _by_provider_id(contexts: Sequence[tuple[list[Message], int]]) -> tuple[Found, dict[str, int]]:
    results: Found = {}
    first_seen: defaultdict[str, int] = defaultdict(int)
    for place, (messages, record) in enumerate(contexts):
        for message in messages:
            for result in message.tool_results:
                key = result.provider_id or result.call_id
                if key not in results:
                    results[key] = (result, record)
                    first_seen[key] = place
    return results, first_seen


def _behind(action: Message, later: Sequence[tuple[list[Message], int]], *, here: int) -> Found:
    """Results that stand behind the same answer in the first later context that has it.

    Equal answers can stand there several times: the one at the place `here`, where this one was given, is asked first.
    """
    wanted = link_key(action)
    for messages, record in later:
        for place in [*range(here, len(messages)), *range(min(here, len(messages)))]:
            message = messages[place]
            if message.role != "assistant" or not message.tool_calls or link_key(message) != wanted:
                continue
            ours = dict(zip((c.id for c in message.tool_calls), (c.id for c in action.tool_calls), strict=False))
            return {
                ours[result.call_id]: (msgspec.structs.replace(result, call_id=ours[result.call_id]), record)
                for after in messages[place + 1 :]
                for result in after.tool_results
                if result.call_id in ours
            }
    return {}
