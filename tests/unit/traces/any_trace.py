"""Traces with anything in them, for properties: lone surrogates, big integers, empty names, texts like "null"."""

from __future__ import annotations

from hypothesis import strategies as st

from postgrad.core.message import Block, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace

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
