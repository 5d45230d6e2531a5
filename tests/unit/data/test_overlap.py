"""Overlap of a training set with a benchmark, on sentences written by hand."""

from __future__ import annotations

import pytest

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Tool
from postgrad.core.task import Task
from postgrad.data import overlap
from postgrad.data.overlap import Overlap, OverlapReport

LONG = "please tell me how far the moon is from the earth today"


def task(id: str, request: str, *tools: str) -> Task:
    system = Message.of("system", "You call functions, one two three four five six seven eight.")
    return Task(id, (system, Message.of("user", request)), "g", tuple(Tool(name) for name in tools))


def found(mine: str, theirs: str, ngram: int = 8, near: float = 1.0) -> list[tuple[str, str]]:
    report = overlap([task("a", mine)], [task("b", theirs)], ngram=ngram, near=near)
    return [(finding.kind, finding.evidence) for finding in report.findings]


def test_nothing_in_common() -> None:
    """The system message is the same in both, and does not count."""
    report = overlap([task("a", LONG, "moon")], [task("b", "Convert 5 euros to yen", "convert")])
    assert report == OverlapReport(1, 1, 8, 0.7, ())
    assert report.clean
    assert report.counts == {"name": 0, "sequence": 0, "near": 0}


def test_a_shared_tool_name() -> None:
    report = overlap([task("a", LONG, "x", "f.g"), task("c", "hi")], [task("b", "Hello", "f.g")])
    assert report.findings == (Overlap("name", "a", "b", "f.g"),)
    assert report.counts == {"name": 1, "sequence": 0, "near": 0}
    assert not report.clean


def test_eight_words_in_a_row_and_seven() -> None:
    """ "how far the moon is from the earth" are eight words; without "earth" seven."""
    eight = "I ask: HOW far the moon is, from the EARTH?"
    assert found(LONG, eight) == [("sequence", "how far the moon is from the earth")]
    assert found(eight, LONG) == found(LONG, eight)
    assert found(LONG, "I ask: how far the moon is from the sun?") == []


def test_numbers_count_in_sequences() -> None:
    text = "Add 3 and 4 and then take 5 away"
    assert found(text, text)[0][0] == "sequence"
    assert found(text, text.replace("4", "6")) == [("near", "1.00")]


def test_a_short_request_counts_as_a_whole() -> None:
    """Five words that stand in the other text, on either side; three are too few; parts of it do not count."""
    short = "how far the moon is"
    assert found(LONG, short) == found(short, LONG) == [("sequence", short)]
    assert found("the moon is", LONG) == []
    assert found("how far the moon was", LONG) == []
    assert ("sequence", short) in found(short, short)


def test_near_duplicates_by_hand() -> None:
    """Word triples: "add 0 to the list" has 3, "add 0 to the queue" has 3; 2 of 4 are shared: 0.5."""
    pair = ("Add 12 to the list", "Add 7 to the queue")
    assert found(*pair, near=0.5) == [("near", "0.50")]
    assert found(*pair, near=0.51) == []


def test_every_pair_is_told_once() -> None:
    report = overlap([task("a1", LONG), task("a2", LONG)], [task("b1", LONG), task("b2", LONG)], near=1.0)
    pairs = [(f.kind, f.training, f.benchmark) for f in report.findings]
    assert len(pairs) == len(set(pairs)) == 8
    assert report.counts == {"name": 0, "sequence": 2, "near": 2}


@pytest.mark.parametrize("settings", [{"ngram": 3}, {"near": 0.0}, {"near": 1.1}])
def test_settings_out_of_range(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="ngram >= 4 and 0 < near <= 1"):
        overlap([], [], **settings)  # type: ignore[arg-type]
