"""Codex rollouts, a small file for each of their habits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.canonical import content_id
from postgrad.core.message import Opaque, Reasoning
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.codex_cli.outcome import outcome
from postgrad.traces.formats.codex_cli.reader import CodexCLI
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from unit.traces.formats.codex_file import CodexFile
from unit.traces.formats.said import said


def read(tmp_path: Path, file: CodexFile) -> ReadResult:
    return CodexCLI().read(file.write(tmp_path / "rollout.jsonl"))


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def test_a_run_of_model_items_is_one_step(tmp_path: Path) -> None:
    """Reasoning, text and two calls are one answer, also with events in between; each output ends a run."""
    file = CodexFile()
    file.user("go")
    file.thinks("hm", encrypted_content="zz")
    file.event("agent_reasoning", text="hm")
    file.says("Look.")
    file.event("agent_message", message="Look.")
    file.calls("a", arguments='{"command": ["ls"] }')
    file.calls("b")
    file.output("a", "out a")
    file.output("b", "out b")
    file.says("Done.")
    trace = only(read(tmp_path, file))
    first, last = trace.steps
    assert [type(block).__name__ for block in first.action.blocks] == ["Reasoning", "Text", "ToolCall", "ToolCall"]
    assert first.action.blocks[0] == Reasoning("hm", encrypted="zz")
    assert first.action.tool_calls[0].arguments_raw == '{"command": ["ls"] }'
    assert (first.records, last.records) == ((3, 5, 7, 8), (11,))
    assert said(trace, 1) == ["go", "Look.", "call:a", "call:b", "result:a", "result:b"]
    assert trace.result_records == {"a": 9, "b": 10}


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.row("turn_context", model="m", cwd="/w")
    file.says("hi")
    file.tokens(1)
    file.row("hologram")
    file.output("lost")
    result = read(tmp_path, file)
    wanted = {"metadata": 2, "context": 1, "step": 1, "ui": 1, "unknown": 1, "orphan_result": 1}
    assert result.uses == wanted
    assert [orphan.call_id for orphan in only(result).orphans] == ["lost"]
    assert sorted(told.line or 0 for told in result.diagnostics if "call is not in the file" in told.what) == [7]


@pytest.mark.parametrize("old", [True, False])
def test_token_counts_before_or_behind_their_answer(tmp_path: Path, old: bool) -> None:
    """Up to 0.40 the count comes before the items of its call, later behind them, and then often twice."""
    file = CodexFile()
    file.user("go")
    for n in (1, 2):
        if old:
            file.tokens(n)
        file.calls(str(n))
        if not old:
            file.tokens(n)
            file.tokens(n)
        file.output(str(n))
    trace = only(read(tmp_path, file))
    assert [step.candidates[0].usage for step in trace.steps] == [{"input_tokens": 1}, {"input_tokens": 2}]


def test_model_and_parameters_are_the_turns(tmp_path: Path) -> None:
    file = CodexFile(base_instructions={"text": "Be good."})
    file.row("turn_context", model="m1", effort="low", approval_policy="never")
    file.user("go")
    file.says("one")
    file.row("turn_context", model="m2", effort="high", approval_policy="on-request")
    file.user("more")
    file.says("two")
    trace = only(read(tmp_path, file))
    assert [step.candidates[0].model for step in trace.steps] == ["m1", "m2"]
    assert [step.request.params for step in trace.steps] == [{"effort": "low"}, {"effort": "high"}]
    assert said(trace, 0) == ["Be good.", "go"]
    assert (trace.steps[0].request.fidelity, trace.steps[0].request.missing) == ("reconstructed", ("tool schemas",))
    assert [(e.record, e.text) for e in trace.events if e.kind == "mode_change"] == [
        (5, "approval on-request, sandbox None")
    ]


HEADS: list[tuple[Any, bool | None, str]] = [
    (json.dumps({"output": "x", "metadata": {"exit_code": 0}}), False, "ok"),
    (json.dumps({"output": "x", "metadata": {"exit_code": 2}}), True, "error"),
    ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", True, "error"),
    ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1", False, "ok"),
    ("Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\n", True, "error"),
    ("failed in sandbox MacosSeatbelt with execution error: sandbox denied exec error, exit code: 1", True, "error"),
    ("patch rejected: empty patch", True, "error"),
    ("apply_patch verification failed: Failed to find expected lines", True, "error"),
    ("patch rejected by user", True, "rejected"),
    ("exec command rejected by user", True, "rejected"),
    ("aborted by user after 2.1s", True, "interrupted"),
    ("Wall time: 2.1 seconds\naborted by user", True, "interrupted"),
    ("Plan updated", None, "ok"),
    ("README says: Exit code: 1 means failure", None, "ok"),
    ("the user said: aborted by user", None, "ok"),
    ('{"metadata": "not an object", "exit_code": 3}', None, "ok"),
    ("", None, "ok"),
]


@pytest.mark.parametrize(("text", "is_error", "status"), HEADS)
def test_only_the_head_of_an_output_says_how_it_went(text: str, is_error: bool | None, status: str) -> None:
    found = outcome(text)
    assert (found.is_error, found.status) == (is_error, status)


def test_outputs_of_every_shape(tmp_path: Path) -> None:
    """Text, content parts with an image, one part, null, and the tools that a search found."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,cGl4ZWxz"}
    file = CodexFile()
    file.user("go")
    for name in "abcd":
        file.calls(name)
    file.item("tool_search_call", call_id="e", arguments={"query": "x"})
    file.item("custom_tool_call", call_id="f", name="apply_patch", input="*** Begin Patch")
    file.item("local_shell_call", call_id="g", action={"type": "exec", "command": ["ls"]})
    file.item("web_search_call", id="ws", action={"type": "search"})
    file.output("a", [{"type": "input_text", "text": "one"}, image])
    file.output("b", {"type": "input_text", "text": "two"})
    file.output("c", None)
    file.output("d", {"content": "raw"})
    file.item("tool_search_output", call_id="e", tools=[{"name": "t"}])
    file.item("custom_tool_call_output", call_id="f", output="ok")
    file.output("g", "ls")
    (step,) = only(read(tmp_path, file)).steps
    calls = {call.id: call for call in step.action.tool_calls}
    assert (calls["f"].arguments_raw, calls["f"].parse_error) == ("*** Begin Patch", "free text by design")
    assert calls["g"].arguments == {"type": "exec", "command": ["ls"]}
    assert isinstance(step.action.blocks[-1], Opaque)
    texts = [result.text for result in step.results]
    assert texts[0].startswith("one\n[image/png sha256:")
    assert texts[1:] == ["two", "", '{"content": "raw"}', '[{"name": "t"}]', "ok", "ls"]


def test_a_call_without_output_waits(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.calls("a")
    trace = only(read(tmp_path, file))
    assert (trace.tool_calls, trace.tool_results) == (1, 0)


def test_a_stop_before_its_call_belongs_behind_it(tmp_path: Path) -> None:
    """Versions up to 0.40 write the stop first, then the call that it killed and its result."""
    file = CodexFile()
    file.user("go")
    file.says("hm")
    file.user("on")
    stop = file.event("turn_aborted", reason="interrupted")
    file.thinks("patch it")
    file.calls("a")
    file.output("a", "aborted by user")
    trace = only(read(tmp_path, file))
    (event,) = [event for event in trace.events if event.kind == "interrupt"]
    assert (event.record, event.before_step, event.data["call"]) == (stop, 2, "a")
    assert trace.steps[1].results[0].status == "interrupted"


def test_a_stop_behind_its_turn_stays_there(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.says("hm")
    file.event("turn_aborted", reason="interrupted")
    file.user("on")
    file.calls("a")
    file.output("a", "aborted by user")
    (event,) = [event for event in only(read(tmp_path, file)).events if event.kind == "interrupt"]
    assert (event.before_step, "call" in event.data) == (1, False)


def test_thinking_of_an_answer_that_never_came_is_an_event(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    lost = file.event("agent_reasoning", text="I was about to")
    file.event("turn_aborted", reason="interrupted")
    file.event("user_message", message="again")
    file.user("again")
    file.event("agent_reasoning", text="now")
    file.thinks("now")
    file.says("done")
    trace = only(read(tmp_path, file))
    assert len(trace.steps) == 1
    assert [(e.record, e.text) for e in trace.events if e.kind == "aborted_answer"] == [(lost, "I was about to")]


def test_the_users_words_are_events_without_what_the_application_adds(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>be terse</INSTRUCTIONS>")
    file.user("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>")
    file.user("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nfix it")
    file.says("ok")
    trace = only(read(tmp_path, file))
    assert [(e.record, e.text) for e in trace.events] == [(4, "fix it")]
    assert len(said(trace, 0)) == 3


def test_compaction_replaces_the_history(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.calls("a")
    file.output("a")
    kept = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "summary"}]},
    ]
    row = file.row("compacted", message="", replacement_history=kept)
    file.says("new")
    trace = only(read(tmp_path, file))
    assert said(trace, 1) == ["go", "summary"]
    assert [(e.record, e.before_step) for e in trace.events if e.kind == "compaction"] == [(row, 1)]
    assert len(trace.steps) == 2


def test_an_old_compaction_keeps_the_users_words_and_a_summary(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.says("old answer")
    file.row("compacted", message="what was done")
    file.says("new")
    trace = only(read(tmp_path, file))
    assert said(trace, 1) == ["go", "what was done"]
    assert (trace.steps[1].request.fidelity, trace.steps[1].request.missing[-1]) == (
        "partial",
        "exact compacted history",
    )
    assert trace.steps[0].request.fidelity == "reconstructed"


def test_rolled_back_turns_are_an_abandoned_branch(tmp_path: Path) -> None:
    """Three turns, the last two undone: what follows goes on from the first."""
    file = CodexFile()
    for n in (1, 2, 3):
        file.user(f"q{n}")
        file.says(f"a{n}")
    file.event("thread_rolled_back", num_turns=2)
    file.user("q4")
    file.says("a4")
    trace = only(read(tmp_path, file))
    assert [step.abandoned for step in trace.steps] == [False, True, True, False]
    assert (trace.steps[3].parent, said(trace, 3)) == (0, ["q1", "a1", "q4"])


def copied(file: CodexFile) -> None:
    """A parent's turn with two answers."""
    file.user("parent's question")
    file.calls("p")
    file.output("p")
    file.says("parent's answer")


def own(file: CodexFile) -> None:
    file.user("child's question")
    file.says("child's answer")


def check_fork(tmp_path: Path, file: CodexFile) -> None:
    trace = only(read(tmp_path, file))
    assert [step.action.text for step in trace.steps] == ["child's answer"]
    wanted = ["parent's question", "call:p", "result:p", "parent's answer", "child's question"]
    assert said(trace, 0) == wanted
    assert (trace.id, trace.parent) == (content_id(["codex_cli", "child"]), content_id(["codex_cli", "parent"]))


def test_a_fork_written_in_one_burst(tmp_path: Path) -> None:
    """The copied rows have the fork's time, milliseconds apart; the child's own come seconds later."""
    file = CodexFile("child", forked_from_id="parent")
    file.clock = 0.010
    file.meta("parent")
    for _ in range(1):
        before = len(file.rows)
        copied(file)
        for place, row in enumerate(file.rows[before:]):
            row["timestamp"] = f"2026-01-01T00:00:00.{20 + place:03d}Z"
    file.rows[1]["timestamp"] = "2026-01-01T00:00:00.010Z"
    file.clock = 30.0
    own(file)
    check_fork(tmp_path, file)


def test_a_fork_whose_copies_kept_their_times(tmp_path: Path) -> None:
    file = CodexFile(None)
    file.clock = 500.0
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "parent"}}}
    file.meta("child", source=spawn)
    file.clock = 0.0
    copied(file)
    file.clock = 500.2
    own(file)
    check_fork(tmp_path, file)
    assert only(read(tmp_path, file)).steps[0].kind == "subagent"


def test_a_fork_whose_own_line_stands_behind_the_copy(tmp_path: Path) -> None:
    file = CodexFile("parent")
    copied(file)
    file.meta("child")
    own(file)
    check_fork(tmp_path, file)


def test_a_fork_with_numbered_rows(tmp_path: Path) -> None:
    file = CodexFile("child", forked_from_id="parent", subagent_history_start_ordinal=5)
    copied(file)
    own(file)
    for number, row in enumerate(file.rows):
        row["ordinal"] = number
    check_fork(tmp_path, file)


def test_a_spawned_session_without_a_copy_is_all_its_own(tmp_path: Path) -> None:
    """Its rows follow within milliseconds, but nothing was copied."""
    file = CodexFile("child", source={"subagent": {"thread_spawn": {"parent_thread_id": "parent"}}})
    own(file)
    for place, row in enumerate(file.rows):
        row["timestamp"] = f"2026-01-01T00:00:00.{place:03d}Z"
    trace = only(read(tmp_path, file))
    assert (len(trace.steps), trace.parent) == (1, content_id(["codex_cli", "parent"]))


def test_the_oldest_files_have_no_envelope(tmp_path: Path) -> None:
    rows = [
        {"id": "child", "timestamp": "2025-05-01T00:00:00Z", "instructions": None, "git": {}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = readers.read(path)
    assert result.source.format == "codex_cli"
    assert (only(result).tool_results, result.uses["metadata"]) == (1, 2)


def test_failures_that_no_output_tells_of(tmp_path: Path) -> None:
    """A failed patch or tool is flagged on its call's result; without one it is an event."""
    file = CodexFile()
    file.user("go")
    file.calls("a")
    file.event("mcp_tool_call_end", call_id="a", result={"Err": "no such tool"})
    file.output("a", "no such tool")
    file.calls("b")
    file.event("patch_apply_end", call_id="b", success=True)
    file.output("b", "Done")
    lost = file.event("patch_apply_end", call_id="inner", success=False, stdout="", stderr="mismatch")
    trace = only(read(tmp_path, file))
    assert [step.results[0].is_error for step in trace.steps] == [True, False]
    failures = [(e.record, e.text, e.data) for e in trace.events if e.kind == "tool_failure"]
    assert failures == [(lost, "mismatch", {"call": "inner"})]


def test_events_of_service_and_agents(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.event("error", message="rate limit")
    file.event("collab_agent_spawn_end", call_id="a", new_thread_id="t2")
    file.event("entered_review_mode")
    file.says("ok")
    kinds = [(e.kind, e.record) for e in only(read(tmp_path, file)).events]
    assert kinds == [("user_text", 2), ("api_error", 3), ("spawn", 4), ("mode_change", 5)]


def test_words_that_are_told_twice_have_the_record_of_the_first(tmp_path: Path) -> None:
    """The item that the model sees, then the event for the screen; an event with other words has its own record."""
    file = CodexFile()
    item = file.user("go")
    file.event("user_message", message="go")
    file.says("ok")
    file.user("<environment_context>x</environment_context>")
    alone = file.event("user_message", message="no, stop")
    file.says("stopped")
    events = [(e.record, e.text) for e in only(read(tmp_path, file)).events if e.kind == "user_text"]
    assert events == [(item, "go"), (alone, "no, stop")]


def test_a_growing_file_keeps_its_ids(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.calls("a")
    before = only(read(tmp_path, file))
    file.output("a")
    file.says("done")
    after = only(read(tmp_path, file))
    assert (after.id, after.steps[0].action) == (before.id, before.steps[0].action)


def test_recognises_its_own_and_not_its_look_alikes() -> None:
    reader = CodexCLI()
    meta = {"timestamp": "t", "type": "session_meta", "payload": {"id": "a", "cwd": "/", "originator": "codex_cli_rs"}}
    item = {"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}
    assert reader.recognises(Head.of([meta, item]))
    assert reader.recognises(Head.of([item]))
    trae = {**meta, "payload": {**meta["payload"], "model_provider": "trae"}}  # type: ignore[dict-item]
    assert not reader.recognises(Head.of([trae, item]))
    assert not reader.recognises(Head.of([{"type": "event_msg", "timestamp": "t", "payload": {"type": "other"}}]))
    assert not reader.recognises(Head.of([{"type": "message", "role": "user", "content": "x"}]))
    assert not reader.recognises(Head.of([{"type": "response_item", "payload": {"type": "text"}, "timestamp": "t"}]))


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ('{"output": "\\ud800", "metadata": {"exit_code": 1}}', True),  # only `json` reads a lone surrogate
        ('{"output": "a", "metadata": {"exit_code": 0, "more": NaN}}', False),
        ('{"metadata": {"exit_code": "1"}, "output": "a"}', None),
        ('{"output": "a", "metadata": [1]}', None),
        ('{"output": "a", "metadata": {"exit_code": 2}', None),  # cut off
    ],
)
def test_an_exit_code_is_found_beside_any_output(text: str, flag: bool | None) -> None:
    assert outcome(text).is_error is flag
