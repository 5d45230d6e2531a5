"""What a prompt cache may still hold, by who asked what when."""

from __future__ import annotations

from postgrad.core.message import Message
from postgrad.core.trace import Trace
from postgrad.teachers.money.asked import Asked, Beginnings
from postgrad.teachers.money.schedule import Item
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call


def test_the_longest_beginning_that_is_not_too_long_ago() -> None:
    """a b c at 0, a b d at 50; for 60 seconds after the last use, and never before the first."""
    tree = Beginnings()
    tree.add("abc", 0.0)
    tree.add("abd", 50.0)
    found = {at: [tree.before(ids, at, keeps=60.0) for ids in ("abcx", "abdx", "ax", "x")] for at in (-1, 0, 55, 65)}
    assert found == {-1: [0, 0, 0, 0], 0: [3, 2, 1, 0], 55: [3, 3, 1, 0], 65: [2, 3, 1, 0]}
    assert tree.before("abd", 111.0, keeps=60.0) == 0


def _trace(name: str, request: str, steps: int) -> Trace:
    builder = TraceBuilder(request, [WEATHER])
    for number in range(steps):
        builder.step(act(call("get_weather", {"city": "Rome"}, f"c{number}")), [("fine", False)])
    return builder.build(name)


def _items(trace: Trace) -> list[Item]:
    return [Item(trace, step) for step in trace.steps]


def test_a_traces_own_requests_count_also_a_longer_one_that_was_asked_before() -> None:
    """Contexts of 1, 3 and 5 messages. Another run asked the third 10 s ago, so the first and second are held whole."""
    asked, (first, second, third) = Asked(300.0), _items(_trace("x", "go", 3))
    assert asked.before(third, 90.0, earlier_run=True) == 0
    assert [asked.before(one, 100.0, earlier_run=False) for one in (first, second)] == [1, 3]
    assert Asked(5.0).before(third, 90.0, earlier_run=True) == 0


def test_of_other_traces_only_what_is_answered_before_this_one_begins_counts() -> None:
    """Rollouts of two requests with the same tools. The second begins like the first, which is waited for.

    The third is another request's first, and nobody waits for it, so the fourth cannot count on it. Where the third was
    answered in an earlier run, it can.
    """
    for earlier_run, held in ((False, 0), (True, 1)):
        asked = Asked(300.0)
        traces = [_items(_trace(name, request, 2)) for name, request in zip("wxyz", "aabb", strict=True)]
        assert [asked.before(one, 0.0, earlier_run=False) for one in traces[0]] == [0, 1]
        assert asked.before(traces[1][0], 0.0, earlier_run=False) == 1
        assert asked.before(traces[2][0], 0.0, earlier_run=earlier_run) == 0
        assert asked.before(traces[3][0], 1.0, earlier_run=False) == held


def test_without_tools_and_system_text_traces_share_nothing() -> None:
    asked = Asked(300.0)
    for name in ("x", "y"):
        builder = TraceBuilder("go", [])
        builder.step(Message.of("assistant", "gone"), [])
        (item,) = _items(builder.build(name))
        assert asked.before(item, 0.0, earlier_run=True) == 0
