"""Gemini CLI chats as a document and as a log: upserts, rewinds, replaced histories, states of calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.canonical import content_id
from postgrad.core.message import Reasoning, Text, ToolCall
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.gemini_cli.reader import GeminiCLI
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.storage.store import Store
from unit.traces.formats.said import said

META = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}


def user(id: str, words: Any) -> dict[str, Any]:
    return {"id": id, "type": "user", "timestamp": "2026-01-01T00:00:01Z", "content": words}


def gemini(id: str, words: Any = "", **fields: Any) -> dict[str, Any]:
    base = {"id": id, "type": "gemini", "timestamp": "2026-01-01T00:00:02Z", "content": words, "model": "g"}
    return {**base, **fields}


def tool(id: str, status: str = "success", said: Any = "out", **response: Any) -> dict[str, Any]:
    answer = {"functionResponse": {"id": id, "name": "read", "response": response or {"output": said}}}
    return {"id": id, "name": "read", "args": {"path": id}, "status": status, "result": [answer]}


def log(tmp_path: Path, *rows: dict[str, Any], name: str = "session.jsonl") -> ReadResult:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in (META, *rows)))
    assert readers.detect(path) == "gemini_cli"
    return GeminiCLI().read(path)


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def test_a_message_said_again_replaces_itself(tmp_path: Path) -> None:
    """Three records of one answer are one step, in all three records, with the last one's content."""
    first, second = gemini("m1"), gemini("m1", toolCalls=[tool("t", "executing") | {"result": None}])
    third = gemini("m1", toolCalls=[tool("t")], tokens={"input": 7})
    result = log(tmp_path, user("u", "go"), first, second, third, gemini("m2", "done"))
    trace = only(result)
    assert result.uses == {"metadata": 1, "context": 1, "superseded": 2, "step": 2}
    assert [step.records for step in trace.steps] == [(3, 4, 5), (6,)]
    assert (trace.steps[0].candidates[0].usage, trace.result_records) == ({"input": 7}, {"t": 5})
    assert said(trace, 1) == ["go", "call:t", "result:t"]


def test_document_and_log_are_one_session(tmp_path: Path) -> None:
    """A resumed chat is migrated to the log, and both files stay: the store gives one trace, the longer."""
    messages = [user("u", "go"), gemini("m1", toolCalls=[tool("t")])]
    document = tmp_path / "session.json"
    document.write_text(json.dumps({**META, "messages": messages}, indent=1))
    whole = readers.read(document)
    assert whole.source.format == "gemini_cli"
    assert whole.uses == {"metadata": 1, "context": 1, "step": 1}
    grown = log(tmp_path, *messages, gemini("m2", "done"))
    assert only(whole).id == only(grown).id
    assert (only(whole).steps[0].records, only(whole).result_records) == ((1,), {"t": 1})
    store = Store(tmp_path / "store")
    store.add(whole)
    store.add(grown)
    assert [len(trace.steps) for trace in store.traces()] == [2]


def test_a_document_cut_anywhere_is_read_to_its_last_whole_message(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    messages = [user("u", "go"), gemini("m1", toolCalls=[tool("t")]), gemini("m2", "done")]
    whole = json.dumps({**META, "messages": messages}, indent=1).encode()
    steps = []
    for stop in range(len(whole) // 4, len(whole) - 1, len(whole) // 20):
        path.write_bytes(whole[:stop])
        result = GeminiCLI().read(path)
        steps.append(sum(len(trace.steps) for trace in result.traces))
        assert len(result.diagnostics) > 0
    assert (steps, steps[-1]) == (sorted(steps), 1)
    assert readers.detect(path) == "gemini_cli"


def test_a_document_on_one_line_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps({**META, "messages": [user("u", "go"), gemini("m", "hi")]}))
    assert [step.records for step in only(readers.read(path)).steps] == [(1,)]


def test_a_rewind_leaves_a_branch(tmp_path: Path) -> None:
    """Back to before the second question: its answer is abandoned, the next goes on from the first."""
    rows = [user("u1", "one"), gemini("m1", "1"), user("u2", "two"), gemini("m2", "2"), {"$rewindTo": "u2"}]
    trace = only(log(tmp_path, *rows, user("u3", "three"), gemini("m3", "3")))
    assert [step.abandoned for step in trace.steps] == [False, True, False]
    assert (trace.steps[2].parent, said(trace, 2)) == (0, ["one", "1", "three"])
    assert [(e.record, e.before_step) for e in trace.events if e.kind == "rewind"] == [(6, 2)]


def test_a_rewind_to_an_unknown_message_takes_everything_back(tmp_path: Path) -> None:
    rows = [user("u1", "one"), gemini("m1", "1"), {"$rewindTo": "nobody"}, user("u2", "two"), gemini("m2", "2")]
    trace = only(log(tmp_path, *rows))
    assert ([step.abandoned for step in trace.steps], said(trace, 1)) == ([True, False], ["two"])


def test_an_upsert_of_an_earlier_message_is_no_reason_to_forget_it(tmp_path: Path) -> None:
    """The first answer is written again behind the second question, which is then taken back."""
    rows = [user("u1", "one"), gemini("m1"), user("u2", "two"), gemini("m1", "1"), {"$rewindTo": "u2"}]
    trace = only(log(tmp_path, *rows, user("u3", "three"), gemini("m3", "3")))
    assert ([step.abandoned for step in trace.steps], said(trace, 1)) == ([False, False], ["one", "1", "three"])


def test_a_compression_replaces_the_history_and_is_no_step(tmp_path: Path) -> None:
    """The summary and the model's nod are new messages without a model: context. The kept answer stays one step."""
    kept = gemini("m2", "2")
    summary = {"id": "s1", "type": "user", "content": [{"text": "summary"}]}
    nod = {"id": "s2", "type": "gemini", "content": [{"text": "Got it."}]}
    rows = [user("u1", "one"), gemini("m1", "1"), kept, {"$set": {"messages": [summary, nod, kept]}}]
    trace = only(log(tmp_path, *rows, user("u2", "two"), gemini("m3", "3")))
    assert [step.action.text for step in trace.steps] == ["1", "2", "3"]
    assert said(trace, 2) == ["summary", "Got it.", "2", "two"]
    assert [e.record for e in trace.events if e.kind == "compaction"] == [5]


def test_masked_results_change_later_contexts_only(tmp_path: Path) -> None:
    whole, masked = gemini("m1", toolCalls=[tool("t", said="long")]), gemini("m1", toolCalls=[tool("t", said="[cut]")])
    rows = [user("u", "go"), whole, gemini("m2", "2")]
    trace = only(log(tmp_path, *rows, {"$set": {"messages": [rows[0], masked, rows[2]]}}, gemini("m3", "3")))
    shown = [[r.text for m in trace.context(step) for r in m.tool_results] for step in trace.steps]
    assert (shown, len(trace.steps)) == ([[], ["long"], ["[cut]"]], 3)
    assert [e.kind for e in trace.events if e.record == 5] == ["masking"]


def test_a_snapshot_at_the_beginning_is_the_history(tmp_path: Path) -> None:
    trace = only(log(tmp_path, {"$set": {"messages": [user("u", "go"), gemini("m", "hi")]}}))
    assert (len(trace.steps), trace.steps[0].records) == (1, (2,))


@pytest.mark.parametrize(
    ("call", "is_error", "status", "text"),
    [
        (tool("t"), False, "ok", "out"),
        (tool("t", said="Command: x\nExit Code: 127"), False, "ok", "Command: x\nExit Code: 127"),
        (tool("t", "error", error="Tool not found"), True, "error", "Tool not found"),
        (
            tool("t", "cancelled", error="User did not allow tool call"),
            True,
            "rejected",
            "User did not allow tool call",
        ),
        (tool("t", "cancelled", error="Operation cancelled"), True, "interrupted", "Operation cancelled"),
        (tool("t", a=1, b=2), False, "ok", '{"a": 1, "b": 2}'),
        ({"id": "t", "name": "read", "args": {}, "status": "success", "result": None}, False, "ok", ""),
        ({"id": "t", "name": "read", "args": {}, "status": "success", "result": "plain"}, False, "ok", "plain"),
    ],
)
def test_only_the_status_says_whether_a_call_failed(
    tmp_path: Path, call: dict[str, Any], is_error: bool, status: str, text: str
) -> None:
    (step,) = only(log(tmp_path, user("u", "go"), gemini("m", toolCalls=[call]))).steps
    (result,) = step.results
    assert (result.is_error, result.status, result.text) == (is_error, status, text)


def test_a_running_call_has_no_result(tmp_path: Path) -> None:
    running = {"id": "t", "name": "read", "args": {}, "status": "executing", "resultDisplay": "so far"}
    trace = only(log(tmp_path, user("u", "go"), gemini("m", toolCalls=[running])))
    assert (trace.tool_calls, trace.tool_results, "so far" in str(trace)) == (1, 0, False)


def test_calls_and_thoughts_in_the_content_count_once(tmp_path: Path) -> None:
    """Newer versions keep the API's own parts; the list of calls beside them says the same."""
    parts = [
        {"text": "thinking", "thought": True},
        {"text": "Look."},
        {"functionCall": {"id": "t", "name": "read", "args": {"path": "t"}}},
    ]
    again = user("u2", [{"functionResponse": {"id": "t", "name": "read", "response": {"output": "out"}}}])
    answer = gemini("m", parts, toolCalls=[tool("t")], thoughts=[{"subject": "S", "description": "d"}])
    trace = only(log(tmp_path, user("u", "go"), answer, again, gemini("m2", "done")))
    assert [type(block) for block in trace.steps[0].action.blocks] == [Reasoning, Text, ToolCall]
    assert (trace.tool_calls, trace.tool_results, len(trace.orphans)) == (1, 1, 0)
    assert said(trace, 1) == ["go", "Look.", "call:t", "result:t"]


def test_other_messages_are_events_or_unknown(tmp_path: Path) -> None:
    other = [
        {"id": "e", "type": "error", "content": "[API Error: 429]"},
        {"id": "i", "type": "info", "content": "Request cancelled."},
        {"id": "n", "type": "telemetry", "content": "x"},
        {"no": "id"},
    ]
    result = log(tmp_path, user("u", "go"), *other, gemini("m", "hi"))
    kinds = [(e.kind, e.record) for e in only(result).events]
    assert kinds == [("user_text", 2), ("api_error", 3), ("interrupt", 4)]
    assert result.uses["unknown"] == 2
    assert sorted(told.line or 0 for told in result.diagnostics) == [5, 6]


def test_a_subagents_file_names_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "parent-session" / "agent.jsonl"
    path.parent.mkdir(parents=True)
    rows = [{**META, "sessionId": "agent", "kind": "subagent"}, user("u", "go"), gemini("m", "hi")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trace = only(readers.read(path))
    assert (trace.parent, trace.steps[0].kind) == (content_id(["gemini_cli", "parent-session"]), "subagent")


def test_what_the_recorder_cut_is_said(tmp_path: Path) -> None:
    trace = only(log(tmp_path, user("u", "go"), gemini("m", toolCalls=[tool("t", said="x" * 51200)]), gemini("n", "k")))
    assert [step.request.fidelity for step in trace.steps] == ["reconstructed", "partial"]
    assert trace.steps[1].request.missing[-1] == "cut tool outputs"


def test_recognises_its_own_and_not_its_look_alikes(tmp_path: Path) -> None:
    reader = GeminiCLI()
    assert reader.recognises(Head.of([META, user("u", "go")]))
    assert reader.recognises(Head.of([], document={**META, "messages": [gemini("m")]}))
    assert not reader.recognises(Head.of([META, {"id": "m", "type": "qwen", "content": "x"}]))
    assert not reader.recognises(Head.of([], document={"sessionId": "s", "messages": [user("u", "go")]}))
    assert not reader.recognises(Head.of([], document=[{"sessionId": "s", "messageId": 0, "type": "user"}]))
    assert not reader.recognises(Head.of([], document=[{"role": "user", "parts": [{"text": "x"}]}]))
