"""The verb correct: a captured answer by its id, a step of a store by its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.errors import ConfigError, DataError
from postgrad.run.config import load
from postgrad.signals.rows.human import read_corrections
from postgrad.traces.capture import exchange
from postgrad.verbs.correct import CONFIG, run, show
from unit.verbs.replay_setting import make_store, weather_traces

RIGHT = {"name": "get_weather", "arguments": {"city": "Rome"}}


def correct(where: Path, **options: Any) -> dict[str, Any]:
    return run(load(CONFIG, None, {"where": str(where), **options}), Path())


def test_a_captured_answer_by_its_id_in_a_run_folder(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "Oslo"}
    response = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    file = tmp_path / "captures" / "2026-01-01.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps(exchange({"messages": [{"role": "user", "content": "?"}]}, response)) + "\n")
    result = correct(tmp_path, id="chatcmpl-1", text="Rome", reason="it is", by="ada")
    assert result == {"object": "correction", "id": "chatcmpl-1", "by": "human:ada", "captured": str(file)}
    written = json.loads(file.read_text().splitlines()[1])
    (choice,) = written["response"]["choices"]
    assert (choice["message"]["content"], choice["postgrad"]) == ("Rome", {"teacher": "human:ada"})
    assert "human:ada" in show(result)


def test_a_step_of_a_store_by_the_beginning_of_its_trace(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    right = tmp_path / "right.json"
    right.write_text('{"tool_calls": [{"function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Rome\\"}"}}]}')
    assert correct(store, trace="trace-2", step=0, message=str(right))["id"] == "trace-2/0"
    ((one,),) = read_corrections(store).values()
    assert (one.trace, one.step, one.who) == ("trace-2", 0, "human")
    assert one.action.tool_calls[0].arguments == {"city": "Rome"}
    assert one.time


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"text": "x"}, ConfigError, "which answer"),
        ({"id": "a", "trace": "b", "step": 0, "text": "x"}, ConfigError, "which answer"),
        ({"trace": "trace-0", "text": "x"}, ConfigError, "which answer"),
        ({"trace": "trace-0", "step": 0}, ConfigError, "what is right"),
        ({"trace": "trace", "step": 0, "text": "x"}, DataError, "several traces begin so"),
        ({"trace": "nothing", "step": 0, "text": "x"}, DataError, "no such trace"),
        ({"trace": "trace-0", "step": 9, "text": "x"}, DataError, "no such step"),
        ({"trace": "trace-0", "step": 0, "calls": [{"name": "get_time"}]}, DataError, "did not offer"),
        (
            {"trace": "trace-1", "step": 0, "calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]},
            DataError,
            "what the served",
        ),
        (
            {"trace": "trace-0", "step": 0, "calls": "[{name: get_weather, arguments: {city: !!binary aGk=}}]"},
            ConfigError,
            "not a valid JSON",
        ),
    ],
)
def test_mistakes_of_the_user(tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str) -> None:
    store = make_store(tmp_path, weather_traces())
    with pytest.raises(error, match=words):
        correct(store, **options)
    assert read_corrections(store) == {}
