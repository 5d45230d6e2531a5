"""opencode: four forms of one session, what the model saw of it, forks, generations, and events that grow."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.canonical import content_id
from postgrad.core.message import Reasoning, Text, ToolCall
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.opencode.reader import OpenCode
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from unit.traces.formats.opencode_store import OpenCodeStore, text, tool
from unit.traces.formats.said import said

FORMS = {"export": "export.json", "folder": "storage", "database": "opencode.db", "stream": "events.jsonl"}
ABORTED = {"name": "MessageAbortedError", "data": {"message": "stopped"}}


def write(tmp_path: Path, store: OpenCodeStore, form: str) -> Path:
    path: Path = getattr(store, form)(tmp_path / FORMS[form])
    return path


def read(tmp_path: Path, store: OpenCodeStore, form: str = "export") -> ReadResult:
    return readers.read(write(tmp_path, store, form))


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_session(tmp_path: Path, form: str) -> None:
    """Two calls and an answer: the same id, actions, results and contexts, whatever they were read from."""
    store = OpenCodeStore()
    store.user(text("go"), text("[branch: main]", synthetic=True), text("hidden", ignored=True))
    store.assistant(
        {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "sig"}}},
        text("Look."),
        tool("a"),
        tool("b", "error"),
        reason="tool-calls",
    )
    store.assistant(text("done"))
    result = read(tmp_path, store, form)
    trace = only(result)
    assert (result.source.format, trace.id) == ("opencode", content_id(["opencode", "ses_1"]))
    first, last = trace.steps
    assert first.action.blocks[0] == Reasoning("hm", signature="sig")
    assert [type(block) for block in first.action.blocks[1:]] == [Text, ToolCall, ToolCall]
    assert [(r.text, r.is_error, r.status) for r in first.results] == [
        ("out a", False, "ok"),
        ("failed", True, "error"),
    ]
    assert (first.candidates[0].model, first.candidates[0].stop_reason) == ("m", "tool-calls")
    assert (first.candidates[0].usage, last.candidates[0].usage) == ({"input": 4}, {"input": 1})
    assert said(trace, 1) == ["go[branch: main]", "Look.", "call:a", "call:b", "result:a", "result:b"]
    assert [e.text for e in trace.events if e.kind == "user_text"] == ["go"]
    assert sum(result.uses.values()) == len(result.records)
    assert first.time == "2023-11-14T22:13:22+00:00"


def test_spans_of_one_message_are_steps(tmp_path: Path) -> None:
    """Old versions hold several calls of the model in one message."""
    start, finish = {"type": "step-start"}, {"type": "step-finish", "reason": "x", "tokens": {}}
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(start, tool("a"), finish, start, text("done"), finish, spans=False)
    trace = only(read(tmp_path, store, "folder"))
    assert (len(trace.steps), said(trace, 1)) == (2, ["go", "call:a", "result:a"])


def test_an_answer_without_spans_is_one_step(tmp_path: Path) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(text("one"), text("two"), spans=False)
    assert [step.action.text for step in only(read(tmp_path, store)).steps] == ["onetwo"]


@pytest.mark.parametrize(
    ("part", "is_error", "status"),
    [
        (tool("a", metadata={"exit": 0}), False, "ok"),
        (tool("a", metadata={"exit": 2}), True, "error"),
        (tool("a", "error", error="File not found"), True, "error"),
        (tool("a", "error", error="Tool execution aborted"), True, "interrupted"),
        (tool("a", "error", error="The user rejected permission to use this specific tool call."), True, "rejected"),
        (tool("a", "error", metadata={"interrupted": True, "output": "so far"}), True, "interrupted"),
    ],
)
def test_states_of_calls(tmp_path: Path, part: dict[str, Any], is_error: bool, status: str) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(part)
    (result,) = only(read(tmp_path, store)).steps[0].results
    assert (result.is_error, result.status) == (is_error, status)


def test_a_correction_comes_with_the_refusal(tmp_path: Path) -> None:
    words = "The user rejected permission to use this specific tool call with the following feedback: use rg"
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(tool("a", "error", error=words))
    (feedback,) = only(read(tmp_path, store)).steps[0].feedback
    assert (feedback.kind, feedback.text) == ("user_correction", "use rg")


@pytest.mark.parametrize("status", ["pending", "running"])
def test_open_calls_have_no_result(tmp_path: Path, status: str) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(tool("a", status, input={}, raw='{"com'))
    trace = only(read(tmp_path, store))
    assert (trace.tool_calls, trace.tool_results) == (1, 0)
    assert trace.steps[0].action.tool_calls[0].arguments_raw == '{"com'


def test_answers_that_failed_are_not_seen_later(tmp_path: Path) -> None:
    """An API error is left out of later contexts; what the user stopped stays if there was something."""
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(text("lost"), error={"name": "APIError", "data": {"message": "529"}})
    store.assistant(text("half"), error=ABORTED)
    store.assistant({"type": "reasoning", "text": "only thought"}, error=ABORTED, spans=False)
    store.assistant(error=ABORTED, spans=False)
    store.assistant(text("done"))
    trace = only(read(tmp_path, store))
    assert said(trace, 3) == ["go", "half"]
    kinds = [(e.kind, e.before_step) for e in trace.events if e.kind != "user_text"]
    assert kinds == [("api_error", 1), ("interrupt", 2), ("interrupt", 3), ("interrupt", 3)]


def test_cleared_outputs_are_a_note_from_then_on(tmp_path: Path) -> None:
    """The output was cleared at second 3.5: the answer of second 3 still saw it, that of second 4 does not."""
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(tool("a", time={"start": 1, "end": 2, "compacted": 1_700_000_003_500}))
    store.assistant(text("one"))
    store.assistant(text("two"))
    trace = only(read(tmp_path, store, "database"))
    shown = [[r.text for m in trace.context(step) for r in m.tool_results] for step in trace.steps]
    assert shown == [[], ["out a"], ["[Old tool result content cleared]"]]
    assert trace.steps[0].results[0].text == "out a"


def test_after_a_compaction_the_context_is_summary_and_tail(tmp_path: Path) -> None:
    store = OpenCodeStore()
    store.user(text("one"))
    store.assistant(text("1"))
    tail = store.user(text("two"))
    store.assistant(text("2"))
    asked = store.user({"type": "compaction", "auto": True, "tail_start_id": tail})
    store.assistant(text("summary"), summary=True, parentID=asked, finish="stop")
    store.user(text("three"))
    store.assistant(text("3"))
    trace = only(read(tmp_path, store))
    assert [step.kind for step in trace.steps] == ["main", "main", "compaction", "main"]
    assert said(trace, 2) == ["one", "1", "two", "2", "What did we do so far?"]
    assert said(trace, 3) == ["What did we do so far?", "summary", "two", "2", "three"]
    assert [e.before_step for e in trace.events if e.kind == "compaction"] == [2]


def test_what_the_user_undid_is_abandoned(tmp_path: Path) -> None:
    store = OpenCodeStore(revert={"messageID": "msg_0003"})
    store.user(text("one"))
    store.assistant(text("1"))
    store.user(text("two"))
    store.assistant(text("2"))
    trace = only(read(tmp_path, store, "database"))
    assert [step.abandoned for step in trace.steps] == [False, True]


def test_a_tools_session_is_a_trace_of_its_own(tmp_path: Path) -> None:
    store = OpenCodeStore("ses_main")
    store.user(text("go"))
    store.assistant(tool("a", name="task", metadata={"sessionId": "ses_sub"}))
    store.begin("ses_sub", parentID="ses_main")
    store.user(text("do it"))
    store.assistant(text("ok"), agent="explore")
    main, sub = read(tmp_path, store, "folder").traces
    assert (sub.parent, sub.steps[0].kind, sub.steps[0].agent) == (main.id, "subagent", "explore")
    assert [e.data for e in main.events if e.kind == "spawn"] == [{"agent": "ses_sub", "call": "a"}]


@pytest.mark.parametrize("linked", [True, False])
def test_copies_of_a_fork_count_once(tmp_path: Path, linked: bool) -> None:
    """A fork holds the parent's question and answer under new ids (with their times) and one answer of its own."""
    store = OpenCodeStore("ses_a")
    store.user(text("go"))
    store.assistant(tool("a"))
    store.begin("ses_b", **({"parentID": "ses_a"} if linked else {}))
    store.user(text("go"))
    store.assistant(tool("a"))
    for place in (0, 1):
        time = store.messages[place][0]["time"]
        store.messages[place + 2][0]["time"] = {"created": time["created"] + 7} if linked else time
    store.user(text("more"))
    store.assistant(text("b"))
    result = read(tmp_path, store, "database")
    first, fork = result.traces
    assert ([len(t.steps) for t in result.traces], fork.parent) == ([1, 1], first.id)
    assert said(fork, 0) == ["go", "call:a", "result:a", "more"]
    assert fork.steps[0].kind == "main"
    assert result.uses["copied"] == 4  # two messages, a text, a call


def test_a_stream_grows_and_the_last_word_counts(tmp_path: Path) -> None:
    """Text in pieces, then whole; a call that is pending, running, completed: one step of three parts."""
    home = {"sessionID": "s", "messageID": "m"}
    piece = {**home, "partID": "p1", "field": "text"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message.updated", {"info": {"id": "m", "sessionID": "s", "role": "assistant", "time": {"created": 1}}}),
        ("message.part.updated", {"part": {**home, "id": "p0", "type": "step-start"}}),
        ("message.part.updated", {"part": {**home, "id": "p1", "type": "text", "text": ""}}),
        ("message.part.delta", {**piece, "delta": "Hel"}),
        ("message.part.delta", {**piece, "delta": "lo"}),
        ("message.part.updated", {"part": {**home, "id": "p2", **tool("a", "pending")}}),
        ("message.part.updated", {"part": {**home, "id": "p2", **tool("a", "running")}}),
        ("permission.asked", {"sessionID": "s", "permission": "bash", "tool": {"callID": "a"}}),
        ("permission.replied", {"sessionID": "s", "reply": "reject"}),
        ("message.part.updated", {"part": {**home, "id": "p2", **tool("a")}}),
        ("message.part.delta", {**piece, "partID": "nobody", "delta": "x"}),
        ("session.error", {"sessionID": "s", "error": ABORTED}),
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps({"type": kind, "properties": p}) + "\n" for kind, p in events))
    result = readers.read(path)
    trace = only(result)
    assert (trace.steps[0].action.text, trace.tool_results, trace.result_records) == ("Hello", 1, {"a": 10})
    assert result.uses == {"step": 2, "ui": 1, "superseded": 4, "result": 1, "event": 3, "orphan_delta": 1}
    kinds = [(e.kind, e.record, e.before_step) for e in trace.events]
    assert kinds == [("approval", 8, 1), ("approval", 9, 1), ("interrupt", 12, 1)]
    assert [told.line for told in result.diagnostics] == [11]


def test_events_as_they_come_over_the_wire(tmp_path: Path) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(tool("a"))
    rows = store.stream(tmp_path / "events.jsonl").read_text().splitlines()
    path = tmp_path / "events.txt"
    path.write_text(": hello\n\n" + "".join(f"data: {json.dumps(json.loads(row)['event'])}\n\n" for row in rows)[:-9])
    result = readers.read(path)
    assert (only(result).id, only(result).tool_results) == (content_id(["opencode", "ses_1"]), 1)
    assert [told.line for told in result.diagnostics if "truncated" in told.what] == [2 * len(rows) + 1]
    assert result.uses["metadata"] == 2


def test_what_run_prints_is_a_stream_too(tmp_path: Path) -> None:
    home = {"messageID": "m"}
    rows = [
        {"type": "step_start", "sessionID": "s", "part": {**home, "id": "p0", "type": "step-start"}},
        {"type": "tool_use", "sessionID": "s", "part": {**home, "id": "p1", **tool("a")}},
        {
            "type": "step_finish",
            "sessionID": "s",
            "part": {**home, "id": "p2", "type": "step-finish", "reason": "stop"},
        },
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trace = only(readers.read(path))
    assert (len(trace.steps), trace.tool_results, trace.id) == (1, 1, content_id(["opencode", "s"]))


def second_generation(path: Path, *, sessions: dict[str, list[tuple[str, dict[str, Any]]]]) -> Path:
    with sqlite3.connect(path) as base:
        base.execute("create table if not exists session (id text, parent_id text, version text, time_created int)")
        base.execute("create table session_message (id text, session_id text, type text, time_created int, data text)")
        for session, rows in sessions.items():
            for place, (kind, data) in enumerate(rows):
                row = (f"evt_{session}_{place}", session, kind, place, json.dumps({"time": {"created": place}, **data}))
                base.execute("insert into session_message values (?, ?, ?, ?, ?)", row)
    base.close()
    return path


def answer(words: str, *tools: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    content = [{"type": "text", "text": words}, *tools]
    return "assistant", {"content": content, "model": {"id": "m"}, "finish": "stop", "tokens": {"input": 1}}


def test_the_second_generation_of_tables(tmp_path: Path) -> None:
    done = {"status": "completed", "input": {"c": 1}, "content": [{"type": "text", "text": "ok"}], "structured": {}}
    call = {"type": "tool", "id": "a", "name": "bash", "state": done}
    rows = [
        ("user", {"text": "go"}),
        answer("one", call),
        ("compaction", {"summary": "short", "reason": "auto"}),
        ("user", {"text": "more"}),
        answer("two"),
    ]
    result = readers.read(second_generation(tmp_path / "opencode.db", sessions={"s": rows}))
    trace = only(result)
    assert [step.action.text for step in trace.steps if step.kind == "main"] == ["one", "two"]
    assert said(trace, len(trace.steps) - 1)[-3:] == ["What did we do so far?", "short", "more"]
    assert (trace.tool_results, trace.steps[0].candidates[0].model) == (1, "m")


def test_a_store_with_two_generations_gives_each_session_once(tmp_path: Path) -> None:
    """The older tables hold both sessions, the newer one of them."""
    store = OpenCodeStore("ses_a")
    store.user(text("go"))
    store.assistant(text("a"))
    store.begin("ses_b")
    store.user(text("hello"))
    store.assistant(text("b"))
    path = store.database(tmp_path / "opencode.db")
    second_generation(path, sessions={"ses_b": [("user", {"text": "hello"}), answer("b")]})
    result = readers.read(path)
    assert [(t.id, len(t.steps)) for t in result.traces] == [
        (content_id(["opencode", s]), 1) for s in ("ses_a", "ses_b")
    ]
    assert result.uses["duplicate"] == 6


def test_parts_without_their_message_are_said(tmp_path: Path) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(text("ok"))
    path = store.folder(tmp_path / "storage")
    (path / "message" / "ses_1" / "msg_0001.json").unlink()
    result = readers.read(path)
    assert (result.uses["orphan_part"], len(only(result).steps)) == (1, 1)
    assert any("message is not in the source" in told.what for told in result.diagnostics)


def test_broken_rows_files_and_documents_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    """A row whose data is no JSON, a file cut in the middle, and an export cut anywhere."""
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant(tool("a"))
    store.assistant(text("done"))
    path = store.database(tmp_path / "opencode.db")
    with sqlite3.connect(path) as base:
        base.execute("update part set data = '{torn' where id = 'prt_0002_01'")
    base.close()
    result = readers.read(path)
    assert (len(only(result).steps), only(result).tool_calls, result.uses["unreadable"]) == (2, 0, 1)
    folder = store.folder(tmp_path / "storage")
    (folder / "part" / "msg_0002" / "prt_0002_01.json").write_text('{"type": "to')
    result = readers.read(folder)
    assert (len(only(result).steps), result.uses["unreadable"], len(result.diagnostics)) == (2, 1, 1)
    whole = store.export(tmp_path / "export.json").read_bytes()
    counts = []
    for stop in range(len(whole) // 2, len(whole), len(whole) // 20):
        (tmp_path / "cut.json").write_bytes(whole[:stop])
        cut = readers.read(tmp_path / "cut.json", "opencode")
        counts.append(sum(len(trace.steps) for trace in cut.traces))
        assert len(cut.diagnostics) > 0
    assert (counts, counts[-1] > 0) == (sorted(counts), True)
    assert readers.detect(tmp_path / "cut.json") == "opencode"


def test_unknown_parts_stay_whole(tmp_path: Path) -> None:
    store = OpenCodeStore()
    store.user(text("go"))
    store.assistant({"type": "future-part", "x": 1}, text("ok"))
    result = read(tmp_path, store, "stream")
    assert [type(block).__name__ for block in only(result).steps[0].action.blocks] == ["Opaque", "Text"]
    assert (result.uses["unknown"], len(result.diagnostics)) == (1, 1)


def test_recognises_its_own_and_not_its_look_alikes(tmp_path: Path) -> None:
    reader = OpenCode()
    info = {"id": "m", "sessionID": "s", "role": "user"}
    assert reader.recognises(Head.of([{"type": "message.updated", "properties": {"info": info}}]))
    assert reader.recognises(Head.of([], document={"info": {"id": "s"}, "messages": [{"info": info, "parts": []}]}))
    assert not reader.recognises(Head.of([{"type": "message.updated", "properties": {"text": "x"}}]))
    assert not reader.recognises(Head.of([], document={"messages": [{"role": "user", "parts": []}]}))
    assert not reader.recognises(Head.of([], document={"info": {"model": "x"}, "messages": [{"role": "user"}]}))
    (tmp_path / "other" / "message").mkdir(parents=True)
    assert not reader.recognises(Head(tmp_path / "other"))
    with sqlite3.connect(tmp_path / "x.db") as base:
        base.execute("create table message (id text)")
    base.close()
    assert not reader.recognises(Head(tmp_path / "x.db"))
