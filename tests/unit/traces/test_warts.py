"""The warts W7 to W36 that no other test names, and bug reports of other parsers: one small file each, built here.

W1 to W6 (bytes and lines), W13 to W18, W20 to W23, W25 to W28, W31 and W33 are named where their readers are tested.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postgrad.core.message import Reasoning
from postgrad.core.trace import Trace
from postgrad.signals.error_sites.sites import find_sites
from postgrad.traces import readers
from postgrad.traces.records import totals
from postgrad.traces.redaction.redactor import Redactor
from unit.traces.formats.claude_file import ClaudeFile, call, text
from unit.traces.formats.codex_file import CodexFile
from unit.traces.formats.opencode_store import OpenCodeStore, tool
from unit.traces.formats.opencode_store import text as part
from unit.traces.formats.said import said

KEY = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def only(path: Path) -> Trace:
    (trace,) = readers.read(path).traces
    return trace


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_w7_rows_of_one_answer_are_one_step_with_the_last_rows_usage(tmp_path: Path) -> None:
    """Thought, text and call, a row each: 3 blocks in order; earlier rows carry a partial count."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", {"type": "thinking", "thinking": "hm", "signature": "s"}, usage={"output_tokens": 1})
    file.assistant("m1", text("Look."), usage={"output_tokens": 1})
    file.assistant("m1", call("t1"), usage={"output_tokens": 40}, stop_reason="tool_use")
    (step,) = only(file.write(tmp_path / "s.jsonl")).steps
    assert [type(block).__name__ for block in step.action.blocks] == ["Reasoning", "Text", "ToolCall"]
    assert (step.candidates[0].usage["output_tokens"], step.candidates[0].stop_reason) == (40, "tool_use")


def test_w8_w9_the_same_row_again_is_one_row_with_and_without_request_ids(tmp_path: Path) -> None:
    """A resumed session copies two rows under its own id and time: one step, one result."""
    for request in ({}, {"requestId": "r"}):
        file = ClaudeFile()
        file.user("go")
        file.row(
            "assistant", message={"id": "m1", "role": "assistant", "model": "c", "content": [call("t1")]}, **request
        )
        file.result("t1", "out")
        copies = [{**row, "sessionId": "other", "timestamp": "2026-02-01T00:00:00.000Z"} for row in file.rows[1:]]
        file.rows += copies
        result = readers.read(file.write(tmp_path / f"s{len(request)}.jsonl"))
        assert totals(result.traces) | {"flagged_errors": 0} == {
            **{"steps": 1, "tool_calls": 1, "tool_results": 1, "calls_without_result": 0, "flagged_errors": 0}
        }
        assert result.uses["duplicate"] == 2


def test_w10_a_repeated_id_replaces_in_geminis_log(tmp_path: Path) -> None:
    """Three records of one answer, which grows: one step with the last text."""
    answers = [{"id": "m", "type": "gemini", "content": words} for words in ("a", "ab", "abc")]
    ask = {"id": "u", "type": "user", "content": "go"}
    trace = only(lines(tmp_path / "s.jsonl", {"sessionId": "s", "projectHash": "h"}, ask, *answers))
    assert [step.action.text for step in trace.steps] == ["abc"]


def test_w11_the_same_part_again_and_again_is_one_part(tmp_path: Path) -> None:
    """Server events tell each part three times; the steps are those of the export."""
    store = OpenCodeStore()
    store.user(part("go"))
    store.assistant(tool("a"), tool("b"), reason="tool-calls")
    store.assistant(part("done"))
    rows = [json.loads(line) for line in store.stream(tmp_path / "e.jsonl").read_text().splitlines()]
    parts = [row for row in rows if row["event"]["type"] == "message.part.updated"]
    told = only(lines(tmp_path / "again.jsonl", *rows, *parts, *parts))
    exported = only(store.export(tmp_path / "export.json"))
    assert [step.action.blocks for step in told.steps] == [step.action.blocks for step in exported.steps]
    assert (len(told.steps), told.tool_calls, told.tool_results) == (2, 2, 2)


def test_w12_a_fork_counts_its_own_steps_only(tmp_path: Path) -> None:
    """The parent's answer is copied into the child in one burst; the child's own answer comes a minute later."""
    file = CodexFile("child", forked_from_id="parent")
    file.clock = 0.0
    file.meta("parent")
    file.clock = 0.0
    file.user("go")
    file.clock = 0.0
    file.says("parent's answer")
    file.clock = 60.0
    file.user("on")
    file.says("child's answer")
    trace = only(file.write(tmp_path / "rollout-1.jsonl"))
    assert [step.action.text for step in trace.steps] == ["child's answer"]
    assert [message.text for message in trace.context(trace.steps[0])] == ["go", "parent's answer", "on"]


def test_w19_a_result_between_two_rows_of_an_answer_stands_behind_it(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    file.result("t1", "one")
    file.assistant("m1", call("t2"))
    file.result("t2", "two")
    file.assistant("m2", text("done"))
    trace = only(file.write(tmp_path / "s.jsonl"))
    assert said(trace, 1) == ["go", "call:t1", "call:t2", "result:t1", "result:t2"]


def test_w24_a_stop_that_is_written_before_its_call_is_the_refusal_of_that_call(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.event("turn_aborted", reason="interrupted")
    file.calls("a", arguments='{"command": ["make"]}')
    file.output("a", "aborted by user")
    file.user("use cmake")
    file.says("ok")
    (site,) = find_sites(only(file.write(tmp_path / "rollout-1.jsonl")))
    assert (site.call, site.step, site.verdict, site.text) == ("a", 0, "user_correction", "use cmake")


def test_w29_the_model_saw_the_cut_text_and_the_place_of_the_whole_is_told(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    cut = "<persisted-output>\nOutput too large (2MB). Full output saved to: /h/s/tool-results/t1.txt\n\nfirst lines"
    file.result("t1", cut)
    trace = only(file.write(tmp_path / "s.jsonl"))
    assert trace.steps[0].results[0].text == cut
    assert [event.text for event in trace.events if event.kind == "cut_output"] == ["/h/s/tool-results/t1.txt"]


def test_w30_what_the_screen_shows_is_not_what_the_model_saw(tmp_path: Path) -> None:
    """`toolUseResult` beside a result is left out, and alone it is no result (ReviewStage/luke PR#119)."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "short"}
    file.user([block], toolUseResult={"stdout": "the long text of the screen"})
    file.user("next", toolUseResult={"stdout": "alone"})
    file.assistant("m2", text("done"))
    trace = only(file.write(tmp_path / "s.jsonl"))
    assert said(trace, 1) == ["go", "call:t1", "result:t1", "next"]
    assert [result.text for result in trace.steps[0].results] == ["short"]
    assert "screen" not in str(trace.messages)


def test_w32_opaque_thoughts_are_kept(tmp_path: Path) -> None:
    file = CodexFile()
    file.user("go")
    file.thinks("hm", encrypted_content="gAAA")
    file.says("ok")
    (step,) = only(file.write(tmp_path / "rollout-1.jsonl")).steps
    assert step.action.blocks[0] == Reasoning("hm", encrypted="gAAA")
    claude = ClaudeFile()
    claude.user("go")
    claude.assistant("m1", {"type": "redacted_thinking", "data": "xyz"}, text("ok"))
    (step,) = only(claude.write(tmp_path / "s.jsonl")).steps
    assert step.action.blocks[0] == Reasoning(encrypted="xyz")


def test_w34_colours_stay_in_the_text_and_do_not_hide_a_failure(tmp_path: Path) -> None:
    red = "\x1b[31mFAIL\x1b[0m src/a.test.ts\nTests: \x1b[31m1 failed\x1b[0m, 2 total"
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t0", "Edit", file_path="src/a.ts", old_string="a", new_string="b"))
    file.result("t0", "The file src/a.ts has been updated.")
    file.assistant("m2", call("t1", command="npx jest | tail -3"))
    file.result("t1", red)
    trace = only(file.write(tmp_path / "s.jsonl"))
    assert trace.steps[1].results[0].text == red
    assert [(site.kind, site.verdict, site.step) for site in find_sites(trace)] == [("test_failed", "real", 0)]


def test_w35_failures_and_corrections_in_other_languages(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("推送")
    file.assistant("m1", call("t1", command="git push | cat"))
    file.result("t1", "致命错误：无法读取远程仓库。")
    file.assistant("m2", text("好了"))
    file.user("不对，还是没有推送")
    file.assistant("m3", text("再来"))
    sites = find_sites(only(file.write(tmp_path / "s.jsonl")))
    assert [(site.step, site.verdict) for site in sites] == [(0, "real"), (1, "user_correction")]


def test_w36_secrets_go_wherever_they_stand_and_look_alikes_stay() -> None:
    """Equal secrets have equal marks; a bearer token deep in metadata goes too (BerriAI/litellm#20240)."""
    told: dict[str, Any] = {"a": f"token {KEY}", "b": [f"again {KEY}"], "c": "task-output-waiting-1770012345678901234"}
    bearer = {"guardrail": {"request": {"headers": {"Authorization": "Bearer zx81-longer-than-it-looks"}}}}
    redactor = Redactor()
    clean = redactor.redact({**told, **bearer})
    assert KEY not in str(clean)
    assert clean["a"].partition(" ")[2] == clean["b"][0].partition(" ")[2]
    assert clean["c"] == told["c"]
    assert "zx81" not in str(clean)


def test_foreign_rows_between_the_blocks_of_an_answer_do_not_split_it(tmp_path: Path) -> None:
    """anthropics/claude-code#73638: a system row between a server tool's call and its result."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {"query": "x"}})
    file.row("system", subtype="informational", content="searching")
    found = {"type": "web_search_tool_result", "tool_use_id": "w1", "content": []}
    file.assistant("m1", found, text("Found it."))
    trace = only(file.write(tmp_path / "s.jsonl"))
    assert len(trace.steps) == 1
    assert trace.steps[0].action.text == "Found it."


def test_a_session_that_ends_in_a_call_parses(tmp_path: Path) -> None:
    """anthropics/claude-code#84272: the call is pending, and there is a step for it."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    assert totals(readers.read(file.write(tmp_path / "s.jsonl")).traces)["calls_without_result"] == 1
