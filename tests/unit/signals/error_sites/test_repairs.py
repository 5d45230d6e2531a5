"""Mistakes that only the next steps show, by making the same thing again."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Text
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

OK = [("The file a.yml has been updated.", False)]


def edit(id: str, path: str = "/w/a.yml", *, says: str = "") -> Message:
    made = call("Edit", {"file_path": path, "old_string": "x", "new_string": "y"}, id)
    return act(*((Text(says),) if says else ()), made)


def found(builder: TraceBuilder) -> list[tuple[str, str, int]]:
    return [(site.kind, site.verdict, site.step) for site in find_sites(builder.build())]


@pytest.mark.parametrize(
    ("command", "output", "again", "expected"),
    [
        ("app list", "[WARNING] Failed to parse a.yml: mapping values", "/w/a.yml", [("repaired", "real", 0)]),
        ("app list", "[WARNING] Failed to parse a.yml: mapping values", "/w/b.yml", []),
        ("app list", "loaded a.yml: 3 hosts", "/w/a.yml", []),
        ("cat a.yml", "# a.yml: on error: retry", "/w/a.yml", []),
        ("git diff a.yml", "+++ a.yml\n+on error: retry", "/w/a.yml", []),
    ],
)
def test_a_complaint_without_a_failure(command: str, output: str, again: str, expected: list[object]) -> None:
    """The edit of step 0 is to blame where a command complains of its file and the model edits it again."""
    builder = TraceBuilder().step(edit("c0"), OK).step(act(bash(command, "c1")), [(output, False)])
    assert found(builder.step(edit("c2", again), OK)) == expected


@pytest.mark.parametrize(
    ("line", "look", "shown", "expected"),
    [
        ("sed -i 's/port = 1/port = 2/' a.ini", "grep port a.ini", "prot = 1", [("repaired", "real", 0)]),
        ("sed -i 's/port = 1/port = 2/' a.ini", "grep port a.ini", "port = 2", []),
        ("sed -i 's/port = 1/port = 2/' a.ini", "grep port b.ini", "prot = 1", []),
        ("sed -i 's/\\(a\\)1/\\12/' a.ini", "grep port a.ini", "prot = 1", []),
        ("sed 's/port = 1/port = 2/' a.ini", "grep port a.ini", "prot = 1", []),
    ],
)
def test_a_substitution_that_matched_nothing(line: str, look: str, shown: str, expected: list[object]) -> None:
    """The look shows nothing of the new text, and the file is changed again."""
    builder = TraceBuilder().step(act(bash(line, "c0")), [("", False)])
    builder.step(act(bash(look, "c1")), [(shown, False)])
    assert found(builder.step(act(bash("sed -i 's/prot = 1/port = 2/' a.ini", "c2")), [("", False)])) == expected


def test_a_look_after_which_the_file_is_left_alone_shows_nothing() -> None:
    builder = TraceBuilder().step(act(bash("sed -i 's/port = 1/port = 2/' a.ini", "c0")), [("", False)])
    assert found(builder.step(act(bash("grep port a.ini", "c1")), [("prot = 1", False)])) == []


@pytest.mark.parametrize(
    ("says", "path", "expected"),
    [
        ("I accidentally dropped a line.", "/w/a.yml", [("repaired", "real", 0)]),
        ("I accidentally dropped a line.", "/w/b.yml", []),
        ("Now the second place.", "/w/a.yml", []),
    ],
)
def test_an_edit_that_the_model_calls_wrong_and_makes_again(says: str, path: str, expected: list[object]) -> None:
    assert found(TraceBuilder().step(edit("c0"), OK).step(edit("c1", path, says=says), OK)) == expected
