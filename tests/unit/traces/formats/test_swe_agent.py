"""SWE-agent's trajectories and mini-swe-agent's: which context is whose, and actions written as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Message, Text, ToolCall
from postgrad.core.trace import Trace
from postgrad.traces.formats.swe_agent.mini import MiniSWEAgent
from postgrad.traces.formats.swe_agent.text_actions import with_action
from postgrad.traces.formats.swe_agent.trajectory import SWEAgent
from unit.traces.formats.agent_files import mini_messages, swe_agent_run, write_json


def read(tmp_path: Path, run: Any) -> Trace:
    (trace,) = SWEAgent().read(write_json(tmp_path / "run.traj", run)).traces
    return trace


def written(message: Message) -> str:
    """Texts and raw calls, one behind the other."""
    return "".join(
        b.text if isinstance(b, Text) else b.arguments_raw for b in message.blocks if isinstance(b, Text | ToolCall)
    )


@pytest.mark.parametrize(
    ("response", "action", "command"),
    [
        ("Look.\n```\nls -F\n```", "ls -F\n", {"command": "ls -F"}),
        ("Look.\n```\nls\n```\nnot\n```bash\npwd\n```\nend", "pwd", {"command": "pwd"}),
        ("Look.\n<command>\nls\n</command>", "ls", {"command": "ls"}),
        ("<function=bash>\n<parameter=command>ls</parameter>\n</function>", "ls", {"command": "ls"}),
        ("I run ls now", "ls", {"command": "ls"}),
    ],
)
def test_text_and_raw_arguments_are_the_response_byte_for_byte(
    response: str, action: str, command: dict[str, str]
) -> None:
    message = Message("assistant", tuple(with_action(response, action, id="s")))
    assert written(message) == response
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("bash", command)]


def answers(*texts: str) -> list[dict[str, Any]]:
    return [{"action": t, "observation": f"saw {t}", "response": t, "thought": t} for t in texts]


def test_messages_of_a_step_are_the_input_of_the_next(tmp_path: Path) -> None:
    """W23: `messages` is the list after the step (4 then 6 long), `query` the list before it (2 then 4 long)."""
    base = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    full = list(base)
    after, before = [], []
    for text in ("one", "two"):
        before.append(list(full))
        full = [*full, {"role": "assistant", "content": text}, {"role": "user", "content": f"saw {text}"}]
        after.append(list(full))
    for key, lists in (("messages", after), ("query", before)):
        steps = [{**entry, key: lists[n]} for n, entry in enumerate(answers("one", "two"))]
        trace = read(tmp_path, {"trajectory": steps, "history": full, "info": {}})
        assert [len(step.request.messages) for step in trace.steps] == [2, 4]
        assert {step.request.fidelity for step in trace.steps} == {"exact-messages"}
        assert trace.context(trace.steps[1])[2] == trace.steps[0].action
        assert [r.text for m in trace.context(trace.steps[1]) for r in m.tool_results] == ["saw one"]


def test_without_them_the_history_before_the_answer_is_the_context(tmp_path: Path) -> None:
    trace = read(tmp_path, swe_agent_run())
    assert [len(step.request.messages) for step in trace.steps] == [2, 4]
    assert {step.request.fidelity for step in trace.steps} == {"reconstructed"}
    assert (trace.steps[0].records, trace.result_records) == ((0,), {"step-0": 0})


def test_a_demonstration_stays_in_the_context_and_is_no_step(tmp_path: Path) -> None:
    run = swe_agent_run()
    demo = {"role": "user", "content": "Here is a demonstration.", "agent": "primary", "is_demo": True}
    run["history"].insert(1, demo)
    trace = read(tmp_path, run)
    assert len(trace.steps) == 2
    assert "Here is a demonstration." in [message.text for message in trace.context(trace.steps[0])]
    assert [event.record for event in trace.events if event.kind == "demonstration"] == [2 + 1]


def test_a_history_that_lacks_the_last_answer_gives_a_partial_context(tmp_path: Path) -> None:
    run = swe_agent_run()
    del run["history"][4]
    trace = read(tmp_path, run)
    assert [step.request.fidelity for step in trace.steps] == ["reconstructed", "partial"]
    assert "earlier messages" in trace.steps[1].request.missing


@pytest.mark.parametrize(
    ("action", "seen", "flag"),
    [
        ("edit 1:1", "Your proposed edit has introduced new syntax error(s).", True),
        ("python x.py", 'Traceback (most recent call last):\n  File "x.py"', True),
        ("python x.py", "made a frame\nError: cannot convert", True),
        ("foo", "bash: foo: command not found", True),
        ("submit", '+    print(f"Error: {e}")', None),
        ("open x.py", "1: x\nTraceback (most recent call last)\n", None),
        ("ls", "a.txt", None),
    ],
)
def test_only_the_words_of_the_agents_tools_and_of_programs_flag(
    action: str, seen: str, flag: bool | None, tmp_path: Path
) -> None:
    run = {"trajectory": [{"action": action, "observation": seen, "response": action, "thought": ""}], "history": []}
    assert read(tmp_path, run).steps[0].results[0].is_error is flag


def test_calls_of_the_history_are_the_calls_of_the_step(tmp_path: Path) -> None:
    made = {"id": "call_1", "type": "function", "function": {"name": "open", "arguments": '{"path":"a.py"}'}}
    history = [
        {"role": "user", "content": "go", "agent": "main"},
        {"role": "assistant", "content": "I open it.", "tool_calls": [made], "action": "open a.py", "agent": "main"},
        {"role": "tool", "content": "OBSERVATION:\n1: x", "tool_call_ids": ["call_1"], "agent": "main"},
    ]
    entry = {"action": "open a.py", "observation": "1: x", "response": "I open it.", "thought": "I open it."}
    trace = read(tmp_path, {"history": history, "trajectory": [entry], "info": {"exit_status": "exit_cost"}})
    (call,) = trace.steps[0].action.tool_calls
    assert (call.name, call.arguments_raw) == ("open", '{"path":"a.py"}')
    assert [(event.kind, event.text) for event in trace.events] == [("exit", "exit_cost")]
    alone = read(tmp_path, {"history": history})
    assert [len(alone.steps), alone.tool_calls, alone.tool_results] == [1, 1, 1]


def mini(tmp_path: Path, messages: Any) -> Trace:
    (trace,) = MiniSWEAgent().read(write_json(tmp_path / "m.traj.json", messages)).traces
    return trace


def test_a_return_code_is_the_flag_of_a_mini_result(tmp_path: Path) -> None:
    messages = mini_messages()
    messages[3]["content"] = "<returncode>2</returncode>\n<output>\nno\n</output>"
    trace = mini(tmp_path, messages)
    assert [(r.is_error, r.status) for r in trace.steps[0].results] == [(True, "error")]
    assert written(trace.steps[0].action) == messages[2]["content"]
    assert trace.steps[1].request.fidelity == "exact-messages"


@pytest.mark.parametrize(
    ("said", "results"),
    [
        ("The last command <command>make\ncheck</command> timed out and has been killed.", [(True, "error")]),
        ("Why was the last command <command>make</command> timed out and killed?", []),
    ],
)
def test_a_command_that_took_too_long_has_that_as_its_result(
    tmp_path: Path, said: str, results: list[tuple[bool, str]]
) -> None:
    """The application writes it in place of an output; whoever only speaks of such a thing answers no call."""
    messages = mini_messages()
    messages[3]["content"] = f"{said}\nThe output of the command was:\n <output>\nhalf\n</output>"
    step = mini(tmp_path, messages).steps[0]
    assert [(r.is_error, r.status) for r in step.results] == results


def test_an_answer_off_the_format_is_judged(tmp_path: Path) -> None:
    messages = mini_messages()
    messages[2]["content"] = "no block"
    messages[3]["content"] = "Please always provide EXACTLY ONE action in triple backticks, found 0 actions."
    trace = mini(tmp_path, messages)
    assert trace.tool_calls == 0
    assert [feedback.kind for feedback in trace.steps[0].feedback] == ["malformed_call"]


def test_version_2_with_tools(tmp_path: Path) -> None:
    made = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    response = {"model": "m", "usage": {"total_tokens": 5}, "choices": [{"finish_reason": "tool_calls"}]}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [made], "extra": {"response": response}},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt", "extra": {"returncode": 0}},
        {"role": "exit", "content": "done"},
    ]
    run = {
        "info": {"exit_status": "Submitted", "mini_version": "2.0"},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
    }
    trace = mini(tmp_path, run)
    (step,) = trace.steps
    assert (step.candidates[0].model, step.candidates[0].usage, step.candidates[0].stop_reason) == (
        "m",
        {"total_tokens": 5},
        "tool_calls",
    )
    assert [(r.text, r.is_error) for r in step.results] == [("a.txt", False)]
    assert trace.source.app_version == "2.0"
