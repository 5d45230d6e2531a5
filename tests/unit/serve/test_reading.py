"""Reading a model's text piece by piece: however it is cut, the events are the same."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.message import ToolCall
from postgrad.models.calls import parse_action
from postgrad.serve.engine import Event, TextDelta, ToolCallDone
from postgrad.serve.reading import ActionReader, Characters, StopStrings

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "x<y"}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "neg", "arguments": {}}\n</tool_call>'


def read(pieces: list[str], *, stop: tuple[str, ...] = (), tools: bool = True, cut: bool = False) -> list[Event]:
    reader = ActionReader(stop=stop, parse=parse_action if tools else None)
    events: list[Event] = []
    for piece in pieces:
        events += reader.push(piece)
        if reader.stopped:
            break
    return events + reader.close(cut=cut)[0]


def folded(events: list[Event]) -> tuple[str, list[tuple[str, str]]]:
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [(e.call.name, e.call.arguments_raw) for e in events if isinstance(e, ToolCallDone)]


def cuts(text: str) -> list[list[str]]:
    """Whole, one character a piece, and every cut in two and in three (the latter on a grid)."""
    two = [[text[:i], text[i:]] for i in range(1, len(text))]
    grid = range(1, len(text), max(1, len(text) // 14))
    three = [[text[:i], text[i:j], text[j:]] for i, j in combinations(grid, 2)]
    return [[text], list(text), *two, *three]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Sure.\n{CALL}", ("Sure.", [("add", '{"a": 1, "b": "x<y"}')])),
        (f"{CALL}\n{OTHER}\n", ("", [("add", '{"a": 1, "b": "x<y"}'), ("neg", "{}")])),
        (f"One {CALL} two\n", ("One  two", [("add", '{"a": 1, "b": "x<y"}')])),
        (f"\n{CALL}\nafter", ("after", [("add", '{"a": 1, "b": "x<y"}')])),
        ("a < b <tool_ and <tool_call", ("a < b <tool_ and <tool_call", [])),
        ("  plain text \n", ("  plain text \n", [])),
        ("<tool_call>not json</tool_call> so", ("<tool_call>not json</tool_call> so", [])),
        (CALL.removesuffix("\n</tool_call>"), (CALL.removesuffix("\n</tool_call>"), [])),
    ],
)
def test_any_cut_gives_the_same_text_and_calls(text: str, expected: tuple[str, list[tuple[str, str]]]) -> None:
    """The expected values are read off the text by eye; every way to cut it must give them."""
    for pieces in cuts(text):
        assert folded(read(pieces)) == expected, pieces


def test_text_never_shows_a_part_of_a_tag() -> None:
    """One character at a time, no delta before the call holds any of the tag."""
    deltas = [event.text for event in read(list(f"Sure.{CALL}")) if isinstance(event, TextDelta)]
    assert "".join(deltas) == "Sure."


@pytest.mark.parametrize("length", range(1, len(CALL) - len("</tool_call>") + 11))
def test_a_call_cut_off_is_neither_text_nor_a_call(length: int) -> None:
    """max_tokens inside a call: nothing of it is shown, and what was said is kept apart, wherever the cut is."""
    reader = ActionReader(parse=parse_action)
    events = reader.push("Hi " + CALL[:length])
    last, unfinished = reader.close(cut=True)
    text, calls = folded(events + last)
    assert calls == []
    assert (text.rstrip() + " " + unfinished).rstrip() == ("Hi " + CALL[:length]).rstrip()
    assert "<tool_call>" not in text


def test_without_tools_a_tag_is_text() -> None:
    """A request without tools gets the model's text as it is."""
    assert folded(read(list(CALL), tools=False)) == (CALL, [])


def test_ids_of_two_answers_differ() -> None:
    """Clients join calls of a whole conversation by id."""
    calls = [event.call for _ in range(2) for event in read([CALL + OTHER]) if isinstance(event, ToolCallDone)]
    assert len({call.id for call in calls}) == 4
    assert all(isinstance(call, ToolCall) and json.loads(call.arguments_raw) == call.arguments for call in calls)


@given(st.text("abEND#", max_size=40), st.lists(st.text("abEND#", min_size=1, max_size=4), min_size=1, max_size=3))
def test_stop_strings(text: str, stops: list[str]) -> None:
    """For every cut in two: the text given on is the text before the stop string complete first, no more and no less.

    Also: what is given on before the end is certain, so the deltas only ever grow to a beginning of the result.
    """
    # As if read character by character: the first prefix that ends with a stop string, the longest where several do.
    ends = [end for end in range(len(text) + 1) if text[:end].endswith(tuple(stops))]
    expected = text
    if ends:
        expected = text[: ends[0]].removesuffix(max((s for s in stops if text[: ends[0]].endswith(s)), key=len))
    for cut in range(len(text) + 1):
        reader = StopStrings(stops)
        shown = reader.push(text[:cut])
        assert expected.startswith(shown)
        if not reader.hit:
            shown += reader.push(text[cut:])
        if not reader.hit:
            shown += reader.close()
        assert shown == expected
        assert reader.hit == bool(ends)


@given(st.text(max_size=12))
def test_characters_appear_whole(text: str) -> None:
    """One byte a token, the hardest tokenizer: the deltas join to the text and no delta holds a broken character."""
    characters = Characters(lambda tokens: bytes(tokens).decode("utf-8", "replace"))
    data = text.encode("utf-8", "ignore")
    deltas = [characters.push(byte) for byte in data] + [characters.close()]
    whole = data.decode()
    assert "".join(deltas) == whole
    assert all("\ufffd" not in delta for delta in deltas) or "\ufffd" in whole


@given(st.binary(max_size=24))
def test_broken_bytes_never_stall(data: bytes) -> None:
    """Bytes that are no UTF-8 come out as the decoder shows them; at most three are held at any time."""
    characters = Characters(lambda tokens: bytes(tokens).decode("utf-8", "replace"))
    shown = ""
    for count, byte in enumerate(data, 1):
        shown += characters.push(byte)
        assert len(data[:count].decode("utf-8", "replace")) - len(shown) <= 3
    assert shown + characters.close() == data.decode("utf-8", "replace")
