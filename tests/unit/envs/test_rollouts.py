"""Rollouts by a scripted actor: what the traces hold, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.message import Message, ToolCall
from postgrad.core.task import Task
from postgrad.core.trace import Trace
from postgrad.envs import GoldActor, rollout
from postgrad.envs.function_calling import FunctionCalling

ENVIRONMENT = FunctionCalling()
TASKS = [task for task in ENVIRONMENT.tasks("train", 60) if task.expected][:4]


class Script:
    """Answers by task id, one list entry a turn; asks are kept."""

    name = "script"
    kind = "script"

    def __init__(self, turns: Sequence[dict[str, Message | None]]) -> None:
        self.turns, self.asked = list(turns), list[list[Ask]]()

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        said = self.turns[len(self.asked)]
        self.asked.append(list(asks))
        return [Answer(said[str(ask.task_id)], "script-1", "stop", 11, 7) for ask in asks]


def call(name: str, raw: str) -> Message:
    return Message("assistant", (ToolCall.from_raw(id="call_0", name=name, raw=raw),))


def gold(task: Task) -> Message:
    assert task.reference is not None
    return task.reference


def one(turns: list[Message | None], max_turns: int) -> tuple[Trace, Script]:
    task = TASKS[0]
    script = Script([{task.id: turn} for turn in turns])
    (trace,) = rollout(script, ENVIRONMENT, [task], Sampling(0.5, 64, 9), max_turns=max_turns)
    return trace, script


def test_gold_rollouts_are_right() -> None:
    """Score 1 everywhere, a result per call, the context as it was asked, and the task named."""
    traces = rollout(GoldActor(TASKS), ENVIRONMENT, TASKS, Sampling())
    assert [trace.task_id for trace in traces] == [task.id for task in TASKS]
    for task, trace in zip(TASKS, traces, strict=True):
        (step,) = trace.steps
        assert trace.context(step) == task.messages
        assert (step.request.tools, step.request.fidelity) == (task.tools, "exact")
        assert (step.action, step.feedback[0].value, step.feedback[0].text) == (task.reference, 1.0, "")
        assert [result.call_id for result in step.results] == ["call_0"]
        assert trace.flagged_errors == 0


def test_a_step_records_how_it_was_drawn() -> None:
    trace, _ = one([Message.of("assistant", "Sure!")], 1)
    (step,) = trace.steps
    (candidate,) = step.candidates
    assert step.request.params == {"model": "script-1", "temperature": 0.5, "max_tokens": 64, "seed": 9}
    assert candidate.usage == {"prompt_tokens": 11, "completion_tokens": 7}
    assert (candidate.stop_reason, candidate.chosen) == ("stop", True)
    (feedback,) = step.feedback
    assert (feedback.kind, feedback.value, feedback.source) == ("verifier", 0.0, "function_calling")
    assert feedback.text.startswith("no_call: ")


def test_a_refused_call_may_be_repaired() -> None:
    """Turn 1 calls an unknown tool; turn 2 sees the call and the error, and is right.

    The script numbers both calls call_0; in the trace the second becomes call_0_1.
    """
    trace, script = one([call("nonsense", "{}"), gold(TASKS[0])], 2)
    first, second = trace.steps
    assert (first.feedback[0].value, second.feedback[0].value) == (0.0, 1.0)
    assert first.results[0].is_error
    assert trace.flagged_errors == 1
    again = script.asked[1][0].messages
    assert again == trace.context(second)
    assert again[:-2] == TASKS[0].messages
    assert again[-2] == first.action
    assert again[-1].tool_results == first.results
    assert [step.action.tool_calls[0].id for step in trace.steps] == ["call_0", "call_0_1"]
    assert second.results[0].call_id == "call_0_1"


@pytest.mark.parametrize(("turns", "asked"), [(1, 1), (2, 2), (3, 3)])
def test_turns_are_bounded(turns: int, asked: int) -> None:
    trace, script = one([call("nonsense", "{}")] * turns, turns)
    assert (len(trace.steps), len(script.asked)) == (turns, asked)


def test_no_second_turn_without_an_error_of_a_tool() -> None:
    """Text, and a call that fits its schema with wrong values, get no second turn: no tool complained."""
    for answer in (Message.of("assistant", "No."), gold(TASKS[0])):
        trace, script = one([answer], 2)
        assert len(script.asked) == len(trace.steps) == 1


def test_only_those_in_need_are_asked_again() -> None:
    """Of four tasks two fail in turn 1; turn 2 asks these two, in order, and the traces keep the tasks' order."""
    bad = call("nonsense", "{}")
    first = {task.id: gold(task) if i % 2 else bad for i, task in enumerate(TASKS)}
    script = Script([first, {task.id: gold(task) for task in TASKS}])
    traces = rollout(script, ENVIRONMENT, TASKS, Sampling(), max_turns=2)
    assert [ask.task_id for ask in script.asked[1]] == [TASKS[0].id, TASKS[2].id]
    assert [len(trace.steps) for trace in traces] == [2, 1, 2, 1]
    assert [trace.task_id for trace in traces] == [task.id for task in TASKS]


def test_an_abstention_is_a_trace_without_steps() -> None:
    trace, _ = one([None], 2)
    assert trace.steps == ()
    assert [event.kind for event in trace.events] == ["abstained"]


def test_ids_follow_from_content() -> None:
    """Equal runs have equal ids; another action, another id."""
    one_id, same, other = (one([message], 1)[0].id for message in (gold(TASKS[0]), gold(TASKS[0]), call("x", "{}")))
    assert one_id == same != other
