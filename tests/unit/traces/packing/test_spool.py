"""What a reader holds on disk: objects come back as they were changed last, tapes and spools in their order."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message
from postgrad.core.trace import Source, Trace
from postgrad.traces.packing.spool import Index, OnDisk, Spool, Tape


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


def taped(count: int, *, piece: int = 30) -> Tape[str]:
    """Items "0", "1", ... of weight 10, so three to a piece."""
    tape: Tape[str] = Tape(piece=piece)
    for number in range(count):
        tape.append(str(number), weight=10)
    return tape


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 8, 9])
def test_a_tape_is_the_list_of_what_came(count: int) -> None:
    """On both sides of the ends of pieces: length, order, every place from either end, and none beyond."""
    tape, expected = taped(count), [str(number) for number in range(count)]
    assert len(tape) == count
    assert list(tape) == list(tape) == expected
    assert [tape[place] for place in range(-count, count)] == expected * 2
    for place in (count, -count - 1):
        with pytest.raises(IndexError):
            tape[place]


def test_a_tape_holds_one_piece_and_what_came_last() -> None:
    """8 items, three to a piece: two pieces lie on disk, "6" and "7" wait in memory."""
    tape = taped(8)
    assert (len(tape._pickles), tape._last) == (2, ["6", "7"])
    assert (tape[1], tape._read) == ("1", (0, ["0", "1", "2"]))
    assert (tape[5], tape._read) == ("5", (1, ["3", "4", "5"]))


def test_a_heavy_item_is_a_piece_of_its_own() -> None:
    tape = taped(1)
    tape.append("heavy", weight=1000)
    tape.append("light", weight=1)
    assert (len(tape._pickles), tape._last) == (1, ["light"])
    assert list(tape) == ["0", "heavy", "light"]


def test_a_flushed_tape_goes_on() -> None:
    """To flush is to begin a new piece; an empty one changes nothing."""
    tape = taped(4)
    tape.flush()
    tape.flush()
    assert tape._last == []
    tape.append("4", weight=10)
    assert list(tape) == [tape[place] for place in range(5)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("part", [slice(2, 7), slice(None, None, -1), slice(-3, None), slice(7, 2), slice(1, 9, 3)])
def test_a_slice_of_a_tape_is_what_a_list_would_give(part: slice) -> None:
    """And a slice of that again; it is a view, so it finds places and ends as a list does."""
    tape, expected = taped(9), [str(number) for number in range(9)]
    found, wanted = tape[part], expected[part]
    assert (len(found), list(found), list(found[1:])) == (len(wanted), wanted, wanted[1:])
    assert [found[place] for place in range(-len(wanted), len(wanted))] == wanted * 2
    with pytest.raises(IndexError):
        found[len(wanted)]


def test_what_fits_into_memory_is_a_plain_list() -> None:
    """Two of three items: a list. Three: a piece is on disk, and the tape itself is what there is."""
    small, large = taped(2), taped(3)
    assert (type(small.plain), list(small.plain)) == (list, ["0", "1"])
    assert large.plain is large


def test_two_can_go_through_a_tape_at_the_same_time() -> None:
    tape = taped(8)
    assert [(one, other) for one in tape for other in tape] == [(str(a), str(b)) for a in range(8) for b in range(8)]
