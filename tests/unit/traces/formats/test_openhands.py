"""The warts of OpenHands streams, old and V1, one small file each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Reasoning, Text, ToolCall
from postgrad.core.trace import Trace
from postgrad.traces.formats.openhands.reader import OpenHands
from postgrad.traces.formats.openhands.sdk import OpenHandsSDK
from postgrad.traces.records import totals
from unit.traces.formats.agent_files import (
    openhands_events,
    run_action,
    run_observation,
    says,
    sdk_action,
    sdk_event,
    sdk_events,
    sdk_message,
    sdk_observation,
    write_json,
    write_lines,
)


def old(tmp_path: Path, events: list[Any]) -> Trace:
    (trace,) = OpenHands().read(write_json(tmp_path / "t.json", events)).traces
    return trace


def sdk(tmp_path: Path, events: list[Any]) -> Trace:
    (trace,) = OpenHandsSDK().read(write_json(tmp_path / "t.json", events)).traces
    return trace


def test_actions_of_one_response_are_one_step_with_the_exact_answer(tmp_path: Path) -> None:
    """Two actions and their observations in turn; the response with both calls is kept in each."""
    both = [run_action(n, "r1", call, command) for n, call, command in ((1, "c1", "ls"), (3, "c2", "pwd"))]
    calls = [
        action["tool_call_metadata"]["model_response"]["choices"][0]["message"]["tool_calls"][0] for action in both
    ]
    for action in both:
        action["tool_call_metadata"]["model_response"]["choices"][0]["message"]["tool_calls"] = calls
    events = [both[0], run_observation(2, 1, "a.txt", 0), both[1], run_observation(4, 3, "/w", 0)]
    trace = old(tmp_path, [says(0, "user", "go"), *events])
    (step,) = trace.steps
    assert [call.arguments_raw for call in step.action.tool_calls] == ['{"command": "ls"}', '{"command": "pwd"}']
    assert (step.records, trace.result_records) == ((1, 3), {"c1": 2, "c2": 4})
    assert (step.candidates[0].model, step.candidates[0].stop_reason) == ("model-1", "tool_calls")
    assert step.candidates[0].usage == {"prompt_tokens": 10, "completion_tokens": 3}


@pytest.mark.parametrize(("code", "flag"), [(0, False), (1, True), (127, True), (-1, False)])
def test_an_exit_code_is_the_flag(code: int, flag: bool, tmp_path: Path) -> None:
    """-1 is a command that still runs. The text ends with what the terminal adds."""
    trace = old(tmp_path, [says(0, "user", "go"), run_action(1, "r", "c", "x"), run_observation(2, 1, "out", code)])
    (result,) = trace.steps[0].results
    assert (result.is_error, result.status) == (flag, "error" if flag else "ok")
    assert result.text == f"out\n[The command completed with {code}.]"


def test_the_edit_tools_error_text_is_a_flag_only_at_the_start(tmp_path: Path) -> None:
    def edit(text: str) -> dict[str, Any]:
        return {"id": 2, "source": "agent", "observation": "edit", "cause": 1, "content": text, "extras": {}}

    for text, flag in (("ERROR:\nold_str not found", True), ("1: # ERROR: in the file", None)):
        trace = old(tmp_path, [says(0, "user", "go"), run_action(1, "r", "c", "x"), edit(text)])
        assert trace.steps[0].results[0].is_error is flag


def test_an_error_that_answers_no_call_is_a_flagged_event(tmp_path: Path) -> None:
    """Arguments that do not fit a tool: the response is not in the stream, so no call is answered."""
    error = {"id": 4, "source": "agent", "observation": "error", "content": "bad `command`", "extras": {}}
    trace = old(tmp_path, [*openhands_events()[:3], error, says(5, "agent", "Sorry.")])
    assert totals([trace])["flagged_errors"] == 1
    assert totals([trace])["tool_results"] == 1
    (event,) = [event for event in trace.events if event.kind == "agent_error"]
    assert (event.record, event.before_step, event.text) == (4, 1, "bad `command`")


def test_records_are_the_events_own_ids_or_places(tmp_path: Path) -> None:
    events = openhands_events()
    assert [step.records for step in old(tmp_path, events).steps] == [(2,), (4,)]
    for event in events:
        del event["id"]
        event.pop("cause", None)
    events[2]["tool_call_metadata"] = events[1]["tool_call_metadata"]
    assert [step.records for step in old(tmp_path, events).steps] == [(1,), (3,)]


@pytest.mark.parametrize("images", [True, 3, "x", {"a": 1}, [None, 1]])
def test_images_that_are_no_list_of_addresses_are_left_out(images: object, tmp_path: Path) -> None:
    events = openhands_events()
    first = next(event for event in events if event.get("source") == "user")
    first["args"]["image_urls"] = images
    trace = old(tmp_path, events)
    assert [len(trace.messages[key].blocks) for key in trace.steps[0].request.messages][-1:] == [1]


def test_pairs_without_metadata_are_a_step_an_action(tmp_path: Path) -> None:
    """The oldest histories: no ids, no sources, no metadata."""
    pairs = [
        [{"action": "run", "args": {"command": "ls", "thought": "Look."}}, {"observation": "run", "content": "a.txt"}],
        [{"action": "finish", "args": {"outputs": {}}}, {"observation": "null", "content": ""}],
    ]
    result = OpenHands().read(write_lines(tmp_path / "output.jsonl", [{"instance_id": "i-1", "history": pairs}]))
    (trace,) = result.traces
    assert [step.action.text for step in trace.steps] == ["Look.", ""]
    assert [call.name for step in trace.steps for call in step.action.tool_calls] == ["run", "finish"]
    assert [r.text for step in trace.steps for r in step.results] == ["a.txt"]
    assert trace.task_id == "i-1"


def test_a_condensation_hides_events_and_puts_its_summary_there(tmp_path: Path) -> None:
    """W20: before it the answer sees all, behind it the summary in the place of events 2 and 3."""
    condensation = {
        "id": 5,
        "source": "agent",
        "action": "condensation",
        "args": {"forgotten_event_ids": [2, 3], "summary": "A file was listed."},
    }
    events = [*openhands_events(), condensation, says(6, "user", "more"), says(7, "agent", "No.")]
    trace = old(tmp_path, events)
    texts = [message.text or "call/result" for message in trace.context(trace.steps[-1])]
    assert texts == ["List the files", "A file was listed.", "There is a.txt.", "more"]
    assert [(e.kind, e.data["forgotten"]) for e in trace.events if e.kind == "compaction"] == [("compaction", [2, 3])]


def test_the_outcome_of_an_evaluation_is_feedback_on_the_last_step(tmp_path: Path) -> None:
    row = {"instance_id": "i", "history": openhands_events(), "test_result": {"report": {"resolved": False}}}
    (trace,) = OpenHands().read(write_lines(tmp_path / "output.jsonl", [row, row])).traces[:1]
    assert [(f.kind, f.value) for f in trace.steps[-1].feedback] == [("outcome", 0.0)]
    assert trace.steps[0].feedback == ()


# V1


def test_parallel_actions_are_one_step_and_the_thought_stands_first(tmp_path: Path) -> None:
    thought = [{"type": "text", "text": "Both."}]
    thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}]
    events = [
        sdk_message("m1", "user", "go"),
        sdk_action("a1", "r1", "c1", '{"command": "ls"}', thought=thought, thinking_blocks=thinking),
        sdk_action("a2", "r1", "c2", '{"command": "pwd"}'),
        sdk_observation("o2", "a2", "c2", "/w"),
        sdk_observation("o1", "a1", "c1", "a.txt"),
        sdk_message("m2", "assistant", "Done."),
    ]
    trace = sdk(tmp_path, events)
    first, _ = trace.steps
    assert [type(block) for block in first.action.blocks] == [Reasoning, Text, ToolCall, ToolCall]
    assert first.action.blocks[0] == Reasoning("Hm.", "sig")
    assert [result.call_id for result in first.results] == ["c1", "c2"]
    assert first.records == (1, 2)


def test_a_call_that_could_not_run_is_answered_by_the_agents_error(tmp_path: Path) -> None:
    """`action` null; the raw arguments stay byte for byte. Only the framework's own error is a flag."""
    error = sdk_event("AgentErrorEvent", "x", source="agent", error="invalid JSON", tool_call_id="c1")
    events = [sdk_message("m", "user", "go"), sdk_action("a", "r", "c1", '{"command": ', action=None), error]
    trace = sdk(tmp_path, events)
    (call,), (result,) = trace.steps[0].action.tool_calls, trace.steps[0].results
    assert (call.arguments_raw, call.arguments) == ('{"command": ', None)
    assert (result.text, result.is_error, result.status) == ("invalid JSON", True, "error")


@pytest.mark.parametrize(
    ("seen", "flag", "status"),
    [({"is_error": True}, None, "error"), ({"exit_code": 2}, None, "error"), ({"exit_code": 0}, False, "ok")],
)
def test_an_observation_says_it_about_the_output(
    seen: dict[str, Any], flag: bool | None, status: str, tmp_path: Path
) -> None:
    events = [
        sdk_message("m", "user", "go"),
        sdk_action("a", "r", "c", "{}"),
        sdk_observation("o", "a", "c", "x", **seen),
    ]
    (result,) = sdk(tmp_path, events).steps[0].results
    assert (result.is_error, result.status) == (flag, status)


@pytest.mark.parametrize(
    ("by", "status", "kind"), [("user", "rejected", "user_reject"), ("hook", "error", "hook_reject")]
)
def test_a_refusal_by_the_user_and_by_a_hook(by: str, status: str, kind: str, tmp_path: Path) -> None:
    refusal = sdk_event("UserRejectObservation", "o", action_id="a", rejection_reason="not now", rejection_source=by)
    trace = sdk(tmp_path, [sdk_message("m", "user", "go"), sdk_action("a", "r", "c", "{}"), refusal])
    assert [result.status for result in trace.steps[0].results] == [status]
    assert [(f.kind, f.text) for f in trace.steps[0].feedback] == [(kind, "not now")]


def test_a_v1_condensation_and_an_interrupt(tmp_path: Path) -> None:
    events = [
        *sdk_events(),
        sdk_event("Condensation", "k", forgotten_event_ids=["a1", "o1"], summary="Listed."),
        sdk_event("PauseEvent", "p", source="user"),
        sdk_message("m3", "user", "more"),
        sdk_message("m4", "assistant", "No."),
    ]
    trace = sdk(tmp_path, events)
    assert [m.text for m in trace.context(trace.steps[-1])] == ["List the files", "Listed.", "There is a.txt.", "more"]
    assert [(e.kind, e.before_step) for e in trace.events if e.kind in ("compaction", "interrupt")] == [
        ("compaction", 2),
        ("interrupt", 2),
    ]


def test_an_observation_without_its_action_is_kept_out_of_the_context(tmp_path: Path) -> None:
    """W18: the stream begins in the middle."""
    events = [sdk_observation("o0", "gone", "c0", "old"), *sdk_events()]
    result = OpenHandsSDK().read(write_json(tmp_path / "t.json", events))
    assert result.uses["orphan_result"] == 1
    assert "not in the stream" in result.diagnostics[0].what
    (trace,) = result.traces
    assert "old" not in "".join(r.text for m in trace.messages.values() for r in m.tool_results)
