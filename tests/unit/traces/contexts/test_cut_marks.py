"""Each application's marks of a cut output are found by its rule; texts that speak of such things are whole."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Text, ToolCall, ToolResult
from postgrad.core.trace import Event, Source, Trace
from postgrad.traces.contexts.cut_marks import cut_by, with_cut_outputs
from postgrad.traces.contexts.fidelity import complete
from postgrad.traces.conversation import Action, Conversation

MARKS = [
    ("codex_cli", "Total output lines: 900\n\na\nb"),
    ("codex_cli", "abc…1234 tokens truncated…xyz"),
    ("general", "a\n[... omitted 644 of 900 lines ...]\nb"),
    ("general", "a\n[... removed 71680 bytes to fit 10240 byte limit ...]\n"),
    ("gemini_cli", "Tool output was too large and has been truncated.\nThe full output has been saved to: /tmp/x"),
    ("general", "first\n... [CONTENT TRUNCATED] ...\nlast"),
    ("counted", "first\n... [12,345 characters omitted] ...\nlast"),
    ("copilot", "[File content truncated: showing lines 1-2000 of 9000 total lines. ...]\nx"),
    ("opencode", "x\n(Output was truncated at 30000 characters)"),
    ("opencode", "<bash_metadata>\nbash tool truncated output as it exceeded 30000 char limit\n</bash_metadata>"),
    ("opencode", "[Old tool result content cleared]"),
    ("counted", "x\n\n...120 lines truncated...\n\nThe tool call"),
    ("openhands", "x\n[... Observation truncated due to length ...]\ny"),
    (
        "openhands",
        "   7\tpass<response clipped><NOTE>Due to the max output limit, only part of this file has been shown",
    ),
    ("openhands", "<NOTE>This file is too large to display entirely. Showing abbreviated version."),
    ("swe_agent", "Old environment output: (54 lines omitted)"),
    ("mini_swe_agent", "<output_head>\na\n</output_head>\n<elided_chars>\n9000 characters elided\n</elided_chars>"),
    ("general", "a\n[...312 lines omitted...]\nb"),
    ("cline", "(File list truncated. Use list_files on specific subdirectories if you need to explore further.)"),
    ("cline", "Showing first 300 of 1,204 results. Use a more specific search if necessary."),
    ("general", "[... PREVIOUS OUTPUT TRUNCATED ...]\nx"),
    ("claude_code", "<persisted-output>\nOutput too large (2MB). Full output saved to: /x/tool-results/a.txt"),
    ("counted", "a\n... [271 lines truncated] ...\nb"),
    ("general", "a\n... (12 lines omitted)\nb"),
    ("general", "a\n[truncated]"),
]
WHOLE = [
    "the file was truncated by the writer; see truncate(2)",
    "def test_output_truncated(self):\n    assert 'omitted' in text",
    "3 files changed, 12 lines removed from a.py",
    "  if len(text) > limit: text = text[:limit] + '... (truncated)'",
    "1 passed, 2 skipped in 0.1s",
    "error: value too large",
    "* `undo_edit`: if a command generates a long output, it will be truncated and marked",
    "# 5 removed packages\nShowing results",
    "",
]


@pytest.mark.parametrize(("rule", "text"), MARKS)
def test_marks_are_found_by_their_rule(rule: str, text: str) -> None:
    found = cut_by(text)
    assert found is not None
    assert found[0] == f"cut_output/{rule}"
    assert found[1]
    assert found[1] in text


@pytest.mark.parametrize("text", WHOLE)
def test_a_text_that_speaks_of_it_is_whole(text: str) -> None:
    assert cut_by(text) is None


def test_a_long_text_without_a_mark_takes_no_time() -> None:
    """Two million characters in one line, all of them words of marks: each place is looked at with few around it."""
    assert cut_by("was not omitted nor truncated " * 20_000) is None


def test_the_middle_of_a_long_line_is_no_beginning() -> None:
    assert cut_by("x" * 300 + " [truncated]") is None
    assert cut_by("x" * 300 + "\n[truncated]") is not None


def test_every_cut_result_is_an_event_once() -> None:
    """Of two calls, one result is cut: the event names its call, its record, the step behind it, and stays one."""
    talk = Conversation()
    talk.tell(Message.of("user", "look"))
    talk.act(Action((Text("Both."), ToolCall.from_raw(id="a", name="x", raw="{}")), (1,)))
    talk.answer(ToolResult("a", "a\n[... omitted 644 of 900 lines ...]\nb"), record=2)
    talk.act(Action((ToolCall.from_raw(id="b", name="x", raw="{}"),), (3,)))
    talk.answer(ToolResult("b", "whole"), record=4)
    trace = talk.trace(Source("f", "codex_cli"), "one")
    assert isinstance(trace, Trace)
    data = {"call": "a", "rule": "cut_output/general"}
    expected = Event("cut_output", 1, 2, "[... omitted 644 of 900 lines ...]", data)
    once = complete(trace)
    assert once.events == (expected,)
    assert with_cut_outputs(once) is once
