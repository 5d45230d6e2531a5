"""Progress goes to stderr, in lines when that is no terminal, and never changes what is iterated."""

from __future__ import annotations

import io
import sys
import time

import pytest

from postgrad.core.pulse import beat
from postgrad.run import progress
from postgrad.run.progress import track


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    assert list(track([5, 6], "rolling out")) == [5, 6]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "rolling out: 1/2, 0 s\nrolling out: 2/2, 0 s\n"


def test_a_short_loop_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track(iter("ab"), "x", total=2)) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal_and_none_inside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    pairs = [(a, b) for a in track(range(2), "outer") for b in track(range(2), "inner")]
    assert pairs == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert "outer" in terminal.getvalue()
    assert "inner" not in terminal.getvalue()


def test_what_was_there_before_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps 3 and 4 of 4 after a resume."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(track(range(2), "train", total=4, done=2)) == [0, 1]
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == ["train: 3/4", "train: 4/4"]


def test_one_long_item_is_no_silence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches of 3 and 2 rows; the first tells of itself while it is worked on. Outside nobody hears."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    for batch in track(["abc", "de"], "evaluate x", size=len):
        if batch == "abc":
            beat(0.5, "1 of 3 answers")
    beat(0.9, "unheard")
    assert capsys.readouterr().err.splitlines() == [
        "evaluate x: 0/5, 0 s; now 1 of 3 answers",
        "evaluate x: 3/5, 0 s",
        "evaluate x: 5/5, 0 s",
    ]


def test_the_bar_shows_it_too_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a batch of 4 is 2 of 8 rows; the words are whole, however long the description."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    words = "2 of 4 answers, at token 17 of at most 64"
    for batch in track(["abcd", "efgh"], "evaluate function_calling/heldout@constrained", size=len):
        if batch == "abcd":
            beat(0.5, words)
            time.sleep(0.3)  # rich draws ten times a second
    assert words in terminal.getvalue()
    assert "2/8" in terminal.getvalue()
