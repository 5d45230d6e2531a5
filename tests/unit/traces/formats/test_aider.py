"""Aider's chat history and its log of requests."""

from __future__ import annotations

from pathlib import Path

from postgrad.core.trace import Trace
from postgrad.traces.formats.aider.chat import AiderChat
from postgrad.traces.formats.aider.llm_log import AiderLog
from unit.traces.formats.agent_files import AIDER_CHAT, AIDER_LOG

HEAD = "\n# aider chat started at 2024-08-05 19:33:32\n\n> Model: gpt-4o with diff edit format~\n\n"
TOKENS = "> Tokens: 1.2k sent, 604 received.~\n"


def chats(tmp_path: Path, text: str) -> list[Trace]:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(text.replace("~", "  "))
    return list(AiderChat().read(path).traces)


def test_markers_in_a_fence_are_text(tmp_path: Path) -> None:
    """W33: the fence holds a line with #### and one with >; the answer is one piece."""
    (trace,) = chats(tmp_path, AIDER_CHAT)
    first, second = trace.steps
    assert "#### not the user\n> not the tool" in first.action.text
    assert (first.candidates[0].model, first.candidates[0].usage) == (
        "gpt-4o",
        {"input_tokens": 5244, "output_tokens": 604},
    )
    assert [(m.role, m.text[:5]) for m in trace.context(second)] == [
        ("user", "Add a"),
        ("assistant", "Certa"),
        ("user", "thank"),
    ]
    assert (first.request.fidelity, first.time, trace.source.app_version) == ("partial", None, "0.47.2")
    assert [e.text for e in trace.events if e.kind == "edit_applied"] == ["a.py"]


def test_a_fence_that_is_never_closed_hides_nothing(tmp_path: Path) -> None:
    text = HEAD + "#### go~\n\nSee:\n```python\nx = 1\n\n> ^C KeyboardInterrupt~\n\n#### again~\n\nDone.\n\n" + TOKENS
    (trace,) = chats(tmp_path, text)
    assert [step.action.text for step in trace.steps] == ["See:\n```python\nx = 1", "Done."]
    assert [event.before_step for event in trace.events if event.kind == "interrupt"] == [1]


def test_headings_of_the_model_are_not_the_user(tmp_path: Path) -> None:
    """The user's lines end with two blanks, a heading does not."""
    (trace,) = chats(tmp_path, HEAD + "#### go~\n\nParts:\n\n#### The class\n\nIt is.\n\n" + TOKENS)
    assert [step.action.text for step in trace.steps] == ["Parts:\n\n#### The class\n\nIt is."]


def test_undo_judges_the_step_whose_commit_it_took_back(tmp_path: Path) -> None:
    turn = "#### {0}~\n\nAnswer {0}.\n\n" + TOKENS + "> Applied edit to a.py~\n> Commit {1} feat: {0}~\n\n"
    undo = "#### /undo~\n> Removed: {0} feat~\n\n"
    text = (
        HEAD
        + turn.format("a", "aaaaaaa")
        + turn.format("b", "bbbbbbb")
        + undo.format("bbbbbbb")
        + undo.format("aaaaaaa")
    )
    (trace,) = chats(tmp_path, text)
    assert [[f.text for f in step.feedback] for step in trace.steps] == [["/undo aaaaaaa"], ["/undo bbbbbbb"]]
    assert {f.kind for step in trace.steps for f in step.feedback} == {"user_undo"}


def test_an_edit_that_breaks_the_format_goes_back_to_the_model(tmp_path: Path) -> None:
    broken = "> The LLM did not conform to the edit format.~\n"
    (trace,) = chats(tmp_path, HEAD + "#### go~\n\nOne.\n\n" + TOKENS + broken + "\nTwo.\n\n" + TOKENS)
    assert [feedback.kind for feedback in trace.steps[0].feedback] == ["malformed_call"]
    assert trace.context(trace.steps[1])[-1].role == "user"


def test_output_of_commands_is_no_answer(tmp_path: Path) -> None:
    """Behind `/test` only the text whose tokens are reported is the model's."""
    output = "#### /test pytest~\n\n1 failed\n\n> Add the output to the chat? y~\n\nI fix it.\n\n" + TOKENS
    (trace,) = chats(tmp_path, HEAD + "\nSome files.\n\n" + output + "#### /diff~\n\n+x\n")
    assert [step.action.text for step in trace.steps] == ["I fix it."]


def test_every_chat_with_an_answer_is_a_trace(tmp_path: Path) -> None:
    text = (
        HEAD
        + HEAD.replace("19:33:32", "20:00:00")
        + "#### go~\n\nOne.\n"
        + HEAD.replace("19:33:32", "21:00:00")
        + "#### go~\n\nOne.\n"
    )
    first, second = chats(tmp_path, text)
    assert first.id != second.id
    assert (first.index, second.index) == (0, 1)


def test_the_log_knows_every_context_to_the_word(tmp_path: Path) -> None:
    path = tmp_path / ".aider.llm.history"
    more = "TO LLM 2024-08-05T19:35:00\n-------\nUSER other\nTO LLM 2024-08-05T19:36:00\n-------\nUSER new\n"
    path.write_text(AIDER_LOG + more + "LLM RESPONSE 2024-08-05T19:36:09\nASSISTANT Hm\n")
    first, second = AiderLog().read(path).traces
    assert [m.text for m in first.context(first.steps[1])] == ["Act as an expert.", "hi", "Hello\nthere", "more"]
    assert [step.action.text for step in first.steps] == ["Hello\nthere", "Bye"]
    assert {step.request.fidelity for step in first.steps} == {"exact-messages"}
    assert first.steps[1].time == "2024-08-05T19:34:40"
    assert [event.kind for event in first.events] == ["api_error"]
    assert [m.text for m in second.context(second.steps[0])] == ["new"]


LINTED = """# aider chat started at 2026-01-19 20:41:07

#### add by_month

Here it is.

> Tokens: 3.1k sent, 702 received.
> Applied edit to trips.py
> Commit 5d1c0e2 feat: by_month
> trips.py:17:11: F821 undefined name 'defaultdict'
> # Fix any errors below, if possible.
> ## See relevant line below marked with █.
> Attempt to fix lint errors? (Y)es/(N)o [Yes]: n

#### /test

> F...
> 1 failed, 3 passed in 0.05s
"""


def test_what_linter_and_commands_say_are_events_of_their_own_records(tmp_path: Path) -> None:
    (trace,) = chats(tmp_path, LINTED)
    told = [
        (event.kind, event.record, event.text) for event in trace.events if event.kind.startswith(("check", "command_"))
    ]
    assert told == [
        ("check_failed", 7, "trips.py:17:11: F821 undefined name 'defaultdict'"),
        ("command_output", 17, "F...\n1 failed, 3 passed in 0.05s"),
    ]
