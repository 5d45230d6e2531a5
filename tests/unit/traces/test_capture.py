"""What postgrad writes, it reads back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Feedback, Request, Source, Step, Trace
from postgrad.traces import readers
from postgrad.traces.capture import exchange, lines
from postgrad.traces.pool import MessagePool
from postgrad.traces.records import ReadResult

TOOL = Tool("weather", "The weather.", {"type": "object", "properties": {"authorization": {"type": "string"}}})


def rollout(name: str = "rollout-1") -> Trace:
    """Two steps: a call with broken arguments and a good one, an error result, then words; with a verifier's word."""
    pool = MessagePool()
    ask = (Message.of("system", "Use tools."), Message.of("user", "Oslo?"))
    calls = (
        ToolCall.from_raw(id="call_1", name="weather", raw='{"city": Oslo}'),
        ToolCall.from_raw(id="call_2", name="weather", raw='{"city":  "Oslo"}'),
    )
    action = Message("assistant", (Reasoning("hm"), Text("Look."), *calls))
    results = (ToolResult("call_1", "bad JSON", True, "error"), ToolResult("call_2", "rain"))
    answer = Message.of("assistant", "Rain.")
    first, params = pool.extend(ask), {"temperature": 1.0, "max_tokens": 64}
    second = first + pool.extend((action, *(Message("tool", (result,)) for result in results)))
    called = Candidate(action, "smol", "tool_calls", {"total_tokens": 9})
    said = Candidate(answer, "smol", "stop")
    other = Candidate(Message.of("assistant", "Sun."), "smol", "stop", chosen=False)
    verdict = Feedback("verifier", 0.0, "wrong city", "env")
    steps = (
        Step(0, Request(first, (TOOL,), params), (called,), results),
        Step(1, Request(second, (TOOL,), params), (said, other), feedback=(verdict,), time="2026-01-01T00:00:00Z"),
    )
    environment = {"cwd": "/w", "repository": {"commit": "0f", "dirty": False}}
    return Trace(name, Source("", "rollout"), pool.messages, steps, task_id="task-7", environment=environment)


def read(tmp_path: Path, *written: str) -> ReadResult:
    path = tmp_path / "traces.sources.jsonl"
    path.write_text("".join(line + "\n" for line in written), encoding="utf-8")
    return readers.read(path)


def bare(message: Message) -> Message:
    return msgspec.structs.replace(message, records=())


def facts(trace: Trace) -> Any:
    """Everything about a trace but where it was read from."""
    return [
        (
            [bare(message) for message in trace.context(step)],
            step.request.tools,
            step.request.params,
            step.request.fidelity,
            [msgspec.structs.replace(c, message=bare(c.message), usage={}) for c in step.candidates],
            step.results,
            step.feedback,
            step.kind,
            step.time,
        )
        for step in trace.steps
    ]


def test_round_trip_of_a_rollout(tmp_path: Path) -> None:
    before = rollout()
    (after,) = read(tmp_path, *lines(before)).traces
    assert facts(after) == facts(before)
    assert (after.id, after.task_id, after.environment) == ("rollout-1", "task-7", before.environment)
    assert lines(after) == lines(before)


def test_rollouts_of_one_prompt_stay_apart(tmp_path: Path) -> None:
    result = read(tmp_path, *lines(rollout("a")), *lines(rollout("b")))
    assert [(trace.id, len(trace.steps)) for trace in result.traces] == [("a", 2), ("b", 2)]
    assert result.uses == {"step": 4}


def test_results_of_a_last_step_are_kept(tmp_path: Path) -> None:
    """No later request shows them: they stand beside the exchange only."""
    whole = rollout()
    cut = msgspec.structs.replace(whole, steps=whole.steps[:1])
    (after,) = read(tmp_path, *lines(cut)).traces
    assert after.steps[0].results == whole.steps[0].results
    assert after.result_records == {"call_1": 1, "call_2": 1}


def test_teachers_and_kinds_survive(tmp_path: Path) -> None:
    whole = rollout()
    step = whole.steps[1]
    gold = Candidate(Message.of("assistant", "Snow."), "big", "stop", chosen=False, teacher="gold")
    taught = (*step.candidates, gold)
    request = msgspec.structs.replace(step.request, fidelity="partial", missing=("system prompt",))
    changed = msgspec.structs.replace(step, candidates=taught, request=request, kind="subagent")
    before = msgspec.structs.replace(whole, steps=(whole.steps[0], changed), parent="rollout-0")
    (after,) = read(tmp_path, *lines(before)).traces
    assert facts(after) == facts(before)
    assert after.steps[1].request.missing == ("system prompt",)
    assert after.parent == "rollout-0"
    assert after.steps[1].action.text == "Rain."


def test_headers_and_keys_are_never_written() -> None:
    request = {
        "model": "m",
        "messages": [{"role": "user", "content": "my header is authorization"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"authorization": {"type": "string"}}}}],
        "extra_headers": {"Authorization": "Bearer hush"},
        "api_key": "hush",
        "metadata": {"guardrail": [{"headers": {"x": "hush"}, "Authorization": "Bearer hush", "score": 1}]},
    }
    written = exchange(request, {"choices": []}, trace="t")
    assert "hush" not in canonical_json(written)
    assert written["request"]["tools"] == request["tools"]
    assert written["request"]["metadata"] == {"guardrail": [{"score": 1}]}
    assert written["metadata"] == {"postgrad": {"trace": "t"}}


def test_a_served_chat_is_linked_by_its_messages(tmp_path: Path) -> None:
    ask = [{"role": "user", "content": "hi"}]
    answer = {"role": "assistant", "content": "hello"}
    more = [*ask, answer, {"role": "user", "content": "bye"}]
    done = {"choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]}
    rows = [exchange({"model": "m", "messages": messages}, done) for messages in (ask, more)]
    (trace,) = read(tmp_path, *(canonical_json(row) for row in rows)).traces
    assert len(trace.steps) == 2
    assert trace.steps[0].time == rows[0]["time"]
