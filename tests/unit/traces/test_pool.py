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
    one.extend([5, 7], [bytes(32), bytes(range(32))])
    one.extend([1], [bytes(32)])
    one.mark(1, "blank")
    for number, offset, length, digest in ((1, 0, 5, bytes(32)), (2, 5, 7, bytes(range(32))), (3, 12, 1, bytes(32))):
        other.add(number, offset=offset, length=length, digest=digest, status="blank" if number == 2 else "ok")
    one.use_all([(0, "step", "a"), (0, "other", "b")])
    other.use(0, "step", "a")
    for table in (one, other):
        table.use(2, "ui", "c")
    assert one == other
    assert one.settle() is other.settle() is True
    assert list(one) == list(other)
