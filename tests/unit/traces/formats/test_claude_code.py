"""The warts of Claude Code files, one small file each."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from postgrad.core.message import Media, Opaque, Reasoning, Text, ToolResult
from postgrad.core.trace import Trace
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from unit.traces.formats.claude_file import ClaudeFile, call, text


def read(tmp_path: Path, file: ClaudeFile) -> ReadResult:
    return ClaudeCode().read(file.write(tmp_path / "session.jsonl"))


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def said(trace: Trace, step: int) -> list[str]:
    """The context of a step as words: texts, `call:id` and `result:id`."""
    words = []
    for message in trace.context(trace.steps[step]):
        words += [message.text] if message.text else []
        words += [f"call:{c.id}" for c in message.tool_calls] + [f"result:{r.call_id}" for r in message.tool_results]
    return words


def test_rows_of_one_message_are_one_step_with_the_last_rows_usage(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", {"type": "thinking", "thinking": "hm", "signature": "s"}, usage={"output_tokens": 1})
    file.assistant("m1", text("Look."), usage={"output_tokens": 2})
    file.assistant("m1", call("t1", command="ls"), usage={"output_tokens": 9}, stop_reason="tool_use")
    trace = only(read(tmp_path, file))
    (step,) = trace.steps
    assert [type(block).__name__ for block in step.action.blocks] == ["Reasoning", "Text", "ToolCall"]
    assert step.action.blocks[0] == Reasoning("hm", signature="s")
    assert (step.candidates[0].usage, step.candidates[0].stop_reason) == ({"output_tokens": 9}, "tool_use")
    assert (step.records, said(trace, 0)) == ((2, 3, 4), ["go"])
    assert step.request.fidelity == "reconstructed"


def test_parallel_results_are_siblings_and_all_in_the_next_context(tmp_path: Path) -> None:
    """Each result hangs on its own call's row, so the walk from the next answer meets result 3 only."""
    file = ClaudeFile()
    file.user("go")
    rows = [file.assistant("m1", call(f"t{n}")) for n in (1, 2, 3)]
    for n, row in enumerate(rows, 1):
        file.result(f"t{n}", f"out {n}", parent=row)
    file.assistant("m2", text("done"))
    trace = only(read(tmp_path, file))
    assert said(trace, 1) == ["go", "call:t1", "call:t2", "call:t3", "result:t1", "result:t2", "result:t3"]
    assert trace.result_records == {"t1": 5, "t2": 6, "t3": 7}


def test_a_result_between_two_rows_of_one_answer_stands_after_it(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    first = file.assistant("m1", call("t1"))
    between = file.result("t1", parent=first)
    second = file.assistant("m1", call("t2"), parent=between)
    file.result("t2", parent=second)
    file.assistant("m2", text("done"))
    trace = only(read(tmp_path, file))
    assert len(trace.steps) == 2
    assert said(trace, 0) == ["go"]
    assert said(trace, 1) == ["go", "call:t1", "call:t2", "result:t1", "result:t2"]


def test_a_row_written_twice_is_one_row(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    file.result("t1")
    file.rows.append({**file.rows[2], "sessionId": "another", "timestamp": "2027-01-01T00:00:00Z"})
    result = read(tmp_path, file)
    assert only(result).tool_results == 1
    assert result.uses == {"context": 1, "step": 1, "result": 1, "duplicate": 1}


def test_rows_without_message_id_are_steps_of_their_own(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant(None, text("one"))
    file.assistant(None, text("two"))
    assert [step.action.text for step in only(read(tmp_path, file)).steps] == ["one", "two"]


def test_calls_without_result_and_results_without_call(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.result("lost")
    file.assistant("m1", call("t1"), call("t2"))
    file.result("t1")
    result = read(tmp_path, file)
    trace = only(result)
    assert (trace.tool_calls, [r.call_id for r in trace.steps[0].results]) == (2, ["t1"])
    assert [orphan.call_id for orphan in trace.orphans] == ["lost"]
    assert result.uses["orphan_result"] == 1
    assert [(told.line, "call is not in the file" in told.what) for told in result.diagnostics] == [(2, True)]
    assert said(trace, 0) == ["go"]


def test_equal_call_ids_are_matched_to_the_nearest_open_call_before(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    for n in (1, 2):
        file.assistant(f"m{n}", call("0", command=str(n)))
        file.result("0", f"out {n}")
    file.assistant("m3", text("done"))
    trace = only(read(tmp_path, file))
    pairs = [(step.action.tool_calls[0].id, step.results[0].text) for step in trace.steps[:2]]
    assert pairs == [("0", "out 1"), ("0~2", "out 2")]
    assert trace.steps[1].action.tool_calls[0].provider_id == "0"


def test_after_a_compaction_the_context_is_the_summary(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("old words")
    last = file.assistant("m1", text("old answer"))
    file.row("system", subtype="compact_boundary", parent=None, logicalParentUuid=last, content="Compacted")
    file.user("the summary", isCompactSummary=True)
    file.assistant("m2", text("new answer"))
    trace = only(read(tmp_path, file))
    assert said(trace, 1) == ["the summary"]
    assert [(event.kind, event.before_step) for event in trace.events if event.kind == "compaction"] == [
        ("compaction", 1)
    ]


def test_a_rewound_branch_sees_only_its_own_past(tmp_path: Path) -> None:
    file = ClaudeFile()
    start = file.user("go")
    file.assistant("m1", text("first try"))
    file.user("other words", parent=start)
    file.assistant("m2", text("second try"))
    trace = only(read(tmp_path, file))
    assert said(trace, 1) == ["go", "other words"]


def test_a_branch_that_was_left_is_marked(tmp_path: Path) -> None:
    """Three answers; the user goes back behind the first and asks again: 2 and 3 are left, 4 goes on from 1."""
    file = ClaudeFile()
    file.user("go")
    back = file.assistant("m1", text("one"))
    file.user("two?")
    file.assistant("m2", call("t1"))
    file.result("t1")
    file.assistant("m3", text("three"))
    file.user("instead", parent=back)
    file.assistant("m4", text("four"))
    trace = only(read(tmp_path, file))
    assert [step.abandoned for step in trace.steps] == [False, True, True, False]
    assert [step.parent for step in trace.steps] == [None, None, None, 0]


def test_going_back_without_an_answer_leaves_the_branch_too(tmp_path: Path) -> None:
    file = ClaudeFile()
    start = file.user("go")
    file.assistant("m1", text("one"))
    file.user("other words", parent=start)
    assert [step.abandoned for step in only(read(tmp_path, file)).steps] == [True]


def test_a_compaction_leaves_no_branch(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    last = file.assistant("m1", text("one"))
    file.row("system", subtype="compact_boundary", parent=None, logicalParentUuid=last)
    file.user("summary", isCompactSummary=True)
    file.assistant("m2", text("two"))
    assert [(step.parent, step.abandoned) for step in only(read(tmp_path, file)).steps] == [(None, False)] * 2


def test_a_result_written_again_under_a_new_id_is_a_duplicate(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    file.result("t1")
    file.result("t1")
    result = read(tmp_path, file)
    assert (only(result).tool_results, result.uses["duplicate"], only(result).orphans) == (1, 1, ())


def test_an_answer_copied_under_new_ids_keeps_its_blocks_once(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    for _ in range(2):
        file.assistant("m1", text("one"))
        file.assistant("m1", call("t1"))
    (step,) = only(read(tmp_path, file)).steps
    assert [type(block).__name__ for block in step.action.blocks] == ["Text", "ToolCall"]


def test_the_words_of_a_refusal_are_feedback(tmp_path: Path) -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"), call("t2"))
    file.result("t1", f"{refused} To tell you how to proceed, the user said:\nuse rg", is_error=True)
    file.result("t2", refused, is_error=True)
    (step,) = only(read(tmp_path, file)).steps
    assert [(said.kind, said.text) for said in step.feedback] == [("user_correction", "use rg"), ("user_reject", "")]


def test_rows_beside_the_answers_are_events(tmp_path: Path) -> None:
    kept = "<persisted-output>Output too large. Full output saved to: /p/s/tool-results/b1.txt</persisted-output>"
    file = ClaudeFile()
    file.user("go")
    file.bare("permission-mode", permissionMode="plan")
    file.row("system", subtype="local_command", content="/mcp")
    file.row("attachment", attachment={"type": "edited_text_file", "filename": "a.py"})
    file.row("attachment", attachment={"type": "queued_command", "prompt": "and b.py"})
    file.row("attachment", attachment={"type": "hook_blocking_error", "blockingError": "no"})
    file.assistant("m1", call("t1"))
    file.result("t1", kept)
    trace = only(read(tmp_path, file))
    kinds = [event.kind for event in trace.events]
    wanted = ["user_text", "mode_change", "local_command", "user_edit", "user_text", "hook", "cut_output"]
    assert kinds == wanted
    assert [event.text for event in trace.events if event.kind == "user_text"] == ["go", "and b.py"]
    assert trace.events[-1].text == "/p/s/tool-results/b1.txt"
    assert said(trace, 0) == ["go", "and b.py"]
    assert trace.steps[0].request.fidelity == "partial"


def test_a_subagents_own_file_finds_its_session_beside_it(tmp_path: Path) -> None:
    """`<session>/subagents/agent-A.jsonl` beside `<session>.jsonl`; older versions put both in one folder."""
    main = ClaudeFile(session="s")
    main.bare("summary", summary="x", leafUuid="y")
    main.user("go")
    main.assistant("m1", call("t1", "Task"))
    parent = only(ClaudeCode().read(main.write(tmp_path / "s.jsonl")))
    side = ClaudeFile(session="s")
    side.user("do a", isSidechain=True, agentId="A", parent=None)
    message = {"id": "m", "role": "assistant", "model": "claude-x", "content": [text("ok")]}
    side.row("assistant", isSidechain=True, agentId="A", message=message)
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    for place in (tmp_path / "s" / "subagents" / "agent-A.jsonl", tmp_path / "agent-A.jsonl"):
        trace = only(ClaudeCode().read(side.write(place)))
        assert (trace.parent, trace.steps[0].agent) == (parent.id, "A")


def test_subagents_are_traces_of_their_own(tmp_path: Path) -> None:
    """Two subagents and the session take turns in the file; none sees another's rows."""
    file = ClaudeFile()
    file.user("go")
    spawn = file.assistant("m1", call("t1", "Task", prompt="a"), call("t2", "Task", prompt="b"))
    a = file.user("do a", parent=None, isSidechain=True, agentId="A")
    b = file.user("do b", parent=None, isSidechain=True, agentId="B")
    for agent, above in (("A", a), ("B", b)):
        message = {"id": f"side {agent}", "role": "assistant", "model": "claude-x", "content": [text(agent)]}
        file.row("assistant", parent=above, isSidechain=True, agentId=agent, message=message)
    file.result("t1", "a", parent=spawn)
    file.rows[-1]["toolUseResult"] = {"agentId": "A", "secretly": "never shown"}
    result = read(tmp_path, file)
    assert [[step.kind for step in trace.steps] for trace in result.traces] == [["main"], ["subagent"], ["subagent"]]
    assert [said(trace, 0) for trace in result.traces] == [["go"], ["do a"], ["do b"]]
    assert [trace.parent for trace in result.traces] == [None, result.traces[0].id, result.traces[0].id]
    spawned = [event.data for event in result.traces[0].events if event.kind == "spawn"]
    assert spawned == [{"agent": "A", "call": "t1"}]
    assert "never shown" not in str(result.traces)


def test_a_subagents_own_file_names_the_session_it_belongs_to(tmp_path: Path) -> None:
    file = ClaudeFile(session="parent-session")
    file.user("do a", isSidechain=True, agentId="A", parent="a row of the parent's file")
    message = {"id": "m", "role": "assistant", "model": "claude-x", "content": [text("ok")]}
    file.row("assistant", isSidechain=True, agentId="A", message=message)
    trace = only(read(tmp_path, file))
    assert (trace.parent, trace.steps[0].kind) == ("claude-session:parent-session", "subagent")
    assert trace.steps[0].request.fidelity == "partial"
    assert "earlier messages" in trace.steps[0].request.missing


def test_errors_of_the_service_are_events_and_no_steps(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("e1", text("API Error: 529"), model="<synthetic>")
    file.rows[-1]["isApiErrorMessage"] = True
    file.assistant("m1", text("fine"))
    result = read(tmp_path, file)
    trace = only(result)
    assert [step.action.text for step in trace.steps] == ["fine"]
    assert [(event.kind, event.record, event.before_step) for event in trace.events][1:] == [("api_error", 2, 0)]
    assert said(trace, 0) == ["go"]


@pytest.mark.parametrize(
    ("text", "is_error", "status"),
    [
        ("Exit code 1", True, "error"),
        ("The user doesn't want to proceed with this tool use. STOP", True, "rejected"),
        ("The user doesn't want to take this action right now.", True, "rejected"),
        ("[Request interrupted by user for tool use]", True, "interrupted"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", True, "cascade"),
        ("grep: The user doesn't want to proceed with this tool use", None, "ok"),
        ("[Request interrupted by user]", False, "ok"),
    ],
)
def test_only_flagged_results_are_refusals(tmp_path: Path, text: str, is_error: bool | None, status: str) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    file.result("t1", text, **({} if is_error is None else {"is_error": is_error}))
    (step,) = only(read(tmp_path, file)).steps
    assert step.results == (ToolResult("t1", text, is_error, status),)  # type: ignore[arg-type]


def test_an_interruption_is_said_by_a_user_row_and_not_by_quoted_text(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("what does [Request interrupted by user] mean?")
    file.assistant("m1", text("[Request interrupted by user] is written on stop"))
    file.user([text("[Request interrupted by user]")])
    file.user("go on")
    kinds = [(event.kind, event.record) for event in only(read(tmp_path, file)).events]
    assert kinds == [("user_text", 1), ("interrupt", 3), ("user_text", 4)]


def test_content_of_every_shape(tmp_path: Path) -> None:
    data = base64.b64encode(b"pixels").decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    file = ClaudeFile()
    file.user(["plain", [text("nested")], image, {"type": "novel", "x": 1}, 7])
    file.user(None)
    file.user("")
    file.assistant("m1", call("t1"), {"type": "redacted_thinking", "data": "zz"})
    file.result("t1", [text("a"), text("b"), image])
    file.assistant("m2", text("done"))
    trace = only(read(tmp_path, file))
    sha = hashlib.sha256(b"pixels").hexdigest()
    blocks = trace.context(trace.steps[0])[0].blocks
    assert blocks == (
        Text("plain"),
        Text("nested"),
        Media("image/png", sha),
        Opaque("novel", {"type": "novel", "x": 1}),
        Opaque("value", 7),
    )
    assert trace.steps[0].action.blocks[1] == Reasoning(encrypted="zz")
    assert trace.steps[0].results[0].text == f"a\nb\n[image/png sha256:{sha}]"
    assert trace.context(trace.steps[1])[-1].blocks[1] == Media("image/png", sha)


def test_new_row_types_are_kept_and_counted(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    for _ in range(3):
        file.bare("hologram", body=1)
    file.bare("queue-operation", operation="enqueue", content="typed meanwhile")
    file.assistant("m1", text("ok"))
    result = read(tmp_path, file)
    assert result.uses == {"context": 1, "unknown": 3, "event": 1, "step": 1}
    assert ["hologram" in told.what and "3 row" in told.what for told in result.diagnostics] == [True]
    assert only(result).events[-1].text == "typed meanwhile"


def test_rows_out_of_order_and_cycles_end(tmp_path: Path) -> None:
    """The result stands before its call, and two rows name each other as parent."""
    file = ClaudeFile()
    file.user("go", parent="u2")
    file.user("again")
    file.result("t1", "early")
    file.assistant("m1", call("t1"))
    assert only(read(tmp_path, file)).tool_results == 1


def test_a_growing_file_keeps_its_ids(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    before = only(read(tmp_path, file))
    file.result("t1")
    file.assistant("m2", text("done"))
    after = only(read(tmp_path, file))
    assert after.id == before.id
    assert after.steps[0].action == before.steps[0].action


def test_a_resumed_session_is_the_same_session(tmp_path: Path) -> None:
    """Resume copies rows with their uuids under a new session id and goes on."""
    old = ClaudeFile(session="a")
    old.user("go")
    old.assistant("m1", text("ok"))
    new = ClaudeFile(session="b")
    new.user("go")
    new.assistant("m1", text("ok"))
    new.user("more")
    new.assistant("m2", text("yes"))
    assert only(read(tmp_path, old)).id == only(read(tmp_path, new)).id


def test_two_sessions_in_one_file_are_two_traces(tmp_path: Path) -> None:
    file = ClaudeFile(session="a")
    file.user("go")
    file.assistant("m1", text("ok"))
    file.session = "b"
    file.user("hello", parent=None)
    file.assistant("m2", text("hi"))
    result = read(tmp_path, file)
    assert [(trace.index, said(trace, 0)) for trace in result.traces] == [(0, ["go"]), (1, ["hello"])]


def test_thousands_of_steps_need_no_recursion(tmp_path: Path) -> None:
    file = ClaudeFile()
    for n in range(1500):
        file.user(f"q{n}")
        file.assistant(f"m{n}", text(f"a{n}"))
    trace = only(read(tmp_path, file))
    assert len(trace.context(trace.steps[-1])) == 2999


def test_recognises_its_own_and_not_its_look_alikes() -> None:
    own = json.loads(json.dumps({"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s"}))
    reader = ClaudeCode()
    assert reader.recognises(Head.of([{**own, "message": {"role": "user", "content": "x"}}]))
    assert reader.recognises(Head.of([{"type": "summary", "summary": "x", "leafUuid": "u"}]))
    assert not reader.recognises(Head.of([{**own, "message": {"role": "user", "parts": [{"text": "x"}]}}]))
    iflow = {**own, "type": "assistant", "message": {"id": "response-1-tool-2", "content": []}}
    assert not reader.recognises(Head.of([iflow]))
    assert not reader.recognises(Head.of([{"type": "user", "message": {"content": "x"}}]))
