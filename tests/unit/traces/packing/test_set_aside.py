"""Traces set aside on disk are the traces that were given, exactly, as often as they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgrad.core.message import Message, Text, Tool, ToolCall, ToolResult
from postgrad.core.prefix import LONG, Prefix
from postgrad.core.trace import Candidate, Request, Source, Step, Trace
from postgrad.traces.packing import spool
from postgrad.traces.packing.set_aside import SetAside
from postgrad.traces.readers import read
from postgrad.traces.sources import ledger
from unit.traces.any_trace import traces
from unit.traces.formats.claude_file import ClaudeFile, call

ODD: dict[str, Any] = {"nan": float("nan"), "endless": float("-inf"), "big": 2**80, "half": "\ud83d", "null": None}


def step(index: int, *context: Message, action: Message, **fields: Any) -> Step:
    return Step(index, Request(tuple(one.id for one in context), **fields), (Candidate(action),))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(traces(), max_size=3))
def test_setting_aside_loses_nothing(given_: list[Trace]) -> None:
    aside = SetAside(given_)
    assert len(aside) == len(given_)
    assert list(aside) == list(aside) == given_
    assert list(aside[1:]) == given_[1:]
    assert [aside[place] for place in range(-len(given_), len(given_))] == given_ * 2


def test_odd_values_come_back_exactly() -> None:
    """NaN is equal to nothing, so compared as text."""
    action = Message("assistant", (Text("\ud83d"), ToolCall("c", "f", "{}", ODD)))
    trace = Trace("t", Source("p", "f"), {}, (step(0, action=action, params={"temperature": float("nan")}),))
    (back,) = SetAside([trace])
    assert repr(back) == repr(trace)


def test_ids_are_those_of_what_is_said() -> None:
    """They are handed on and not worked out again, so they are compared with those of equal new messages."""
    said, action = Message.of("user", "hi"), Message("assistant", (Text("\ud83d"), ToolCall("c", "f", "{}", ODD)))
    (back,) = SetAside([Trace("t", Source("p", "f"), {said.id: said}, (step(0, said, action=action),))])
    messages = [*back.messages.values(), back.steps[0].action]
    assert [one.id for one in messages] == [Message(one.role, one.blocks).id for one in messages]
    assert back.steps[0].action.id == action.id


def test_an_action_that_stands_in_later_contexts_is_one_message() -> None:
    """It was one object before; where its records differ from those in the pool, both are kept."""
    ask, same = Message.of("user", "hi"), Message("assistant", (Text("yes"),), (1,))
    other = Message("assistant", (Text("no"),), (2,))
    pooled = Message("assistant", (Text("no"),), (2, 7))
    pool = {one.id: one for one in (ask, same, pooled)}
    steps = (step(0, ask, action=same), step(1, ask, same, action=other), step(2, ask, same, other, action=ask))
    (back,) = SetAside([Trace("t", Source("p", "f"), pool, steps)])
    assert back.steps[0].action is back.messages[same.id]
    assert [back.steps[1].action.records, back.messages[other.id].records] == [(2,), (2, 7)]


def test_steps_share_their_tools_and_results_their_texts() -> None:
    """Two steps with one list of tools, a third with an equal one of its own; a result that stands in the pool."""
    tools = (Tool("f", "does", {"type": "object"}),)
    result = ToolResult("c", "x" * 1000)
    message = Message("tool", (result,))
    action = Message.of("assistant", "go")
    first = msgspec.structs.replace(step(0, message, action=action, tools=tools), results=(result,))
    second = step(1, message, action=action, tools=tools)
    third = step(2, message, action=action, tools=(Tool("f", "does", {"type": "object"}),))
    trace = Trace("t", Source("p", "f"), {message.id: message}, (first, second, third))
    (back,) = SetAside([trace])
    assert back == trace
    assert back.steps[0].request.tools is back.steps[1].request.tools
    assert back.steps[0].results[0] is back.messages[message.id].blocks[0]


def test_long_contexts_share_one_list() -> None:
    """Steps beyond `LONG` ids are views of one list again."""
    pool = [Message.of("user", str(number)) for number in range(LONG + 5)]
    action = Message.of("assistant", "go")
    steps = tuple(step(at, *pool[: LONG + at], action=action) for at in range(5))
    (back,) = SetAside([Trace("t", Source("p", "f"), {one.id: one for one in pool}, steps)])
    contexts = [one.request.messages for one in back.steps]
    assert all(isinstance(ids, Prefix) for ids in contexts)
    assert len({id(ids.items) for ids in contexts if isinstance(ids, Prefix)}) == 1
    assert [len(ids) for ids in contexts] == [LONG + at for at in range(5)]


def test_a_large_source_is_read_as_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file with its size above the limit and below it; pieces of 500 bytes, so that there are many."""
    file = ClaudeFile()
    file.user("go \ud83d")
    for number in range(40):
        file.assistant(f"m{number}", call(f"t{number}", command=f"echo {number}"))
        file.result(f"t{number}", "done " * number)
    small = read(file.write(tmp_path / "s.jsonl"))
    monkeypatch.setattr(ledger, "LARGE", 1000)
    monkeypatch.setattr(spool.Tape.__init__, "__kwdefaults__", {"piece": 500})
    large = read(tmp_path / "s.jsonl")
    assert isinstance(small.traces, tuple)
    assert isinstance(large.traces, SetAside)
    assert tuple(large.traces) == small.traces
    assert len(large.traces._parts[0].steps._pickles) > 10
