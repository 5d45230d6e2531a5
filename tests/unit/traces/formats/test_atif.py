"""ATIF files, Harbor trials, Terminal-Bench 1 trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Media, Reasoning, Text
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.atif.reader import ATIF
from postgrad.traces.formats.atif.terminal_bench import TerminalBench1
from postgrad.traces.formats.atif.trial import HarborTrial
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head


def step(number: int, source: str, message: Any = "", **more: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **more}


def call(id: str, name: str = "shell", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": id, "function_name": name, "arguments": arguments}


def seen(*results: tuple[str | None, Any]) -> dict[str, Any]:
    return {"observation": {"results": [{"source_call_id": key, "content": said} for key, said in results]}}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    agent = {"name": "agent-x", "version": "1.2", "model_name": "m-1"}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": list(steps), **more}


STEPS = (
    step(1, "system", "Be brief."),
    step(2, "user", "List."),
    step(
        3, "agent", "Looking.", reasoning_content="hm", tool_calls=[call("call_1", cmd="ls")], **seen(("call_1", "a"))
    ),
    step(4, "agent", "", tool_calls=[call("call_1", cmd="pwd")], model_name="m-2", **seen(("call_1", "/"))),
    step(5, "user", "Thanks."),
    step(6, "agent", "Done.", metrics={"prompt_tokens": 9, "completion_tokens": 1, "prompt_token_ids": [1]}),
)


def read(folder: Path, value: Any, name: str = "trajectory.json") -> ReadResult:
    path = folder / name
    path.write_text(json.dumps(value))
    return readers.read(path)


def only(found: ReadResult) -> Trace:
    (trace,) = found.traces
    return trace


def said(trace: Trace, place: int) -> list[str]:
    context = trace.context(trace.steps[place])
    return [m.text or "".join(r.text for r in m.tool_results) or "call" for m in context]


def test_agent_steps_and_results_matched_within_their_step(tmp_path: Path) -> None:
    """Both calls are named "call_1", as the format allows: three steps, two calls, two results."""
    found = read(tmp_path, trajectory(*STEPS))
    trace = only(found)
    assert (found.source.format, found.source.app, found.source.app_version) == ("atif", "agent-x", "1.2")
    assert totals([trace]) == {
        "steps": 3,
        "tool_calls": 2,
        "tool_results": 2,
        "calls_without_result": 0,
        "flagged_errors": 0,
    }
    assert trace.steps[0].action.blocks[:2] == (Reasoning("hm"), Text("Looking."))
    assert [[r.text for r in s.results] for s in trace.steps] == [["a"], ["/"], []]
    assert said(trace, 2) == ["Be brief.", "List.", "Looking.", "a", "call", "/", "Thanks."]
    assert [s.candidates[0].model for s in trace.steps] == ["m-1", "m-2", "m-1"]
    assert trace.steps[2].candidates[0].usage == {"prompt_tokens": 9, "completion_tokens": 1}


def test_records_are_the_steps_own_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, trajectory(*STEPS))
    assert [s.records for s in only(found).steps] == [(3,), (4,), (6,)]
    assert only(found).result_records == {"call_1": 3, "call_1~2": 4}
    assert found.uses == {"context": 3, "step": 3, "metadata": 1}


def test_fidelity_is_partial_and_says_what_is_missing(tmp_path: Path) -> None:
    bare = trajectory(*STEPS[1:])
    whole = trajectory(*STEPS)
    whole["agent"]["tool_definitions"] = [{"type": "function", "function": {"name": "shell"}}]
    found = [only(read(tmp_path, value)).steps[0].request for value in (bare, whole)]
    assert [(r.fidelity, r.missing) for r in found] == [
        ("partial", ("system prompt", "tool schemas", "exact requests")),
        ("partial", ("exact requests",)),
    ]
    assert found[1].tools[0].name == "shell"


def test_copied_context_and_calls_without_a_model_are_no_steps(tmp_path: Path) -> None:
    copied = step(1, "agent", "before", is_copied_context=True, tool_calls=[call("c")], **seen(("c", "old")))
    script = step(2, "agent", "", llm_call_count=0, tool_calls=[call("d")], **seen(("d", "new")))
    trace = only(read(tmp_path, trajectory(copied, script, step(3, "agent", "now"))))
    assert (len(trace.steps), trace.tool_calls) == (1, 0)
    assert said(trace, 0) == ["before", "old", "call", "new"]


def test_results_that_name_no_call_or_a_foreign_one(tmp_path: Path) -> None:
    """No call: the model was shown it. Another step's, which is forbidden: it is found. Nobody's: an orphan."""
    trace = only(
        read(
            tmp_path,
            trajectory(
                step(1, "agent", "a", tool_calls=[call("x")]),
                step(2, "agent", "b", tool_calls=[call("y")], **seen((None, "screen"), ("x", "late"), ("z", "lost"))),
                step(3, "agent", "c"),
            ),
        )
    )
    assert [[r.text for r in s.results] for s in trace.steps] == [["late"], [], []]
    assert [r.text for r in trace.orphans] == ["lost"]
    assert said(trace, 2) == ["a", "late", "b", "screen", "lost"]
    assert (trace.tool_calls, trace.tool_results) == (2, 2)


def test_pictures_and_empty_contents(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    parts = [{"type": "text", "text": "see"}, picture]
    shown = {
        "observation": {
            "results": [{"source_call_id": "c", "content": parts}, {"source_call_id": "d", "content": None}]
        }
    }
    trace = only(
        read(
            tmp_path,
            trajectory(step(1, "user", parts), step(2, "agent", "", tool_calls=[call("c"), call("d")], **shown)),
        )
    )
    assert trace.context(trace.steps[0])[0].blocks == (Text("see"), Media("image/png", "", "a.png"))
    assert [r.text for r in trace.steps[0].results] == ["see", ""]


def test_subagents_are_traces_with_a_parent(tmp_path: Path) -> None:
    inner = trajectory(step(1, "user", "sub"), step(2, "agent", "ok"), trajectory_id="t-sub")
    ref = {"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_id": "t-sub"}]}
    main = step(1, "agent", "", tool_calls=[call("c", "delegate")], observation={"results": [ref]})
    found = read(tmp_path, trajectory(main, subagent_trajectories=[inner]))
    first, second = found.traces
    assert (second.parent, second.steps[0].kind, first.steps[0].kind) == (first.id, "subagent", "main")
    assert [(e.kind, e.data["agent"], e.data["call"]) for e in first.events] == [("spawn", "t-sub", "c")]
    assert "t-sub" in first.steps[0].results[0].text
    assert found.uses == {"step": 2, "metadata": 1}


def test_several_trajectories_in_a_file(tmp_path: Path) -> None:
    two = [trajectory(*STEPS), trajectory(*STEPS[1:], session_id="other")]
    listed = read(tmp_path, two)
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in two))
    lines = readers.read(path)
    assert [t.id for t in listed.traces] == [t.id for t in lines.traces]
    assert ([s.records for t in lines.traces for s in t.steps], lines.uses) == ([(1,)] * 3 + [(2,)] * 3, {"step": 2})


def test_a_grown_file_is_the_same_trace(tmp_path: Path) -> None:
    assert only(read(tmp_path, trajectory(*STEPS[:4]))).id == only(read(tmp_path, trajectory(*STEPS))).id


def test_hostile_steps_are_told(tmp_path: Path) -> None:
    odd = [
        5,
        None,
        {"source": "martian"},
        step(4, "agent", {"a": 1}, tool_calls="x", observation=[], metrics=3),
        step(5, "agent"),
    ]
    found = read(tmp_path, trajectory(step(1, "user", "x"), *odd))
    assert [s.action.text for s in only(found).steps] == ['{"a": 1}', ""]
    assert [told.what for told in found.diagnostics] == ["no step of a trajectory"] * 3
    assert found.uses == {"context": 1, "unknown": 3, "step": 2, "metadata": 1}


def test_a_torn_file_is_read_to_its_last_whole_step(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = json.dumps(trajectory(*STEPS))
    path.write_text(text[: text.index('"step_id": 5') + 30])
    found = readers.read(path)
    assert (len(only(found).steps), found.records[-1 if found.records[-1].number > 0 else -2].status) == (
        2,
        "truncated",
    )


@pytest.mark.parametrize(
    "document",
    [
        {"steps": []},
        {"schema_version": "1.0", "steps": [{"type": "x"}]},
        {"schema_version": "ATIF-v1.6"},
        {"agent": "x", "steps": [{"source": "user", "step_id": 1}]},
        {"trajectory": [], "history": []},
        [{"role": "user"}],
    ],
)
def test_look_alikes_are_refused(document: Any) -> None:
    assert not ATIF().recognises(Head.of(document=document))


def harbor(folder: Path) -> Path:
    trial = folder / "trial"
    (trial / "agent").mkdir(parents=True)
    (trial / "verifier").mkdir()
    (trial / "agent" / "trajectory.json").write_text(json.dumps(trajectory(*STEPS)))
    copied = step(1, "agent", "summary", is_copied_context=True)
    second = trajectory(copied, step(2, "agent", "end"), trajectory_id="cont")
    (trial / "agent" / "trajectory.cont-1.json").write_text(json.dumps(second))
    (trial / "agent" / "log.txt").write_bytes(b"\x00noise")
    (trial / "verifier" / "reward.txt").write_text("0\n")
    ctrf = {"results": {"tests": [{"name": "test_a", "status": "failed"}, {"name": "test_b", "status": "passed"}]}}
    (trial / "verifier" / "ctrf.json").write_text(json.dumps(ctrf))
    (trial / "result.json").write_text(
        json.dumps({"task_name": "hello", "exception_info": {"exception_type": "Timeout"}})
    )
    return trial


def test_a_harbor_trial_is_one_source(tmp_path: Path) -> None:
    """6 + 2 steps of trajectories, 2 envelopes, and 4 other files of which 3 are the verifier's and the trial's."""
    found = readers.read(harbor(tmp_path))
    first, second = found.traces
    assert (found.source.format, found.source.app) == ("harbor_trial", "agent-x")
    assert ([len(t.steps) for t in found.traces], second.parent, second.task_id) == ([3, 1], first.id, "hello")
    assert [(f.kind, f.value, f.text) for f in second.steps[-1].feedback] == [("reward", 0.0, "failed: test_a")]
    assert ("error", "Timeout") in [(e.kind, e.text) for e in second.events]
    assert found.uses == {"step": 4, "context": 4, "metadata": 2, "event": 3, "ui": 1}
    assert [s.records for s in first.steps] == [(3,), (4,), (6,)]


def test_folders_that_are_no_trials(tmp_path: Path) -> None:
    assert HarborTrial().recognises(Head(harbor(tmp_path)))
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "trajectory.json").write_text("{}")
    assert not HarborTrial().recognises(Head(tmp_path))
    assert not TerminalBench1().recognises(Head(tmp_path))


def terminal(folder: Path) -> Path:
    trial = folder / "trial.1-of-1"
    for number in (0, 1, 2, 10):
        episode = trial / "agent-logs" / f"episode-{number}"
        episode.mkdir(parents=True)
        (episode / "prompt.txt").write_text(f"prompt {number}")
        if number != 2:
            (episode / "response.txt").write_text(f"response {number}")
    messages = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "r"},
        {"role": "user", "content": "p"},
    ]
    (trial / "agent-logs" / "episode-10" / "debug.json").write_text(json.dumps({"model": "m", "messages": messages}))
    outcome = {"task_id": "hello", "trial_name": "t1", "is_resolved": True, "parser_results": {"a": "passed"}}
    (trial / "results.json").write_text(json.dumps(outcome))
    return trial


def test_a_terminal_bench_1_trial(tmp_path: Path) -> None:
    """Episode 10 comes after 2, which has no response and is no step; its debug file has the request's messages."""
    found = readers.read(terminal(tmp_path))
    trace = only(found)
    assert found.source.format == "terminal_bench"
    assert [s.action.text for s in trace.steps] == ["response 0", "response 1", "response 10"]
    assert [said(trace, place) for place in range(3)] == [["prompt 0"], ["prompt 1"], ["first", "r", "p"]]
    assert {s.request.fidelity for s in trace.steps} == {"exact-messages"}
    assert (trace.task_id, trace.steps[-1].feedback[0].kind, trace.steps[-1].feedback[0].value) == (
        "hello",
        "resolved",
        1.0,
    )
    assert found.uses == {"context": 5, "step": 3, "event": 1}
    assert [told.what for told in found.diagnostics] == ["an episode without a response"]
