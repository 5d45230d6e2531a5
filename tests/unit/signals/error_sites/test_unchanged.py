"""Edits that went well and changed nothing, or broke the file."""

from __future__ import annotations

import pytest

from postgrad.core.message import ToolCall
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

EDIT = call("replace", {"file_path": "a.py", "old_string": "x", "new_string": "y"})


@pytest.mark.parametrize(
    ("made", "text", "found"),
    [
        (EDIT, "Successfully modified file: a.py (0 replacements).", ["no_effect"]),
        (EDIT, "Successfully modified file: a.py (10 replacements).", []),
        (bash("python add.py --name b a.yaml"), "No changes made: key 'c' not found\n0 files updated", ["no_effect"]),
        (bash("python add.py --name b a.yaml"), "1 file updated", []),
        (bash("python count.py"), "\n".join(f"{n} rows, nothing changed" for n in range(9)), []),  # a report
        (bash("black ."), "All done!\n0 files changed, 5 files left unchanged.", []),  # nothing to do is good news
        (bash("cat add.log"), "0 files updated", []),
    ],
)
def test_what_counts_none_changed(made: ToolCall, text: str, found: list[str]) -> None:
    trace = TraceBuilder().step(act(made), [(text, False)]).build()
    assert [site.kind for site in find_sites(trace)] == found


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("- [PHP Error] Line 2: syntax error, unexpected token", ["invalid_call"]),
        ("- [ts Error] Line 9: ';' expected.", ["invalid_call"]),
        ("- [ts Error] Line 9: Cannot find name 'later'.", []),  # what is still to be written
        ("- [eslint Warning] Line 9: Unexpected token style", []),
    ],
)
def test_an_edit_after_which_the_file_cannot_be_parsed(problem: str, found: list[str]) -> None:
    text = (
        f"The content was successfully saved to a.ts.\n\nNew problems detected after saving the file:\na.ts\n{problem}"
    )
    write = call("write_to_file", {"path": "a.ts", "content": "x"})
    assert [site.kind for site in find_sites(TraceBuilder().step(act(write), [(text, None)]).build())] == found


@pytest.mark.parametrize(
    ("line", "text", "code", "found"),
    [
        ("sed -i 's/databse/database/' a.txt && cat a.txt", "2 rows", 0, ["no_effect real"]),
        ("sed -i 's/databse/database/' a.txt && cat a.txt", "the database", 0, []),
        ("sed -i 's/databse/database/' a.txt && cat b.txt", "2 rows", 0, []),
        ("sed -i 's/databse/database/' a.txt && head -2 a.txt", "2 rows", 0, []),  # a part of the file
        ("sed -i 's/\\(d\\)atabse/\\1atabase/' a.txt && cat a.txt", "2 rows", 0, []),
        ("cd /w && sed -i 's/port = 1/port = 2/' a.ini && grep port a.ini", "", 1, ["no_match real"]),
        ("sed -i 's/port = 1/port = 2/' a.ini && grep host a.ini", "", 1, ["no_match benign"]),
        ("sed 's/port = 1/port = 2/' a.ini && grep port a.ini", "", 1, ["no_match benign"]),
    ],
)
def test_a_substitution_of_which_the_same_line_shows_nothing(line: str, text: str, code: int, found: list[str]) -> None:
    result = (f"Exit code {code}\n{text}", True) if code else (text, False)
    sites = find_sites(TraceBuilder().step(act(bash(line)), [result]).build())
    assert [f"{site.kind} {site.verdict}" for site in sites] == found
