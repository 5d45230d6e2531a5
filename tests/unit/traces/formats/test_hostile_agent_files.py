"""Damaged files of the coding agents: nothing raises, every record is accounted for, and no reader takes another's."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from postgrad.traces import readers
from postgrad.traces.records import BLANK, ReadResult
from postgrad.traces.sources.head import Head
from unit.traces.formats.claude_file import ClaudeFile, call
from unit.traces.formats.claude_file import text as said
from unit.traces.formats.codex_file import CodexFile
from unit.traces.formats.opencode_store import OpenCodeStore, text, tool

Rows = list[dict[str, Any]]
TRIED = 130  # changes a file
WRONG: tuple[Any, ...] = (None, 7, -1.5, True, "", "x", [], [None, 1, "a"], {}, {"a": None}, [[{}]])


def claude() -> Rows:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", {"type": "thinking", "thinking": "hm"}, call("t1"), usage={"output_tokens": 1})
    file.result("t1", [said("out")], is_error=True)
    file.row("system", subtype="compact_boundary", parent=None, logicalParentUuid="u3", compactMetadata={"a": 1})
    file.row("attachment", attachment={"type": "queued_command", "prompt": "x"})
    file.assistant("m2", said("done"))
    return file.rows


def claude_stream() -> Rows:
    message = {"id": "msg_1", "role": "assistant", "content": [call("t1")], "model": "c", "usage": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}
    base = {"session_id": "s", "parent_tool_use_id": None, "uuid": "1"}
    return [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"], "permissionMode": "default"},
        {**base, "type": "assistant", "message": message},
        {**base, "type": "user", "message": result, "uuid": "2"},
        {"type": "result", "subtype": "success", "result": "x", "usage": {}, "is_error": False},
    ]


def codex() -> Rows:
    file = CodexFile("child", forked_from_id="parent", base_instructions={"text": "b"}, dynamic_tools=[{"name": "t"}])
    file.meta("parent", source={"subagent": {"thread_spawn": {"parent_thread_id": "x"}}})
    file.row("turn_context", model="m", sandbox_policy={"mode": "x"})
    file.clock += 60
    file.user("go")
    file.tokens(3)
    file.thinks("hm")
    file.calls("a")
    file.output("a", json.dumps({"output": "x", "metadata": {"exit_code": 1}}))
    file.event("mcp_tool_call_end", call_id="a", result={"Ok": {"isError": True}})
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}]
    file.row("compacted", message="m", replacement_history=history)
    file.event("thread_rolled_back", num_turns=1)
    file.event("turn_aborted", reason="interrupted")
    file.says("done")
    return file.rows


def codex_exec() -> Rows:
    command = {"id": "1", "type": "command_execution", "command": "ls", "aggregated_output": "a", "exit_code": 0}
    tool = {"id": "2", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}, "result": {"content": []}}
    return [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": {**command, "status": "completed"}},
        {"type": "item.completed", "item": {**tool, "error": {"message": "m"}, "status": "failed"}},
        {"type": "item.completed", "item": {"id": "3", "type": "agent_message", "text": "done"}},
        {"type": "turn.failed", "error": {"message": "m"}},
    ]


def gemini() -> Rows:
    response = {"functionResponse": {"id": "t", "name": "n", "response": {"output": "o"}}}
    tools = [{"id": "t", "name": "n", "args": {"a": 1}, "status": "success", "result": [response], "agentId": "x"}]
    answer = {"id": "m", "type": "gemini", "content": [{"text": "hi"}], "toolCalls": tools, "model": "g", "tokens": {}}
    ask = {"id": "u", "type": "user", "content": [{"text": "go"}], "timestamp": "t"}
    return [
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        ask,
        {**answer, "thoughts": [{"subject": "s", "description": "d"}]},
        {"$set": {"messages": [ask, answer]}},
        {"id": "i", "type": "info", "content": "x"},
        {"$rewindTo": "i"},
        {"id": "m2", "type": "gemini", "content": "done"},
    ]


def qwen() -> Rows:
    def row(uuid: str, parent: str | None, type: str, *parts: Any, **fields: Any) -> dict[str, Any]:
        tree = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": type}
        return {**tree, "message": {"role": "user", "parts": list(parts)}, **fields}

    answer = {"functionResponse": {"id": "t", "name": "n", "response": {"output": "o"}}}
    history = [{"role": "model", "parts": [{"text": "x"}]}]
    return [
        row("1", None, "user", {"text": "go"}, systemPayload={"displayText": "go"}),
        row("2", "1", "assistant", {"functionCall": {"id": "t", "name": "n", "args": {}}}, usageMetadata={}),
        row("3", "2", "tool_result", answer, toolCallResult={"status": "success"}),
        row("4", "3", "system", subtype="chat_compression", systemPayload={"compressedHistory": history}),
        row("5", "1", "assistant", {"text": "done"}),
    ]


def opencode(tmp_path: Path) -> Rows:
    store = OpenCodeStore()
    tail = store.user(text("go"), {"type": "file", "mime": "image/png", "url": "data:image/png;base64,eA=="})
    store.assistant(tool("a", metadata={"exit": 1, "sessionId": "x"}, time={"compacted": 5}), text("x"))
    asked = store.user({"type": "compaction", "tail_start_id": tail})
    store.assistant(text("sum"), summary=True, parentID=asked, error={"name": "x", "data": {"message": "m"}})
    return [json.loads(line) for line in store.stream(tmp_path / "e.jsonl").read_text().splitlines()]


FILES: dict[str, Callable[[Path], Rows]] = {
    "claude_code": lambda _: claude(),
    "claude_stream": lambda _: claude_stream(),
    "codex_cli": lambda _: codex(),
    "codex_exec": lambda _: codex_exec(),
    "gemini_cli": lambda _: gemini(),
    "qwen_code": lambda _: qwen(),
    "opencode": opencode,
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def with_wrong(rows: Rows, path: tuple[Any, ...], wrong: Any) -> Rows:
    changed = copy.deepcopy(rows)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = wrong
    return changed


def data(rows: Rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def check(path: Path, format: str, content: bytes) -> ReadResult:
    path.write_bytes(content)
    result = readers.read(path, format)
    assert sum(result.uses.values()) == sum(record.status != BLANK for record in result.records)
    for trace in result.traces:
        assert all(trace.context(step) is not None for step in trace.steps)
        assert set(trace.result_records) == {result.call_id for step in trace.steps for result in step.results}
    return result


@pytest.mark.parametrize("format", FILES)
def test_values_of_the_wrong_type_never_raise(tmp_path: Path, format: str) -> None:
    """Values all over the file become, one at a time, null, a number, a text, a list, an object."""
    rows = FILES[format](tmp_path)
    path = tmp_path / "file.jsonl"
    changes = [(place, wrong) for place in places(rows) if len(place) > 1 for wrong in WRONG]
    for place, wrong in changes[:: len(changes) // TRIED + 1]:
        check(path, format, data(with_wrong(rows, place, wrong)))


@pytest.mark.parametrize("format", FILES)
def test_torn_and_interleaved_files_are_read_as_far_as_they_go(tmp_path: Path, format: str) -> None:
    """Cut anywhere, rows turned around, doubled, glued, and with foreign lines between them."""
    rows = FILES[format](tmp_path)
    whole = data(rows)
    path = tmp_path / "file.jsonl"
    for stop in range(0, len(whole), len(whole) // 25):
        check(path, format, whole[:stop])
        check(path, format, whole[stop:])
    check(path, format, data(rows[::-1]))
    check(path, format, data([row for row in rows for _ in range(2)]))
    check(path, format, whole.replace(b"}\n{", b"}{"))
    foreign = b'\n\0\0\n[1]\nnull\n"x"\n{"type": "hologram"}\n{}\n\xff\xfe{"a"\n'
    check(path, format, foreign.join(whole.splitlines(keepends=True)))


@pytest.mark.parametrize("format", FILES)
def test_a_cut_line_is_told_with_its_place(tmp_path: Path, format: str) -> None:
    whole = data(FILES[format](tmp_path))
    lines = whole.count(b"\n")
    result = check(tmp_path / "file.jsonl", format, whole[:-3])
    (told,) = [told for told in result.diagnostics if "truncated" in told.what]
    assert (told.line, told.offset) == (lines, whole[:-1].rindex(b"\n") + 1)


@pytest.mark.parametrize("format", FILES)
def test_lone_surrogates_and_odd_separators_pass(tmp_path: Path, format: str) -> None:
    whole = data(FILES[format](tmp_path)).replace(b'"go"', b'"g\\ud83d\xe2\x80\xa8o"')
    assert b"\xa8o" in whole or format in ("claude_stream", "codex_exec")
    before = check(tmp_path / "file.jsonl", format, data(FILES[format](tmp_path)))
    after = check(tmp_path / "file.jsonl", format, whole)
    assert [len(trace.steps) for trace in after.traces] == [len(trace.steps) for trace in before.traces]


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0\0\0", b"not json", b"[]", b"{}"])
def test_empty_files_give_no_trace(tmp_path: Path, format: str, content: bytes) -> None:
    path = tmp_path / "file"
    assert len(check(path, format, content).traces) == 0


@pytest.mark.parametrize("format", FILES)
def test_no_reader_takes_the_files_of_another(tmp_path: Path, format: str) -> None:
    head = Head.of(FILES[format](tmp_path))
    assert [name for name in FILES if readers.reader(name).recognises(head)] == [format]


LOOK_ALIKES: dict[str, Any] = {
    "amp thread": {"id": "T-1", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
    "crush": {"id": "s", "title": "t", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text"}]}]},
    "zed thread": {"version": "1.0", "messages": [{"User": {"content": [{"Text": "x"}]}}], "title": "t"},
    "windsurf": {"trajectory": {"steps": [{"type": "CORTEX_STEP_TYPE_USER_INPUT"}]}},
    "warp": {"conversation_id": "c", "exchanges": [{"input": "x", "output": "y"}]},
    "helicone": {"request": {"id": "r"}, "response": {"body": {}}, "model": "m", "properties": {}},
    "braintrust": {"id": "x", "span_id": "s", "root_span_id": "r", "input": [], "output": "x", "scores": {}},
    "iflow": {
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "session-1",
        "type": "assistant",
        "message": {"id": "response-1", "content": []},
    },
    "cursor": {"role": "assistant", "message": {"content": [{"type": "text", "text": "x"}]}},
    "kimi": {"type": "context.append_message", "message": {"role": "user", "content": []}, "time": 1},
    "copilot": {"type": "assistant.message", "data": {"content": "x"}, "id": "1", "parentId": None, "timestamp": "t"},
    "droid": {"type": "message", "id": "1", "timestamp": "t", "message": {"role": "user", "content": []}},
    "gemini api": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
    "responses api": {"type": "response.output_item.done", "item": {"type": "message"}},
    "trae": {"timestamp": "t", "type": "session_meta", "payload": {"id": "a", "cwd": "/", "model_provider": "trae"}},
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_files_of_other_tools_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(LOOK_ALIKES[name]) + "\n")
    assert [known for known in FILES if readers.reader(known).recognises(Head(path))] == []
