"""Objects on disk: they come back as they were changed last."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message
from postgrad.core.trace import Source, Trace
from postgrad.traces.spool import Index, OnDisk, Spool


def test_objects_keep_their_changes_when_they_go_to_disk_and_back() -> None:
    """With 2 in memory, each of 20 lists is on disk when its turn comes again; three rounds give 0, 1, 2 each."""
    found: OnDisk[list[int]] = OnDisk(warm=2)
    assert [found.append([]) for _ in range(20)] == list(range(20))
    for number in range(3):
        for place in range(20):
            found[place].append(number)
    assert list(found) == [[0, 1, 2]] * 20


def test_a_spool_is_a_sequence_and_keeps_odd_text() -> None:
    spool = Spool()
    for number in range(3):
        message = Message.of("user", f"{number} \ud83d")
        spool.append(Trace(f"t{number}", Source("?", "?"), {message.id: message}, (), index=number))
    traces = spool.closed(Source("p", "f", "sha"))
    assert [trace.id for trace in traces] == ["t0", "t1", "t2"]
    assert traces[-1].source == Source("p", "f", "sha")
    assert [trace.index for trace in traces[1:]] == [1, 2]
    (text,) = [message.text for message in traces[0].messages.values()]
    assert text == "0 \ud83d"
    with pytest.raises(IndexError):
        traces[3]


def test_an_index_finds_by_all_words_together() -> None:
    """("a", "bc") and ("ab", "c") are two keys, as are None and "None"; the last integers that were put count."""
    index = Index()
    keys = [("a", "bc"), ("ab", "c"), (None,), ("None",), ("\ud83d",)]
    for place, key in enumerate(keys):
        index.put(key, place)
    index.put(("a", "bc"), 7, 1)
    assert [index.get(key) for key in keys] == [(7, 1), (1, 0), (2, 0), (3, 0), (4, 0)]
    assert index.get(("abc",)) is None


def test_to_look_at_an_object_writes_nothing() -> None:
    """Ten objects with 2 in memory: 8 were written when they had to go; going through all of them adds none."""
    found: OnDisk[list[int]] = OnDisk(warm=2)
    for number in range(10):
        found.append([number])
    assert len(found._pickles) == 8
    assert [found.look(place) for place in range(10)] == list(found) == [[number] for number in range(10)]
    assert len(found._pickles) == 8
