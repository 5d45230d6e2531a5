"""JSON that is written piece by piece is what would have been written at once, in each of the three forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from postgrad.core.message import Message, Text, ToolCall
from postgrad.core.trace import Candidate, Event, Request, Source, Step, Trace
from postgrad.traces.packing.packed import decoded
from postgrad.traces.packing.trace_json import encoded, trace_json
from unit.traces.any_trace import traces


def written(trace: Trace) -> str:
    """With the trace's own messages and steps."""
    return trace_json(trace, trace.messages.items, lambda: trace.steps).decode()


def long(*last: Any, count: int = 600, **fields: Any) -> Trace:
    """So many messages and steps, and one more that says what is given: more than two pieces of each."""
    said = [Message.of("user", f"message {number}") for number in range(count)]
    said.append(Message("assistant", (Text("end"), ToolCall("c", "f", "{}", {"last": list(last)}))))
    steps = tuple(Step(place, Request((one.id,)), (Candidate(one),)) for place, one in enumerate(said))
    return Trace("t", Source("p", "f"), {one.id: one for one in said}, steps, **fields)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(traces())
def test_pieces_make_the_whole(trace: Trace) -> None:
    assert written(trace) == encoded(trace)
    assert decoded(written(trace), Trace) == trace


@pytest.mark.parametrize(
    ("last", "form"),
    [
        ((1, "plain", "\u00e9"), lambda value: msgspec.json.encode(value).decode()),
        ((float("nan"), "\u00e9"), lambda value: json.dumps(value, ensure_ascii=False)),
        ((None, "\u00e9"), lambda value: json.dumps(value, ensure_ascii=False)),
        ((float("nan"), "\ud83d"), json.dumps),
        (("\ud83d",), json.dumps),
    ],
)
def test_the_last_piece_decides_the_form_of_all(last: tuple[Any, ...], form: Callable[[Any], str]) -> None:
    """600 messages and steps that any form can say, and then null or NaN, which only `json` tells apart, or a lone
    surrogate, which only escapes can say."""
    trace = long(*last)
    assert written(trace) == encoded(trace) == form(msgspec.to_builtins(trace))
    assert repr(decoded(written(trace), Trace)) == repr(trace)


def test_what_gives_the_pieces_is_asked_once_a_form() -> None:
    """A plain trace is written once, one with null twice, one with a lone surrogate three times."""
    asked: list[str] = []

    def messages() -> Iterable[tuple[str, Message]]:
        asked.append(trace.id)
        return trace.messages.items()

    def steps() -> Iterable[Step]:
        return trace.steps

    for name, last in (("plain", "a"), ("null", None), ("half", "\ud83d")):
        trace = msgspec.structs.replace(long(last), id=name)
        trace_json(trace, messages, steps)
    assert asked == ["plain", "null", "null", "half", "half", "half"]


def test_other_messages_and_steps_stand_in_the_place_of_its_own() -> None:
    trace = long("a")
    short = Message.of("user", "short")
    text = trace_json(trace, lambda: [("key", short)], lambda: trace.steps[:1])
    assert decoded(text, Trace) == msgspec.structs.replace(trace, messages={"key": short}, steps=trace.steps[:1])


@pytest.mark.parametrize("odd", ["plain", "\ud83d"])
@pytest.mark.parametrize("count", [0, 255, 256, 257])
def test_names_that_look_like_the_place_of_the_messages(count: int, odd: str) -> None:
    """What stands before and behind them may quote their very names, in any form."""
    empty = '"messages":{},"steps":[]'
    events = (Event("note", 0, 1, empty, {empty: odd}),)
    source = Source(empty.replace(":", ": ").replace(",", ", "), empty, app=odd)
    trace = Trace(empty, source, {}, (), events=events)
    filled = long(count=count, events=events)
    for one in (trace, msgspec.structs.replace(filled, id=empty, source=source)):
        assert written(one) == encoded(one)
        assert decoded(written(one), Trace) == one
