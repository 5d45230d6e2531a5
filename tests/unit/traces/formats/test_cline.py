"""The warts of Cline, Roo and Kilo tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Text, ToolCall
from postgrad.core.trace import Trace
from postgrad.traces.formats.cline.reader import Cline
from postgrad.traces.formats.cline.xml_calls import split_calls
from postgrad.traces.records import ReadResult, totals
from unit.traces.formats.agent_files import cline_history, write_json

LOOK = "Let me look.\n<list_files>\n<path>.</path>\n</list_files>"


def said(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts], "ts": 1767225600000, **more}


def shown(kind: str, text: str = "", *, ask: bool = False, **more: Any) -> dict[str, Any]:
    way = "ask" if ask else "say"
    return {"ts": 1767225600000, "type": way, way: kind, "text": text, **more}


def task(tmp_path: Path, history: Any, screen: Any = None) -> ReadResult:
    folder = tmp_path / "task"
    write_json(folder / "api_conversation_history.json", history)
    if screen is not None:
        write_json(folder / "ui_messages.json", screen)
    return Cline().read(folder)


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def answered(tmp_path: Path, *texts: str, answer: str = LOOK) -> Trace:
    """A task, an answer with calls as XML, and the reply of these texts."""
    history = [said("user", "<task>\ngo\n</task>"), said("assistant", answer), said("user", *texts)]
    return only(task(tmp_path, [*history, said("assistant", "Done.")]))


@pytest.mark.parametrize(
    ("text", "names", "arguments"),
    [
        (LOOK, ["list_files"], [{"path": "."}]),
        (
            "<read_file><path>a</path></read_file>x<read_file><path>b</path></read_file>",
            ["read_file"] * 2,
            [{"path": "a"}, {"path": "b"}],
        ),
        (
            "<write_to_file><path>a</path><content>\n<b></write_to_file>\n</content></write_to_file>",
            ["write_to_file"],
            [{"path": "a", "content": "<b></write_to_file>"}],
        ),
        ("<thinking>no <path>call</path></thinking>", [], []),
        ("<read_file><path>a", ["read_file"], [None]),
    ],
)
def test_xml_calls_are_taken_out_and_nothing_is_lost(text: str, names: list[str], arguments: list[Any]) -> None:
    blocks = split_calls(text, id="c")
    assert (
        "".join(b.text if isinstance(b, Text) else b.arguments_raw for b in blocks if isinstance(b, Text | ToolCall))
        == text
    )
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    assert [call.name for call in calls] == names
    assert [call.arguments for call in calls] == arguments


@pytest.mark.parametrize(
    ("texts", "text", "flag", "status"),
    [
        (("[list_files for '.'] Result:\na.txt",), "a.txt", None, "ok"),
        (
            ("[list_files for '.'] Result:", "a.txt", "<environment_details>\n</environment_details>"),
            "a.txt",
            None,
            "ok",
        ),
        (("[list_files for '[ab] Resul'] Result:\na.txt",), "a.txt", None, "ok"),
        (
            (
                "[list_files for '.'] Result:",
                "The tool execution failed with the following error:\n<error>\nno\n</error>",
            ),
            "The tool execution failed with the following error:\n<error>\nno\n</error>",
            True,
            "error",
        ),
        (
            ("[list_files for '.'] Result:", "The user denied this operation."),
            "The user denied this operation.",
            None,
            "rejected",
        ),
    ],
)
def test_results_are_texts_behind_a_header(
    texts: tuple[str, ...], text: str, flag: bool | None, status: str, tmp_path: Path
) -> None:
    trace = answered(tmp_path, *texts)
    (result,) = trace.steps[0].results
    assert (result.text, result.is_error, result.status) == (text, flag, status)
    (seen,) = [r for m in trace.context(trace.steps[1]) for r in m.tool_results]
    assert seen == result


def test_the_second_call_of_one_message_is_refused(tmp_path: Path) -> None:
    twice = "<read_file><path>a</path></read_file><read_file><path>b</path></read_file>"
    no = "Tool [read_file] was not executed because a tool has already been used in this message."
    trace = answered(tmp_path, "[read_file for 'a'] Result:\nA", no, answer=twice)
    assert [(r.text, r.is_error) for r in trace.steps[0].results] == [("A", None), (no, True)]


def test_a_refusal_with_the_users_words_is_a_correction(tmp_path: Path) -> None:
    text = "The user denied this operation and provided the following feedback:\n<feedback>\nuse src\n</feedback>"
    trace = answered(tmp_path, "[list_files for '.'] Result:", text)
    assert [(f.kind, f.text) for f in trace.steps[0].feedback] == [("user_correction", "use src")]
    assert [(e.kind, e.text, e.record) for e in trace.events][-1] == ("user_text", "use src", 2)


def test_an_answer_without_a_tool_is_judged(tmp_path: Path) -> None:
    trace = answered(tmp_path, "[ERROR] You did not use a tool in your previous response!", answer="Hello.")
    assert [feedback.kind for feedback in trace.steps[0].feedback] == ["malformed_call"]
    assert trace.tool_calls == 0


def test_native_calls_are_matched_by_id(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a <list_files>"}}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "A"}], "is_error": False}
    history = [
        said("user", "<task>go</task>"),
        {**said("assistant", "See <list_files>"), "content": [use]},
        {**said("user"), "content": [back]},
    ]
    trace = only(task(tmp_path, history))
    assert [call.id for call in trace.steps[0].action.tool_calls] == ["t1"]
    assert [(r.text, r.is_error) for r in trace.steps[0].results] == [("A", False)]


def test_what_a_condensation_took_out_was_in_the_contexts_before_it(tmp_path: Path) -> None:
    """W20, Roo: messages 0 to 3 name the summary; step 1 saw three messages, step 2 the summary and the request."""
    old = [
        said("user", "<task>\ngo\n</task>", condenseParent="k"),
        said("assistant", "One.", condenseParent="k"),
        said("user", "and?", condenseParent="k"),
        said("assistant", "Two.", condenseParent="k"),
    ]
    new = [said("user", "Summary.", isSummary=True, condenseId="k"), said("user", "on"), said("assistant", "Three.")]
    trace = only(task(tmp_path, [*old, *new]))
    assert [len(step.request.messages) for step in trace.steps] == [1, 3, 2]
    assert [m.text for m in trace.context(trace.steps[2])] == ["Summary.", "on"]
    assert [(e.kind, e.data["forgotten"]) for e in trace.events if e.kind == "compaction"] == [
        ("compaction", [0, 1, 2, 3])
    ]


def test_a_parent_that_names_no_summary_hides_nothing(tmp_path: Path) -> None:
    history = [said("user", "<task>go</task>", truncationParent="gone"), said("assistant", "One.")]
    assert len(only(task(tmp_path, history)).steps[0].request.messages) == 1


def test_the_screen_gives_events_and_usage(tmp_path: Path) -> None:
    """Two answered requests and a cancelled one between them, so the stop lies before step 1."""
    request = {"request": "...", "tokensIn": 10, "tokensOut": 2}
    screen = [
        shown("text", "go"),
        shown("api_req_started", json.dumps(request)),
        shown("user_feedback", "not so", partial=True),
        shown("api_req_started", json.dumps({**request, "cancelReason": "user_cancelled"})),
        shown("api_req_started", json.dumps({**request, "tokensIn": 20})),
        shown("user_feedback_diff", '{"diff": "-a\\n+b"}'),
    ]
    result = task(tmp_path, cline_history(), screen)
    trace = only(result)
    assert [step.candidates[0].usage["tokensIn"] for step in trace.steps] == [10, 20]
    assert [(e.kind, e.before_step) for e in trace.events if e.kind in ("interrupt", "user_edit")] == [
        ("interrupt", 1),
        ("user_edit", 2),
    ]
    assert [feedback.kind for feedback in trace.steps[1].feedback] == ["user_edit"]
    assert result.uses["ui"] == len(screen)


def test_a_range_that_cline_left_out_is_not_in_later_contexts(tmp_path: Path) -> None:
    history = [
        said("user", "<task>go</task>"),
        said("assistant", "One."),
        said("user", "b"),
        said("assistant", "Two."),
        said("user", "c"),
        said("assistant", "Three."),
    ]
    screen = [shown("text", "x", conversationHistoryIndex=3, conversationHistoryDeletedRange=[1, 2])]
    trace = only(task(tmp_path, history, screen))
    assert [m.text for m in trace.context(trace.steps[2])] == ["<task>go</task>", "Two.", "c"]


def test_a_broken_screen_is_a_diagnostic_and_the_history_suffices(tmp_path: Path) -> None:
    """cline/cline#2321, #954."""
    folder = tmp_path / "task"
    write_json(folder / "api_conversation_history.json", cline_history())
    for broken in ("", '[{"ts": 1, "type": "say", "say": "te', "{nonsense"):
        (folder / "ui_messages.json").write_text(broken)
        for source in (folder, folder / "api_conversation_history.json"):
            result = Cline().read(source)
            assert totals(result.traces)["steps"] == 2
            assert result.diagnostics


@pytest.mark.parametrize("history", ["", "[]", None])
def test_without_a_history_the_screen_stands_in(history: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "task"
    tool = json.dumps({"tool": "listFiles", "path": "."})
    write_json(
        folder / "ui_messages.json",
        [
            shown("text", "List the files"),
            shown("api_req_started", json.dumps({"request": "", "tokensIn": 3})),
            shown("reasoning", "Hm."),
            shown("text", "Let me look."),
            shown("command", "ls", ask=True),
            shown("command_output", "a.txt"),
            shown("tool", tool),
            shown("user_feedback", "thanks"),
            shown("api_req_started", json.dumps({"request": "", "cancelReason": "streaming_failed"})),
        ],
    )
    if history is not None:
        (folder / "api_conversation_history.json").write_text(history)
    trace = only(Cline().read(folder))
    (step,) = trace.steps
    assert (step.request.fidelity, step.candidates[0].usage) == ("none", {"tokensIn": 3})
    assert [(call.name, call.arguments) for call in step.action.tool_calls] == [
        ("command", {"command": "ls"}),
        ("listFiles", {"path": "."}),
    ]
    assert [(e.kind, e.before_step) for e in trace.events] == [("user_text", 0), ("user_text", 1), ("api_error", 1)]


def test_a_folder_with_folders_in_it_is_left_to_its_files(tmp_path: Path) -> None:
    from postgrad.traces.sources.head import Head

    folder = tmp_path / "task"
    write_json(folder / "api_conversation_history.json", cline_history())
    assert Cline().recognises(Head(folder))
    (folder / "checkpoints").mkdir()
    assert not Cline().recognises(Head(folder))


def test_a_subtask_names_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    write_json(folder / "api_conversation_history.json", cline_history())
    write_json(folder / "history_item.json", {"id": "2", "parentTaskId": "1"})
    assert only(Cline().read(folder)).parent == "cline-task:1"


def test_thoughts_of_their_own_belong_to_the_next_answer(tmp_path: Path) -> None:
    thought = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "E",
        "ts": 1,
    }
    trace = only(task(tmp_path, [said("user", "<task>go</task>"), thought, said("assistant", "Hi.")]))
    (step,) = trace.steps
    assert [type(block).__name__ for block in step.action.blocks] == ["Reasoning", "Text"]
    assert step.records == (1, 2)
