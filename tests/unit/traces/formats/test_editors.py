"""Continue, Cursor, Goose, Zed, and SpecStory's exports."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import zstandard

from postgrad.core.message import Reasoning
from postgrad.core.trace import Trace
from postgrad.traces.formats.continue_dev.dev_data import ContinueDevData
from postgrad.traces.formats.continue_dev.sessions import ContinueSession, parse_prompt
from postgrad.traces.formats.cursor.database import CursorDatabase
from postgrad.traces.formats.cursor.transcript import CursorTranscript
from postgrad.traces.formats.goose.reader import Goose
from postgrad.traces.formats.specstory import SpecStory
from postgrad.traces.formats.zed import Zed
from unit.traces.formats.agent_files import (
    SPECSTORY,
    ZED_TABLES,
    continue_events,
    continue_session,
    cursor_bubbles,
    cursor_database,
    cursor_rows,
    database,
    goose_database,
    goose_message,
    goose_messages,
    write_json,
    write_lines,
    zed_thread,
)


def continued(tmp_path: Path, session: dict[str, Any]) -> Trace:
    (trace,) = ContinueSession().read(write_json(tmp_path / "k.json", session)).traces
    return trace


@pytest.mark.parametrize(
    ("status", "flag", "ended"),
    [("done", False, "ok"), ("errored", True, "error"), ("canceled", None, "rejected")],
)
def test_a_calls_state_is_its_flag(status: str, flag: bool | None, ended: str, tmp_path: Path) -> None:
    """Once with a tool's item behind the answer, once with the output in the state alone."""
    session = continue_session()
    session["history"][1]["toolCallStates"][0]["status"] = status
    trace = continued(tmp_path, session)
    assert [(r.text, r.is_error, r.status) for r in trace.steps[0].results] == [("a.txt", flag, ended)]
    assert trace.result_records == {"c1": 2}
    del session["history"][2]
    trace = continued(tmp_path, session)
    assert [(r.text, r.is_error, r.status) for r in trace.steps[0].results] == [("a.txt", flag, ended)]


@pytest.mark.parametrize("status", ["generating", "generated", "calling"])
def test_a_call_that_did_not_end_is_pending(status: str, tmp_path: Path) -> None:
    """W17."""
    session = continue_session()
    session["history"][1]["toolCallStates"][0]["status"] = status
    del session["history"][2]
    assert continued(tmp_path, session).steps[0].results == ()


def test_a_logged_prompt_is_the_context_to_the_letter(tmp_path: Path) -> None:
    session = continue_session()
    prompt = "<system>\nBe brief.\n\n<user>\nList\nthe files\n\n"
    session["history"][1]["promptLogs"] = [{"modelTitle": "m", "prompt": prompt, "completion": "x"}]
    trace = continued(tmp_path, session)
    assert [(m.role, m.text) for m in trace.context(trace.steps[0])] == [
        ("system", "Be brief."),
        ("user", "List\nthe files"),
    ]
    assert [step.request.fidelity for step in trace.steps] == ["exact-messages", "partial"]
    assert trace.steps[0].candidates[0].model == "m"


def test_a_prompt_without_marks_is_one_message() -> None:
    assert [(m.role, m.text) for m in parse_prompt("just <user>\ntext", 1)] == [("user", "just <user>\ntext")]
    assert parse_prompt("", 1) == []


def test_thoughts_belong_to_the_answer_behind_them(tmp_path: Path) -> None:
    session = continue_session()
    thinking = {"message": {"role": "thinking", "content": "Hm.", "signature": "s"}, "contextItems": []}
    session["history"].insert(1, thinking)
    trace = continued(tmp_path, session)
    assert trace.steps[0].action.blocks[0] == Reasoning("Hm.", "s")
    assert trace.steps[0].records == (1, 2)


def test_development_data_says_what_was_accepted(tmp_path: Path) -> None:
    own = {"schema": "0.2.0", "userAgent": "vscode", "selectedProfileId": "local"}
    edit = {
        "eventName": "editOutcome",
        "prompt": "<user>\nfix\n",
        "completion": "b",
        "previousCode": "a",
        "newCode": "b",
    }
    rows = [
        *continue_events(),
        {"eventName": "chatFeedback", "sessionId": "k1", "feedback": False, **own},
        {**edit, "accepted": False, **own},
        {"eventName": "toolUsage", "functionName": "rm", "toolCallArgs": "{bad", "accepted": False, **own},
        {"eventName": "tokensGenerated", **own},
        {"other": 1},
    ]
    result = ContinueDevData().read(write_lines(tmp_path / "all.jsonl", rows))
    chat, tools, edits = result.traces
    assert [(f.kind, f.value) for f in chat.steps[0].feedback] == [("rating", 0.0)]
    assert [m.text for m in chat.context(chat.steps[0])] == ["Be brief.", "List the files"]
    assert [(f.kind, f.value) for f in edits.steps[0].feedback] == [("accept", 0.0)]
    assert [step.results[0].status for step in tools.steps] == ["ok", "rejected"]
    assert [call.arguments_raw for step in tools.steps for call in step.action.tool_calls] == ['{"dir": "."}', "{bad"]
    assert result.uses == {"step": 4, "feedback": 1, "event": 1, "unknown": 1}


# Cursor


def composer(tmp_path: Path, bubbles: dict[str, dict[str, Any]], **more: Any) -> Trace:
    (trace,) = CursorDatabase().read(cursor_database(tmp_path / "state.vscdb", bubbles, **more)).traces
    return trace


def test_bubbles_up_to_a_call_are_one_response(tmp_path: Path) -> None:
    trace = composer(tmp_path, cursor_bubbles())
    first, second = trace.steps
    assert [type(block).__name__ for block in first.action.blocks] == ["Reasoning", "Text", "ToolCall"]
    assert first.action.tool_calls[0].arguments_raw == '{"path": "."}'
    assert (first.results[0].text, first.results[0].is_error) == ('{"files": ["a.txt"]}', False)
    assert second.candidates[0].usage == {"inputTokens": 9, "outputTokens": 4}
    assert first.candidates[0].model == "model-1"


@pytest.mark.parametrize(("first", "second", "steps"), [("m", "m", 2), ("m", "n", 3), (None, None, 3)])
def test_calls_that_name_one_response_are_parallel(
    first: str | None, second: str | None, steps: int, tmp_path: Path
) -> None:
    bubbles = cursor_bubbles()
    more = json.loads(json.dumps(bubbles["b3"]))
    more["toolFormerData"] |= {"toolCallId": "c2", "modelCallId": second}
    bubbles["b3"]["toolFormerData"]["modelCallId"] = first
    ordered = {"b1": bubbles["b1"], "b2": bubbles["b2"], "b3": bubbles["b3"], "c2": more, "b4": bubbles["b4"]}
    trace = composer(tmp_path, ordered)
    assert len(trace.steps) == steps
    assert trace.tool_results == 2


@pytest.mark.parametrize(
    ("tool", "flag", "status"),
    [
        ({"status": "error", "result": '{"error": "no"}'}, True, "error"),
        ({"status": "completed", "userDecision": "rejected"}, None, "rejected"),
        ({"status": "cancelled", "result": None}, None, "interrupted"),
    ],
)
def test_status_and_the_users_decision(tool: dict[str, Any], flag: bool | None, status: str, tmp_path: Path) -> None:
    bubbles = cursor_bubbles()
    bubbles["b3"]["toolFormerData"] |= tool
    trace = composer(tmp_path, bubbles)
    assert [(r.is_error, r.status) for r in trace.steps[0].results] == [(flag, status)]


def test_accepted_and_rejected_diffs_judge_the_step_of_their_bubble(tmp_path: Path) -> None:
    diffs = {
        "file:///a": {"1": {"bubbleId": "b4", "status": "rejected"}, "2": {"bubbleId": "b2", "status": "accepted"}}
    }
    trace = composer(tmp_path, cursor_bubbles(), codeBlockData=diffs)
    assert [[(f.kind, f.value) for f in step.feedback] for step in trace.steps] == [
        [("accept", 1.0)],
        [("accept", 0.0)],
    ]


def test_inline_conversations_null_values_and_children(tmp_path: Path) -> None:
    bubbles = [{"bubbleId": name, **bubble} for name, bubble in cursor_bubbles().items()]
    rows = [
        ("composerData:p", json.dumps({"conversation": bubbles, "subComposerIds": ["q"]})),
        ("composerData:q", json.dumps({"conversation": bubbles})),
        ("composerData:r", None),
        ("bubbleId:p:zz", "not json"),
        ("bubbleId:p:yy", json.dumps({"type": 1, "text": "not listed"})),
    ]
    script = "create table cursorDiskKV(key text unique, value blob);"
    result = CursorDatabase().read(
        database(tmp_path / "s.vscdb", script, {"insert into cursorDiskKV values(?, ?)": rows})
    )
    parent, child = result.traces
    assert child.parent == parent.id
    assert [len(trace.steps) for trace in result.traces] == [2, 2]
    assert result.uses == {"metadata": 2, "blank_value": 1, "unknown": 1, "unlisted": 1}


def test_a_transcripts_results_go_by_id_name_or_order(tmp_path: Path) -> None:
    rows = cursor_rows()
    rows[1]["message"]["content"] += [
        {"type": "tool_call", "name": "Read", "input": {}},
        {"type": "tool_use", "id": "k", "name": "Grep", "input": {}},
    ]
    rows[2]["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": "k", "content": "third"},
        {"type": "tool-result", "name": "Read", "content": "second"},
        {"type": "tool_result", "tool_use_id": "t1", "content": "first"},
    ]
    path = write_lines(tmp_path / "subagents" / "x.jsonl", rows)
    (trace,) = CursorTranscript().read(path).traces
    assert [result.text for result in trace.steps[0].results] == ["first", "second", "third"]
    assert trace.steps[0].kind == "subagent"
    assert [e.text for e in trace.events if e.kind == "user_text"] == ["List the files"]


# Goose


def goose(tmp_path: Path, messages: list[dict[str, Any]]) -> Trace:
    (trace,) = Goose().read(goose_database(tmp_path / "sessions.db", messages)).traces
    return trace


def test_a_call_that_could_not_be_parsed_and_results_that_failed(tmp_path: Path) -> None:
    made = {"status": "success", "value": {"name": "shell", "arguments": {}}}
    shown = [
        {"type": "text", "text": "for both"},
        {"type": "text", "text": "UI", "annotations": {"audience": ["user"]}},
    ]
    messages = [
        goose_message("user", {"type": "text", "text": "go"}),
        goose_message(
            "assistant",
            {"type": "toolRequest", "id": "a", "toolCall": {"status": "error", "error": "bad JSON"}},
            {"type": "toolRequest", "id": "b", "toolCall": made},
            {"type": "toolRequest", "id": "c", "toolCall": made},
        ),
        goose_message(
            "user",
            {"type": "toolResponse", "id": "a", "toolResult": {"status": "error", "error": "-32602: bad"}},
            {
                "type": "toolResponse",
                "id": "b",
                "toolResult": {"status": "success", "value": {"content": shown, "isError": True}},
            },
            {"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": shown}},
        ),
    ]
    (step,) = goose(tmp_path, messages).steps
    assert (step.action.tool_calls[0].arguments, step.action.tool_calls[0].parse_error) == (None, "bad JSON")
    assert [(r.text.strip(), r.is_error) for r in step.results] == [
        ("-32602: bad", True),
        ("for both", True),
        ("for both", None),
    ]


def test_what_the_model_sees_now_was_not_always_so(tmp_path: Path) -> None:
    """W20: messages 0 to 3 are hidden since a compaction; step 1 saw them, step 2 sees the summary and the request."""
    old = goose_messages()
    for message in old:
        message["metadata"] = {"userVisible": True, "agentVisible": False}
    new = [
        goose_message("user", {"type": "text", "text": "Summary."}, userVisible=False, agentVisible=True),
        goose_message("user", {"type": "text", "text": "/status"}, userVisible=True, agentVisible=False),
        goose_message("user", {"type": "text", "text": "more"}, userVisible=True, agentVisible=True),
        goose_message("assistant", {"type": "text", "text": "No."}, userVisible=True, agentVisible=True),
    ]
    trace = goose(tmp_path, [*old, *new])
    assert [len(step.request.messages) for step in trace.steps] == [1, 3, 2]
    assert [m.text for m in trace.context(trace.steps[2])] == ["Summary.", "more"]
    assert [(e.kind, e.before_step) for e in trace.events if e.kind == "compaction"] == [("compaction", 2)]


def test_an_exported_session_and_a_database_with_an_open_log(tmp_path: Path) -> None:
    """The write-ahead log holds the last rows."""
    exported = {"id": "g1", "working_dir": "/w", "conversation": goose_messages()}
    (one,) = Goose().read(write_json(tmp_path / "g.json", exported)).traces
    path = goose_database(tmp_path / "sessions.db", goose_messages()[:2])
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode = wal")
    insert = (
        "insert into messages(session_id, role, content_json, created_timestamp, metadata_json) values(?, ?, ?, ?, ?)"
    )
    for message in goose_messages()[2:]:
        writer.execute(insert, ("g1", message["role"], json.dumps(message["content"]), 1, "{}"))
    writer.commit()
    (two,) = Goose().read(path).traces
    writer.close()
    assert one.id == two.id
    assert [step.action.id for step in one.steps] == [step.action.id for step in two.steps]


# Zed, SpecStory


def test_zed_threads_are_packed_and_old_ones_have_segments(tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(json.dumps(zed_thread()).encode())
    use = {"id": "c1", "name": "ls", "input": {"path": "."}}
    back = {"tool_use_id": "c1", "content": "no such path", "is_error": True}
    old = {
        "version": "0.2.0",
        "messages": [
            {"id": 1, "role": "user", "segments": [{"type": "text", "text": "go"}]},
            {
                "id": 2,
                "role": "assistant",
                "segments": [{"type": "thinking", "text": "Hm."}],
                "tool_uses": [use],
                "tool_results": [back],
            },
        ],
    }
    rows = [
        ("a", "s", "t", "zstd", packed, None),
        ("b", "s", "t", "json", json.dumps(old), "a"),
        ("c", "s", "t", "zstd", b"torn", None),
    ]
    result = Zed().read(
        database(tmp_path / "threads.db", ZED_TABLES, {"insert into threads values(?, ?, ?, ?, ?, ?)": rows})
    )
    new, older = result.traces
    assert (new.tool_calls, new.tool_results, new.steps[0].results[0].is_error) == (1, 1, False)
    assert [(r.text, r.is_error) for r in older.steps[0].results] == [("no such path", True)]
    assert (older.parent, older.steps[0].kind) == (new.id, "subagent")
    assert result.uses == {"trace": 2, "unreadable": 1}


def test_specstory_sections_are_joined_up_to_a_tool(tmp_path: Path) -> None:
    """A section's head inside a tool's fence is output."""
    path = tmp_path / "s.md"
    asked = "\n_**Agent - sidechain (2026-01-16 17:00:00Z)**_\n\nExplore.\n"
    done = "\n_**Agent - sidechain (haiku 2026-01-16 17:00:01Z)**_\n\nDone.\n"
    path.write_text(SPECSTORY + asked + done)
    main, inner = SpecStory().read(path).traces
    first, second = main.steps
    assert [type(block).__name__ for block in first.action.blocks] == ["Reasoning", "ToolCall"]
    assert first.action.tool_calls[0].arguments == {"shown": "`ls`"}
    assert first.results[0].text == "a.txt\n_**User (2026-01-16 16:48:38Z)**_"
    assert (first.candidates[0].model, first.time) == ("claude-opus", "2026-01-16 16:48:43Z")
    assert second.action.text == "There is a.txt."
    assert ([m.text for m in inner.context(inner.steps[0])], inner.parent) == (["Explore."], main.id)
