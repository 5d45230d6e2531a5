"""What `claude -p` and `codex exec` print, and Qwen Code's tree of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.claude_code.stream import ClaudeStream
from postgrad.traces.formats.codex_cli.stream import CodexExec
from postgrad.traces.formats.qwen_code import QwenCode
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from unit.traces.formats.claude_file import call, text
from unit.traces.formats.said import said

INIT = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"], "permissionMode": "default"}


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def lines(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def claude(role: str, content: Any, *, id: str | None = None, parent: str | None = None) -> dict[str, Any]:
    message = {
        "role": role,
        "content": content,
        **({"id": id, "model": "c", "usage": {"output_tokens": 1}} if id else {}),
    }
    return {"type": role, "message": message, "parent_tool_use_id": parent, "session_id": "s"}


def done(call: str, words: str = "ok") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": words}]


def test_claude_output_is_a_session(tmp_path: Path) -> None:
    """The blocks of one answer come in rows of their own; a subagent's rows name the call that began it."""
    rows: list[dict[str, Any]] = [
        INIT,
        {"type": "stream_event", "event": {"type": "content_block_delta"}, "session_id": "s"},
        claude("assistant", [text("Look.")], id="msg_1"),
        claude("assistant", [call("t1", "Task")], id="msg_1"),
        claude("user", "do it", parent="t1"),
        claude("assistant", [text("sub")], id="msg_2", parent="t1"),
        claude("user", done("t1")),
        claude("assistant", [text("done")], id="msg_3"),
        {"type": "result", "subtype": "success", "result": "done", "is_error": False, "usage": {"output_tokens": 3}},
    ]
    result = readers.read(lines(tmp_path, *rows))
    main, sub = result.traces
    assert result.source.format == "claude_stream"
    assert ([len(main.steps), len(sub.steps)], sub.parent, sub.steps[0].kind) == ([2, 1], main.id, "subagent")
    assert said(main, 1) == ["Look.", "call:t1", "result:t1"]
    assert said(sub, 0) == ["do it"]
    first = main.steps[0]
    assert (first.request.fidelity, first.request.missing[-1]) == ("partial", "user prompt")
    assert first.request.params == {"tool_names": ["Bash"]}
    assert sub.steps[0].request.fidelity == "reconstructed"
    assert [(e.kind, e.record, e.text) for e in main.events] == [("result", 9, "done")]
    assert (main.flagged_errors, result.uses["superseded"]) == (0, 1)
    assert sum(result.uses.values()) == len(rows)


def test_claude_output_as_one_list(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps([INIT, claude("user", "go"), claude("assistant", [text("hi")], id="msg_1")], indent=1))
    trace = only(readers.read(path))
    assert (said(trace, 0), trace.steps[0].records, trace.source.format) == (["go"], (2,), "claude_stream")


def test_recognises_claude_output_and_not_its_copies() -> None:
    reader = ClaudeStream()
    answer = claude("assistant", [], id="msg_1")
    assert reader.recognises(Head.of([INIT]))
    assert reader.recognises(Head.of([answer]))
    amp = {**INIT, "session_id": "T-1"}
    qwen = {**INIT, "qwen_code_version": "0.21"}
    cursor = {k: v for k, v in INIT.items() if k != "tools"}
    session_file = {**answer, "parentUuid": None, "uuid": "u", "sessionId": "s"}
    for other in (amp, qwen, cursor, session_file, {"type": "assistant", "message": {"id": "msg_1"}}):
        assert not reader.recognises(Head.of([other]))


def item(kind: str, id: str, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": id, "type": type, **fields}}


def test_codex_items_that_begin_together_are_one_step(tmp_path: Path) -> None:
    command = {"command": "ls", "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    failed = {"command": "ls", "aggregated_output": "no", "exit_code": 2, "status": "failed"}
    good = {"command": "ls", "aggregated_output": "a", "exit_code": 0, "status": "completed"}
    rows = [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "turn.started"},
        item("completed", "0", "reasoning", text="hm"),
        item("started", "1", "command_execution", **command),
        item("started", "2", "command_execution", **command),
        item("completed", "1", "command_execution", **good),
        item("completed", "2", "command_execution", **failed),
        item("completed", "3", "file_change", changes=[{"path": "a", "kind": "add"}], status="completed"),
        item("started", "4", "mcp_tool_call", server="s", tool="t", arguments={"q": 1}, status="in_progress"),
        item("completed", "5", "agent_message", text="done"),
        item("completed", "6", "hologram"),
        {"type": "turn.completed", "usage": {"input_tokens": 9}},
    ]
    result = readers.read(lines(tmp_path, *rows))
    trace = only(result)
    assert result.source.format == "codex_exec"
    assert [len(step.action.tool_calls) for step in trace.steps] == [2, 1, 1]
    assert [(r.text, r.is_error) for r in trace.steps[0].results] == [("a", False), ("no", True)]
    assert (trace.tool_calls, trace.tool_results) == (4, 3)
    assert trace.steps[2].action.tool_calls[0].name == "s.t"
    assert trace.steps[0].request.fidelity == "partial"
    assert [(e.kind, e.before_step) for e in trace.events] == [("turn_usage", 3)]
    assert sum(result.uses.values()) == len(rows)
    assert [told.line for told in result.diagnostics] == [11]


@pytest.mark.parametrize(("status", "kind"), [("declined", "rejected"), ("failed", "error")])
def test_codex_commands_that_did_not_run(tmp_path: Path, status: str, kind: str) -> None:
    row = item("completed", "1", "command_execution", command="ls", aggregated_output="", status=status)
    (result,) = only(readers.read(lines(tmp_path, {"type": "thread.started", "thread_id": "x"}, row))).steps[0].results
    assert (result.is_error, result.status) == (True, kind)


def test_recognises_codex_output_and_not_others() -> None:
    reader = CodexExec()
    assert reader.recognises(Head.of([{"type": "thread.started", "thread_id": "x"}]))
    assert not reader.recognises(Head.of([{"type": "thread.started"}]))
    assert not reader.recognises(Head.of([{"type": "item.completed", "item": {"type": "message"}}]))


def qwen(uuid: str, parent: str | None, type: str, parts: list[Any], **fields: Any) -> dict[str, Any]:
    role = "model" if type == "assistant" else "user"
    base = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": type, "version": "0.21"}
    return {**base, "message": {"role": role, "parts": parts}, **fields}


def test_qwen_rows_are_steps_and_results(tmp_path: Path) -> None:
    ask = {"functionCall": {"id": "t", "name": "shell", "args": {"command": "ls"}}}
    answer = {"functionResponse": {"id": "t", "name": "shell", "response": {"error": "not found"}}}
    rows = [
        qwen("1", None, "user", [{"text": "go"}, {"text": "<hook>"}], systemPayload={"displayText": "go"}),
        qwen("2", "1", "assistant", [{"text": "hm", "thought": True}, ask], model="q", usageMetadata={"total": 1}),
        qwen("3", "2", "tool_result", [answer], toolCallResult={"callId": "t", "status": "error"}),
        qwen("3", "2", "tool_result", [answer]),
        qwen("4", "3", "assistant", [{"text": "done"}], model="q"),
        qwen("5", "1", "user", [{"text": "instead"}]),
        qwen("6", "5", "assistant", [{"text": "other"}]),
    ]
    result = readers.read(lines(tmp_path, *rows))
    trace = only(result)
    assert (result.source.format, result.uses["duplicate"]) == ("qwen_code", 1)
    assert [(r.text, r.is_error) for r in trace.steps[0].results] == [("not found", True)]
    assert said(trace, 1) == ["go<hook>", "call:t", "result:t"]
    assert [step.abandoned for step in trace.steps] == [True, True, False]
    assert said(trace, 2) == ["go<hook>", "instead"]
    assert [e.text for e in trace.events] == ["go", "instead"]


def test_a_qwen_compression_replaces_the_history(tmp_path: Path) -> None:
    history = [{"role": "user", "parts": [{"text": "summary"}]}, {"role": "model", "parts": [{"text": "ok"}]}]
    rows = [
        qwen("1", None, "user", [{"text": "go"}]),
        qwen("2", "1", "assistant", [{"text": "a"}]),
        qwen("3", "2", "system", [], subtype="chat_compression", systemPayload={"compressedHistory": history}),
        qwen("4", "3", "user", [{"text": "more"}]),
        qwen("5", "4", "assistant", [{"text": "b"}]),
    ]
    trace = only(QwenCode().read(lines(tmp_path, *rows)))
    assert (said(trace, 1), len(trace.steps)) == (["summary", "ok", "more"], 2)
    assert [(e.kind, e.before_step) for e in trace.events if e.kind == "compaction"] == [("compaction", 1)]


def test_recognises_qwen_and_not_claude() -> None:
    reader = QwenCode()
    row = qwen("1", None, "user", [])
    assert reader.recognises(Head.of([row]))
    assert not reader.recognises(Head.of([{**row, "message": {"role": "user", "content": "x"}}]))
    assert not reader.recognises(Head.of([{"role": "user", "parts": [{"text": "x"}]}]))
