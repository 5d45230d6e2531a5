"""What a person sees of an ingest: shared names once, sums that explain themselves, reasons for what was not read."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from postgrad.verbs.ingest_shown import shown

NUMBERS = ("records", "steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")


def source(path: str, format: str | None = "claude_code", *traces: str, **more: Any) -> dict[str, Any]:
    """A source with 1 of everything, and a trace of one step under each id."""
    told = [{"id": name, "steps": 1} for name in traces]
    return {"path": path, "format": format, **dict.fromkeys(NUMBERS, 1), "diagnostics": [], "traces": told, **more}


def page(*sources: dict[str, Any], width: int = 80, **more: Any) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    result = {"store": "s", "sources": list(sources), "sites": [], "fidelity": {}, "redactions": {}, **more}
    console.print(shown(result), markup=False, highlight=False)
    return console.export_text()


FORTY = [source(f"/t/{'ab'[n % 2]}/{n}.jsonl") for n in range(40)]


def test_many_sources_are_shown_by_folder_unless_all_are_wanted() -> None:
    """Forty files in two folders of /t, and in forty: told by the folders, or by the one that they all lie in."""
    assert "40 sources of claude_code in /t: " in page(*FORTY)
    assert "│a     │   20│     20│" in page(*FORTY)
    assert ".jsonl" not in page(*FORTY)
    assert "b/39.jsonl" in page(*FORTY, verbose=True)
    assert "b/29.jsonl" in page(*FORTY[:30])
    deep = [source(f"/t/x/{n}/s.jsonl") for n in range(40)]
    assert "/t/x" in page(*deep)
    assert "/t/x/1" not in page(*deep)


def test_what_all_rows_share_is_said_once() -> None:
    text = page(*FORTY[:4])
    assert (text.count("/t"), text.count("claude_code")) == (1, 1)


def test_ten_columns_stand_side_by_side_on_a_terminal() -> None:
    """80 columns, a name of 76 characters: it folds, and the numbers do not become a paragraph."""
    text = page(source("projects/" + "-home-anna" * 6 + "/s.jsonl"))
    assert "┃records┃steps┃calls┃results┃open┃errors┃sites┃notes┃" in text
    assert max(map(len, text.splitlines())) <= 80


def test_formats_come_one_after_the_other() -> None:
    lines = page(source("a/1"), source("b/2", "cline"), source("b/3", "cline"), source("a/4")).splitlines()
    firsts = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert firsts == ["claude_code in a:", "1", "4", "cline in b:", "2", "3", "all"]


def test_sums_say_why_the_store_holds_less() -> None:
    """Five traces: three of session x in two files, two of sessions that nobody repeats."""
    text = " ".join(page(source("a", "cline", "x", "y"), source("b", "cline", "x", "x", "z")).split())
    assert "3 of 5 traces are of 1 session, copied, resumed or forked: what they share is kept once" in text
    assert "copied" not in page(source("a", "cline", "x"), source("b", "cline", "y"))


def test_what_was_not_read_and_what_was_noted_is_told_with_its_reason() -> None:
    reason = {"file": "odd", "what": "no reader recognises this file, text", "done": "left out"}
    refused = [source(f"{n}.md", None, diagnostics=[reason]) for n in range(7)]
    torn = {"file": "a", "line": 3, "what": "the last line is torn", "done": "left for the next time"}
    text = page(source("a", diagnostics=[torn]), *refused)
    assert "note: a:3: the last line is torn; left for the next time" in text
    assert "not read: 7 of 8 sources\n  0.md: no reader recognises this file, text" in "\n".join(
        line.rstrip() for line in text.splitlines()
    )
    assert "5.md" not in text
    assert "and 2 more (--verbose)" in text
    assert "6.md: " in page(*refused, verbose=True)
