"""Messages by content id, calls by their ids, records in columns: the short ways give what the long ones give."""

from __future__ import annotations

from postgrad.core.message import Message, Text, ToolCall
from postgrad.traces.pool import CallIds, MessagePool
from postgrad.traces.records import RecordTable

CALL = ToolCall("c", "tool", "{}", {})


def test_a_message_of_several_records_is_kept_once_with_all_of_them() -> None:
    pool = MessagePool()
    first, again = Message("user", (Text("a"),), (3,)), Message("user", (Text("a"),), (1,))
    assert pool.add(first) == pool.add(again) == pool.add(first)
    assert [message.records for message in pool.messages.values()] == [(1, 3)]


def test_an_id_that_comes_again_after_its_answer_is_another_call() -> None:
    ids = CallIds()
    names = []
    for place in (1, 3):
        names.append(ids.unique(CALL, place=place).id)
        assert ids.answered("c", place=place + 1) == names[-1]
        assert ids.answered("c", place=place + 1) is None
    assert names == ["c", "c~2"]


def test_records_one_behind_the_other_are_as_if_added_one_by_one() -> None:
    one, other = RecordTable(), RecordTable()
    enter = one.entering()
    enter(5, bytes(32), "ok")
    enter(7, bytes(range(32)), "blank")
    other.add(1, offset=0, length=5, digest=bytes(32), status="ok")
    other.add(2, offset=5, length=7, digest=bytes(range(32)), status="blank")
    one.use_all([(0, "step", "a"), (0, "other", "b")])
    other.use(0, "step", "a")
    assert one == other
    assert one.settle() is other.settle() is True
    assert list(one) == list(other)
