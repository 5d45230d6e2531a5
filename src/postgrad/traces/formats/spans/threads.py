"""`told_next`: what the user said to an answer, where every turn of a conversation is a trace of its own.

Observability tools often begin a trace with each message of the user. What the user then said about the answer stands
only in the context that the next trace begins with; a trace without it does not show whether its answer was right. So
the words are an event at the end of the trace that they are about, with the record that tells them. The traces stay
apart, as their tool has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postgrad.core.message import Message
from postgrad.core.trace import Event, Trace
from postgrad.traces.formats.openai_chat.messages import link_key


def told_next(traces: Sequence[Trace]) -> list[Trace]:
    """The traces, each with the user's next words where a later one begins with them."""
    found = list(traces)
    ends: dict[tuple[str, str], int] = {}
    for at, trace in enumerate(traces):
        if trace.parent is not None or not trace.steps:
            continue
        first = trace.context(trace.steps[0])
        told = _words_after_answer(first)
        if told is not None and (answered := ends.pop(told[0], None)) is not None:
            earlier = found[answered]
            event = Event("user_text", len(earlier.steps), trace.steps[0].records[0], told[1])
            found[answered] = msgspec.structs.replace(earlier, events=(*earlier.events, event))
        last = trace.steps[-1]
        asked = _last_words(trace.context(last))
        if asked is not None and not last.action.tool_calls:
            ends[link_key(asked), link_key(last.action)] = at
    return found


def _words_after_answer(context: Sequence[Message]) -> tuple[tuple[str, str], str] | None:
    """The last answer in a context, with the user's words before it, and what the user said after it."""
    answer = max((at for at, message in enumerate(context) if message.role == "assistant"), default=None)
    if answer is None:
        return None
    asked = _last_words(context[:answer])
    said = [message.text for message in context[answer + 1 :] if message.role == "user" and message.text]
    if asked is None or not said:
        return None
    return (link_key(asked), link_key(context[answer])), "\n\n".join(said)


def _last_words(context: Sequence[Message]) -> Message | None:
    """The user's last message."""
    return next((message for message in reversed(context) if message.role == "user" and message.text), None)
