"""Copilot CLI sessions and VS Code chat sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postgrad.traces.formats.copilot.cli import CopilotCLI
from postgrad.traces.formats.vscode_chat.reader import VSCodeChat
from postgrad.traces.records import ReadResult
from unit.traces.formats.agent_files import copilot_rows, vscode_session, write_json, write_lines


def event(name: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": name, "timestamp": "2026-01-05T00:00:09.000Z"}


def cli(tmp_path: Path, *more: dict[str, Any]) -> ReadResult:
    return CopilotCLI().read(write_lines(tmp_path / "events.jsonl", [*copilot_rows(), *more]))


def test_a_failed_call_and_a_refused_one(tmp_path: Path) -> None:
    requests = [{"toolCallId": key, "name": "shell", "arguments": {"command": "x"}} for key in ("a", "b")]
    denied = {"code": "denied", "message": "The user rejected this tool call."}
    (trace,) = cli(
        tmp_path,
        event("x1", "assistant.message", content="", toolRequests=requests, messageId="m3"),
        event(
            "x2", "tool.execution_complete", toolCallId="a", success=False, error={"code": "failed", "message": "no"}
        ),
        event("x3", "tool.execution_complete", toolCallId="b", success=False, error=denied),
    ).traces
    assert [(r.text, r.is_error, r.status) for r in trace.steps[-1].results] == [
        ("no", True, "error"),
        ("The user rejected this tool call.", True, "rejected"),
    ]
    assert [feedback.kind for feedback in trace.steps[-1].feedback] == ["user_reject"]


def test_a_subagent_is_a_trace_of_its_own(tmp_path: Path) -> None:
    """W22: its rows name the call that started it."""
    main, inner = cli(
        tmp_path,
        event("s1", "subagent.started", toolCallId="c1", agentName="explore"),
        event("s2", "assistant.message", parentToolCallId="c1", content="Inside.", toolRequests=[], messageId="m9"),
    ).traces
    assert [step.action.text for step in inner.steps] == ["Inside."]
    assert (inner.parent, inner.steps[0].kind, inner.steps[0].agent) == (main.id, "subagent", "c1")
    assert len(main.steps) == 2
    assert [e.data for e in main.events if e.kind == "spawn"] == [{"agent": "explore", "call": "c1"}]


def test_a_rewind_leaves_an_abandoned_branch(tmp_path: Path) -> None:
    """W21: back to the user's message e2; both steps are left, and the next one has no parent."""
    (trace,) = cli(
        tmp_path,
        event("r", "session.snapshot_rewind", upToEventId="e2"),
        event("u", "user.message", content="Other", transformedContent="Other <now>"),
        event("a", "assistant.message", content="Yes.", toolRequests=[], messageId="m7"),
    ).traces
    assert [step.abandoned for step in trace.steps] == [True, True, False]
    assert [m.text for m in trace.context(trace.steps[2])] == ["Other <now>"]
    assert [e.text for e in trace.events if e.kind == "user_text"][-1] == "Other"


def test_a_compaction_leaves_the_prompt_and_the_summary(tmp_path: Path) -> None:
    rows = copilot_rows()
    rows.insert(1, event("p", "system.message", content="Be good.", role="system"))
    more = [
        event("c", "session.compaction_complete", success=True, summaryContent="Listed."),
        event("u", "user.message", content="more"),
        event("a", "assistant.message", content="No.", toolRequests=[], messageId="m7"),
        event("t", "session.truncation", tokenLimit=1),
        event("b", "assistant.message", content="End.", toolRequests=[], messageId="m8"),
    ]
    (trace,) = CopilotCLI().read(write_lines(tmp_path / "events.jsonl", [*rows, *more])).traces
    assert [m.text for m in trace.context(trace.steps[2])] == ["Be good.", "Listed.", "more"]
    assert [step.request.fidelity for step in trace.steps] == ["reconstructed"] * 3 + ["partial"]
    assert trace.steps[0].request.missing == ("tool schemas",)


def test_rows_of_one_message_are_one_step_and_copies_count_once(tmp_path: Path) -> None:
    part = event("k1", "assistant.message", content="A", toolRequests=[], messageId="m5", outputTokens=1)
    last = event("k2", "assistant.message", content="B", toolRequests=[], messageId="m5", outputTokens=9)
    result = cli(tmp_path, part, last, last)
    (trace,) = result.traces
    assert (trace.steps[-1].action.text, trace.steps[-1].candidates[0].usage) == ("AB", {"outputTokens": 9})
    assert trace.steps[-1].records == (7, 8)
    assert result.uses["duplicate"] == 1


def test_line_separators_in_a_text_split_no_row(tmp_path: Path) -> None:
    """W1, github/copilot-cli#2012."""
    path = write_lines(tmp_path / "events.jsonl", copilot_rows())
    path.write_text(path.read_text().replace("There is a.txt.", "a\u2028b\u0085c"), encoding="utf-8")
    (trace,) = CopilotCLI().read(path).traces
    assert trace.steps[-1].action.text == "a\u2028b\u0085c"


def test_unknown_events_are_counted_and_orphans_told(tmp_path: Path) -> None:
    """W18, W31."""
    result = cli(
        tmp_path, event("f", "future.thing"), event("o", "tool.execution_complete", toolCallId="no", success=True)
    )
    assert (result.uses["unknown"], result.uses["orphan_result"]) == (1, 1)
    assert [d.what for d in result.diagnostics] == [
        "a tool result whose call is not in the file",
        "unknown event type 'future.thing', 1 row(s)",
    ]


def chat(tmp_path: Path, session: dict[str, Any]) -> ReadResult:
    return VSCodeChat().read(write_json(tmp_path / "chat.json", session))


def test_rounds_are_steps_and_a_vote_is_feedback(tmp_path: Path) -> None:
    (trace,) = chat(tmp_path, vscode_session()).traces
    assert [len(step.request.messages) for step in trace.steps] == [1, 3]
    assert trace.steps[0].action.tool_calls[0].arguments_raw == '{"path": "."}'
    assert trace.steps[1].candidates[0].usage == {"promptTokens": 100, "outputTokens": 7}
    assert [(f.kind, f.value) for f in trace.steps[1].feedback] == [("rating", 1.0)]
    assert trace.steps[0].time == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("invocation", "flag", "status"),
    [
        ({"isConfirmed": True, "resultDetails": {"isError": True}}, True, "error"),
        ({"isConfirmed": {"type": 4}, "resultDetails": {"isError": False}}, False, "ok"),
        ({"isConfirmed": {"type": 0}}, None, "rejected"),
        ({"isConfirmed": False}, None, "rejected"),
        ({"isConfirmed": True}, None, "ok"),
    ],
)
def test_the_screen_knows_errors_and_refusals(
    invocation: dict[str, Any], flag: bool | None, status: str, tmp_path: Path
) -> None:
    session = vscode_session()
    session["requests"][0]["response"] = [{"kind": "toolInvocationSerialized", "toolId": "list_dir", **invocation}]
    (trace,) = chat(tmp_path, session).traces
    assert [(r.is_error, r.status) for r in trace.steps[0].results] == [(flag, status)]


def test_a_request_without_rounds_is_put_together_from_the_screen(tmp_path: Path) -> None:
    session = vscode_session()
    tool = {
        "kind": "toolInvocationSerialized",
        "toolId": "run",
        "toolSpecificData": {"commandLine": {"original": "ls"}},
    }
    shown = [
        {"value": "Let me "},
        {"value": "look."},
        {**tool, "resultDetails": {"output": [{"value": "a.txt"}]}},
        {"value": "Done."},
    ]
    session["requests"][0] |= {"response": shown, "result": {}, "isCanceled": True}
    (trace,) = chat(tmp_path, session).traces
    (step,) = trace.steps
    assert [type(block).__name__ for block in step.action.blocks] == ["Text", "ToolCall", "Text"]
    assert step.action.text == "Let me look.Done."
    assert step.action.tool_calls[0].arguments == {"command": "ls"}
    assert [result.text for result in step.results] == ["a.txt"]
    assert [event.kind for event in trace.events] == ["user_text", "interrupt"]


def test_a_log_of_changes_gives_the_document_at_its_end(tmp_path: Path) -> None:
    """Two requests are pushed, the second is cut off and pushed anew, the first gets a vote, a field is deleted."""
    session = vscode_session()
    (request,) = session.pop("requests")
    del request["vote"]
    rows = [
        {"kind": 0, "v": {**session, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [request, {**request, "message": {"text": "old"}}]},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [{**request, "message": {"text": "new"}}]},
        {"kind": 1, "k": ["requests", 0, "vote"], "v": 0},
        {"kind": 3, "k": ["requests", 0, "result", "errorDetails"]},
        {"kind": 1, "k": ["requests", 9, "vote"], "v": 0},
    ]
    result = VSCodeChat().read(write_lines(tmp_path / "chat.jsonl", rows))
    (trace,) = result.traces
    assert [event.text for event in trace.events if event.kind == "user_text"] == ["List the files", "new"]
    assert [[f.value for f in step.feedback] for step in trace.steps] == [[], [0.0], [], []]
    assert [step.records for step in trace.steps] == [(5,), (5,), (3,), (3,)]
    assert result.uses["update"] == len(rows)
    assert [d.line for d in result.diagnostics] == [6]
