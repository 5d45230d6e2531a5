"""A trace taken apart into rows and put together again is the same trace, whatever is in it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgrad.core.message import Block, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace
from postgrad.traces.packed import Packer, unpack

ANY_TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(["\ud83d", "null", "NaN", ""])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=4,
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    ANY_TEXT.map(Text),
    st.builds(Reasoning, ANY_TEXT, st.none() | ANY_TEXT),
    st.builds(ToolCall, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.none() | st.dictionaries(ANY_TEXT, DATA, max_size=2)),
    st.builds(ToolResult, ANY_TEXT, ANY_TEXT, st.sampled_from([None, True, False])),
    st.builds(Opaque, ANY_TEXT, DATA),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(BLOCKS, max_size=3).map(tuple),
    st.lists(st.integers(0, 99), max_size=2).map(tuple),
)
TOOLS = st.lists(st.builds(Tool, ANY_TEXT, ANY_TEXT, st.dictionaries(ANY_TEXT, DATA, max_size=2)), max_size=2).map(
    tuple
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    pool = {message.id: message for message in draw(st.lists(MESSAGES, max_size=4))}
    steps = tuple(
        Step(
            index,
            Request(
                tuple(draw(st.permutations([*pool, *pool]))[: draw(st.integers(0, 8))]),
                draw(TOOLS),
                draw(st.dictionaries(ANY_TEXT, DATA, max_size=2)),
            ),
            tuple(map(Candidate, draw(st.lists(MESSAGES, min_size=1, max_size=2)))),
            feedback=(Feedback("score", draw(st.floats(allow_nan=False)), draw(ANY_TEXT)),),
        )
        for index in range(draw(st.integers(0, 3)))
    )
    events = (Event("note", 0, 1, draw(ANY_TEXT), {"data": draw(DATA)}),)
    return Trace(draw(ANY_TEXT), Source("p", "f"), pool, steps, events=events)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(traces(), max_size=2))
def test_packing_loses_nothing(group: list[Trace]) -> None:
    packer = Packer()
    rows = [packer.pack(trace) for trace in group]
    assert [unpack(row, packer.messages) for row in rows] == group
    used = {key for row in rows for key in row["messages"]}
    assert used == packer.messages.keys(), "the table holds what the rows name and nothing else"


def test_a_result_that_stands_in_a_message_is_kept_once() -> None:
    """Of two results one is in the pool just so: its 5000 letters are in the table and not in the row; one differs."""
    same, other = ToolResult("a", "x" * 5000, False), ToolResult("b", "y", True)
    forged = ToolResult("nobody", "0", provider_id="postgrad:message")
    message = Message("tool", (Text("seen"), same))
    pool = {message.id: message, "two": Message("tool", (ToolResult("b", "z", True),))}
    step = Step(0, Request((message.id,)), (Candidate(Message.of("assistant", "go")),), results=(same, other, forged))
    trace = Trace("t", Source("p", "f"), pool, (step,))
    packer = Packer()
    row = packer.pack(trace)
    assert b"xxx" not in row["trace"]
    assert unpack(row, packer.messages) == trace


def test_nan_is_no_null() -> None:
    """Equal to nothing, so compared as text."""
    arguments: dict[str, Any] = {"a": float("nan"), "b": None, "c": float("-inf")}
    message = Message("assistant", (ToolCall("c", "f", "{}", arguments),))
    trace = Trace("t", Source("p", "f"), {}, (Step(0, Request(()), (Candidate(message),)),))
    packer = Packer()
    assert repr(unpack(packer.pack(trace), packer.messages)) == repr(trace)
    other = Message("assistant", (ToolCall("c", "f", "{}", {"a": None, "b": None, "c": float("-inf")}),))
    assert message.id != other.id
