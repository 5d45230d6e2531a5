"""A trace taken apart into rows and put together again is the same trace, whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgrad.core.message import Message, Text, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Request, Source, Step, Trace
from postgrad.traces.packing import packed
from postgrad.traces.packing.packed import Messages, Packer, unpack
from unit.traces.any_trace import traces


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


def test_messages_are_handed_on_piece_by_piece_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 250 bytes. A message is 127 (100 letters and 27 of JSON), so two are a piece: of the two actions
    and five messages in the pool, the first of which the second trace says again, 6 go in three pieces, and 1 waits."""
    monkeypatch.setattr(packed, "PIECE", 250)
    pieces: list[Messages] = []
    packer = Packer(pieces.append)
    pool = [Message.of("user", f"{number}" * 100) for number in range(5)]
    first, second = (
        Trace(
            f"t{name}",
            Source("p", "f"),
            {one.id: one for one in some},
            (Step(0, Request(tuple(one.id for one in some)), (Candidate(Message.of("assistant", name * 100)),)),),
        )
        for name, some in (("a", pool[:3]), ("b", [pool[0], *pool[3:]]))
    )
    rows = [packer.pack(first), packer.pack(second)]
    assert [len(piece) for piece in pieces] == [2, 2, 2]
    assert len(packer.messages) == 1
    whole = {key: value for piece in (*pieces, packer.messages) for key, value in piece.items()}
    assert len(whole) == 7, "none came twice"
    assert [unpack(row, whole) for row in rows] == [first, second]
    assert packer.size == sum(len(text) for _, text in whole.values()) + sum(len(row["trace"]) for row in rows)


def test_nan_is_no_null() -> None:
    """Equal to nothing, so compared as text."""
    arguments: dict[str, Any] = {"a": float("nan"), "b": None, "c": float("-inf")}
    message = Message("assistant", (ToolCall("c", "f", "{}", arguments),))
    trace = Trace("t", Source("p", "f"), {}, (Step(0, Request(()), (Candidate(message),)),))
    packer = Packer()
    assert repr(unpack(packer.pack(trace), packer.messages)) == repr(trace)
    other = Message("assistant", (ToolCall("c", "f", "{}", {"a": None, "b": None, "c": float("-inf")}),))
    assert message.id != other.id
