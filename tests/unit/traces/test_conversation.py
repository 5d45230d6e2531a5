"""The assembler that most agents' readers use."""

from __future__ import annotations

from pathlib import Path

from postgrad.core.message import Message, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.conversation import Action, Conversation

SOURCE = Source("x", "test")


def call(key: str) -> ToolCall:
    return ToolCall.from_raw(id=key, name="t", raw="{}")


def built(talk: Conversation) -> Trace:
    trace = talk.trace(SOURCE, "name")
    assert trace is not None
    return trace


def test_results_stand_behind_their_action_whatever_was_said_between() -> None:
    talk = Conversation()
    talk.tell(Message.of("user", "go"))
    talk.act(Action((call("a"), call("b"))))
    talk.tell(Message.of("user", "hurry"))
    assert talk.answer(ToolResult("b", "B"), record=2)
    assert talk.answer(ToolResult("a", "A"), record=3)
    assert not talk.answer(ToolResult("c", "C"), record=4)
    talk.act(Action((Text("done"),)))
    trace = built(talk)
    words = [m.text or "".join(r.text for r in m.tool_results) or "calls" for m in trace.context(trace.steps[1])]
    assert words == ["go", "calls", "B", "A", "hurry"]
    assert [result.text for result in trace.steps[0].results] == ["A", "B"]
    assert trace.result_records == {"a": 3, "b": 2}


def test_equal_ids_are_answered_in_order_and_named_apart() -> None:
    """W14: every call has the id "0"; so has an empty one."""
    for key in ("0", ""):
        talk = Conversation()
        for turn in range(2):
            talk.act(Action((call(key), call(key))))
            for place in range(2):
                talk.answer(ToolResult(key, f"{turn}{place}"), record=turn)
        trace = built(talk)
        assert [[result.text for result in step.results] for step in trace.steps] == [["00", "01"], ["10", "11"]]
        assert len({c.id for step in trace.steps for c in step.action.tool_calls}) == 4


def test_a_rewind_keeps_what_was_left_as_a_branch() -> None:
    talk = Conversation()
    for number in range(3):
        talk.act(Action((Text(str(number)),), (number,)))
    talk.rewind(1)
    talk.act(Action((Text("new"),), (9,)))
    talk.act(Action((Text("on"),), (10,)))
    trace = built(talk)
    assert [step.abandoned for step in trace.steps] == [False, True, True, False, False]
    assert [step.parent for step in trace.steps] == [None, None, None, 0, None]
    assert [m.text for m in trace.context(trace.steps[4])] == ["0", "new"]


def test_a_regeneration_is_a_candidate_that_was_not_taken() -> None:
    talk = Conversation()
    talk.act(Action((Text("taken"),), (1,)))
    talk.offer(Action((Text("other"),), (2,)))
    (step,) = built(talk).steps
    assert [(c.message.text, c.chosen) for c in step.candidates] == [("taken", True), ("other", False)]
    assert (step.action.text, step.records) == ("taken", (1, 2))


def test_settings_hold_from_where_they_change() -> None:
    talk = Conversation(fidelity="partial", missing=("a",))
    talk.judge(Feedback("early"))
    talk.act(Action((Text("1"),)))
    talk.change(fidelity="exact", missing=())
    talk.act(Action((Text("2"),)))
    talk.log(usage={"n": 1}, stop_reason="end")
    first, second = built(talk).steps
    assert [(s.request.fidelity, s.request.missing) for s in (first, second)] == [("partial", ("a",)), ("exact", ())]
    assert (second.candidates[0].usage, second.candidates[0].stop_reason) == ({"n": 1}, "end")
    assert first.feedback == second.feedback == ()


def test_a_grown_history_without_a_name_keeps_its_id() -> None:
    short, grown = Conversation(), Conversation()
    for talk in (short, grown):
        talk.tell(Message.of("user", "go"))
        talk.act(Action((Text("one"),)))
    grown.act(Action((Text("two"),)))
    one, two = short.trace(SOURCE), grown.trace(Source(str(Path("y")), "test"))
    assert one is not None
    assert two is not None
    assert one.id == two.id
    assert Conversation().trace(SOURCE) is None
