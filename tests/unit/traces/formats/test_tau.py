"""tau-bench and tau2 runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.traces import readers
from postgrad.traces.formats.datasets.tau import Tau2Bench, TauBench
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head


def call(n: int) -> dict[str, Any]:
    return {"id": "0", "type": "function", "function": {"name": "book", "arguments": {"n": n}}}


TRAJ = [
    {"role": "system", "content": "Policy."},
    {"role": "user", "content": "Book two."},
    {"role": "assistant", "content": None, "tool_calls": [call(1)]},
    {"role": "tool", "tool_call_id": "0", "name": "book", "content": "Error: no seats"},
    {"role": "assistant", "content": None, "tool_calls": [call(2)]},
    {"role": "tool", "tool_call_id": "0", "name": "book", "content": '{"ok": "Error: none"}'},
    {"role": "assistant", "content": "Done."},
]
RUN = {"task_id": 7, "trial": 0, "reward": 1.0, "info": {}, "traj": TRAJ}


def read(folder: Path, value: Any) -> ReadResult:
    path = folder / "results.json"
    path.write_text(json.dumps(value))
    return readers.read(path)


def test_calls_with_one_id_are_matched_by_place_and_errors_by_their_beginning(tmp_path: Path) -> None:
    """W14. Three answers, two calls, two results; only the text that begins with "Error: " is flagged."""
    found = read(tmp_path, [RUN, {**RUN, "trial": 1, "reward": 0.0}])
    assert found.source.format == "tau_bench"
    first, second = found.traces
    assert totals([first]) == {
        "steps": 3,
        "tool_calls": 2,
        "tool_results": 2,
        "calls_without_result": 0,
        "flagged_errors": 1,
    }
    assert [(s.action.tool_calls[0].arguments, s.results[0].text) for s in first.steps[:2]] == [
        ({"n": 1}, "Error: no seats"),
        ({"n": 2}, '{"ok": "Error: none"}'),
    ]
    assert [step.results[0].is_error for step in first.steps[:2]] == [True, None]
    assert (first.task_id, first.steps[-1].feedback[0].kind, first.steps[-1].feedback[0].value) == ("7", "reward", 1.0)
    assert first.id != second.id
    assert first.steps[0].request.missing == ("tool schemas", "sampling parameters")


def test_a_run_in_a_file_of_its_own_is_the_same_trace_with_a_record_a_message(tmp_path: Path) -> None:
    listed = read(tmp_path, [RUN]).traces[0]
    alone = read(tmp_path, RUN)
    assert alone.traces[0].id == listed.id
    assert alone.uses == {"context": 2, "step": 3, "result": 2, "metadata": 1}
    assert alone.traces[0].result_records == {"0": 3, "0~2": 5}


def test_a_message_that_is_none_and_a_run_without_answers(tmp_path: Path) -> None:
    found = read(tmp_path, [{**RUN, "traj": [*TRAJ[:3], 5, None]}, {**RUN, "traj": TRAJ[:2]}])
    assert [len(trace.steps) for trace in found.traces] == [1]
    assert [told.what for told in found.diagnostics] == ["no chat message"] * 2 + [
        "a run without an answer of the agent"
    ]


SIMULATION = {
    "id": "s1",
    "task_id": "t1",
    "termination_reason": "user_stop",
    "reward_info": {"reward": 0.0},
    "messages": [
        {"role": "assistant", "content": "Hi!", "turn_idx": 0, "timestamp": "2026-01-01T00:00:00"},
        {"role": "user", "content": "My line is dead.", "turn_idx": 1},
        {
            "role": "assistant",
            "content": None,
            "turn_idx": 2,
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
            "tool_calls": [{"id": "a", "name": "find", "arguments": {"n": 1}, "requestor": "assistant"}],
        },
        {"role": "tool", "id": "a", "content": "no such line", "requestor": "assistant", "error": True, "turn_idx": 3},
        {"role": "assistant", "content": "Restart your phone.", "turn_idx": 4},
        {
            "role": "user",
            "content": None,
            "turn_idx": 5,
            "tool_calls": [{"id": "u", "name": "restart", "arguments": {}, "requestor": "user"}],
        },
        {"role": "tool", "id": "u", "content": "restarted", "requestor": "user", "error": False, "turn_idx": 6},
        {"role": "user", "content": "It works.", "turn_idx": 7},
        {"role": "assistant", "content": "Good.", "turn_idx": 8},
    ],
}
RESULTS = {"timestamp": "t", "info": {"agent_info": {"llm": "m-1"}}, "tasks": [], "simulations": [SIMULATION]}


def test_the_simulated_users_tools_are_events_and_no_context(tmp_path: Path) -> None:
    found = read(tmp_path, RESULTS)
    (trace,) = found.traces
    assert found.source.format == "tau2_bench"
    assert totals([trace]) == {
        "steps": 4,
        "tool_calls": 1,
        "tool_results": 1,
        "calls_without_result": 0,
        "flagged_errors": 1,
    }
    last = [m.text or m.role for m in trace.context(trace.steps[-1])]
    assert last == ["Hi!", "My line is dead.", "assistant", "tool", "Restart your phone.", "It works."]
    assert [e.kind for e in trace.events] == ["user_text", "user_tool_call", "user_tool_result", "user_text"]
    taken = trace.steps[1].candidates[0]
    assert (taken.model, taken.usage) == ("m-1", {"prompt_tokens": 9, "completion_tokens": 2})
    assert (trace.steps[0].request.fidelity, trace.steps[-1].feedback[0].value) == ("partial", 0.0)


def test_one_simulation_in_a_file(tmp_path: Path) -> None:
    alone, listed = read(tmp_path, SIMULATION), read(tmp_path, RESULTS)
    assert [trace.id for trace in alone.traces] == [trace.id for trace in listed.traces]
    assert alone.uses == {"step": 4, "context": 3, "result": 1, "event": 1, "metadata": 1}


@pytest.mark.parametrize(
    "document", [{"messages": TRAJ}, [{"messages": TRAJ}], {"simulations": []}, [RUN | {"traj": 5}], [5]]
)
def test_look_alikes_are_refused(document: Any) -> None:
    head = Head.of(document=document)
    assert not TauBench().recognises(head)
    assert not Tau2Bench().recognises(head)
