"""Agent Data Protocol trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Reasoning, Text
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.datasets.adp import AgentDataProtocol
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head


def seen(text: str, source: str = "environment", **more: Any) -> dict[str, Any]:
    return {"class_": "text_observation", "content": text, "source": source, **more}


def api(name: str, key: str | None = None, **kwargs: Any) -> dict[str, Any]:
    return {"class_": "api_action", "function": name, "kwargs": kwargs, "description": "why", "tool_call_id": key}


CODE = {"class_": "code_action", "language": "bash", "content": "ls", "description": None}
SAID = {"class_": "message_action", "content": "Done.", "description": "all is there"}


def read(folder: Path, *items: Any, **more: Any) -> ReadResult:
    path = folder / "std.jsonl"
    path.write_text(json.dumps({"id": "t", "content": list(items), "details": {}, **more}) + "\n")
    return readers.read(path)


def only(found: ReadResult) -> Trace:
    (trace,) = found.traces
    return trace


def test_actions_are_steps_and_observations_their_results(tmp_path: Path) -> None:
    found = read(tmp_path, seen("List.", "user"), CODE, seen("a.txt"), api("open", file="a.txt"), seen("text"), SAID)
    trace = only(found)
    assert (found.source.format, found.uses) == ("adp", {"step": 1})
    assert [[(c.name, c.arguments) for c in step.action.tool_calls] for step in trace.steps] == [
        [("bash", {"code": "ls"})],
        [("open", {"file": "a.txt"})],
        [],
    ]
    assert [[r.text for r in step.results] for step in trace.steps] == [["a.txt"], ["text"], []]
    assert trace.steps[1].action.blocks[0] == Text("why")
    assert trace.steps[2].action.blocks == (Reasoning("all is there"), Text("Done."))
    assert (trace.steps[0].request.fidelity, trace.task_id) == ("partial", "t")


def test_calls_asked_for_at_once_are_one_step(tmp_path: Path) -> None:
    """Ids tell who answers whom, also in another order; without ids two actions are two steps."""
    trace = only(
        read(
            tmp_path,
            seen("go", "user"),
            api("f", "1"),
            api("g", "2"),
            seen("G", tool_call_id="2"),
            seen("F", tool_call_id="1"),
        )
    )
    assert [[r.text for r in step.results] for step in trace.steps] == [["F", "G"]]
    assert len(only(read(tmp_path, seen("go", "user"), api("f"), api("g"))).steps) == 2


def test_web_pages_rewards_and_names_in_the_other_spelling(tmp_path: Path) -> None:
    page = {
        "class_": "WebObservation",
        "url": "https://x.test",
        "axtree": "[1] a",
        "html": None,
        "image_observation": None,
    }
    trace = only(read(tmp_path, seen("go", "user"), {**api("click"), "class_": "ApiAction", "reward": 0.5}, page))
    assert json.loads(trace.steps[0].results[0].text) == {"url": "https://x.test", "axtree": "[1] a"}
    assert [(said.kind, said.value) for said in trace.steps[0].feedback] == [("step_reward", 0.5)]


def test_unknown_and_broken_items_are_told(tmp_path: Path) -> None:
    found = read(tmp_path, seen("go", "user"), 5, {"class_": "dance_action"}, CODE)
    assert len(only(found).steps) == 1
    assert ["unknown item" in told.what for told in found.diagnostics] == [True, True]


@pytest.mark.parametrize(
    "row", [{"content": []}, {"content": "x"}, {"content": [{"class_": "other"}]}, {"content": [{"type": "text"}]}]
)
def test_look_alikes_are_refused(row: dict[str, Any]) -> None:
    assert not AgentDataProtocol().recognises(Head.of([row]))
