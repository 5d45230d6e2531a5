"""The verb replay: from a store and a list of teachers to replayed.jsonl, with nothing paid or sent twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.envs.environment import load_environment
from postgrad.run.config import load
from postgrad.signals.records import read_lines
from postgrad.teachers.replay import ReplayedStep
from postgrad.verbs.replay import CONFIG, ReplayConfig, run, show
from unit.signals.traces_by_hand import TraceBuilder, act, call
from unit.teachers.endpoint_by_script import Endpoint, Reply, completion, serving
from unit.verbs.replay_setting import RIGHT, SECRET, make_store, weather_traces

SURE = {"name": "sure", "kind": "unit.verbs.replay_setting:Sure"}
ANSWER = completion(calls=[("get_weather", '{"city": "Rome"}')])


def http(endpoint: Endpoint, **more: Any) -> dict[str, Any]:
    at = {"base_url": endpoint.base_url, "max_retries": 0, "concurrency": 1}
    return {"name": "http", "kind": "openai", "model": "m-1", "endpoint": at, **more}


def config(store: Path, *teachers: dict[str, Any], **more: Any) -> ReplayConfig:
    return load(CONFIG, None, {"store": str(store), "teachers": list(teachers), **more})


def test_error_sites_are_replayed_and_reported(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        result = run(config(store, SURE, http(endpoint)), tmp_path / "out")
    assert (result["selected"], result["steps"], result["stopped"]) == (2, 2, None)
    assert {name: one["answers"] for name, one in result["teachers"].items()} == {"sure": 2, "http": 2}
    assert result["teachers"]["http"]["cost"] == "unknown"
    assert result["teachers"]["http"]["models"] == ["served-1"]
    assert result["teachers"]["sure"]["cost"] == 0.0
    first, second = read_lines(Path(result["replayed"]), ReplayedStep)
    assert first.action.tool_calls[0].arguments == {"city": "Oslo"}
    assert second.action.tool_calls[0].parse_error
    assert first.answers["sure"].answer.message == RIGHT
    json.dumps(result)
    show(result)


def test_all_steps_and_the_limit(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    assert run(config(store, SURE, select="all"), tmp_path / "a")["steps"] == 3
    assert run(config(store, SURE, select="all", limit=2), tmp_path / "b")["steps"] == 2


def test_what_was_sent_is_redacted_and_on_record(tmp_path: Path) -> None:
    """A loopback teacher is redacted like any other: only the secret's mark goes over the wire."""
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        run(config(store, SURE, http(endpoint)), tmp_path / "out")
    assert SECRET not in canonical_json(endpoint.requests)
    assert "<secret:" in canonical_json(endpoint.requests)
    sent = json.loads((tmp_path / "out" / "sent.json").read_text())
    assert sent["http"]["where"] == endpoint.base_url
    assert sent["sure"]["where"] == "this machine"
    assert [row["step"] for row in sent["http"]["asks"]] == [0, 0]
    assert SECRET not in canonical_json(sent)


def test_the_same_command_after_a_failure_asks_only_what_is_missing(tmp_path: Path) -> None:
    """Three steps, the endpoint dies after the first answer; the second run makes the two calls that are left."""
    store = make_store(tmp_path, weather_traces())
    down = Reply({"error": {"message": "down"}}, 503)
    with serving(ANSWER, down) as endpoint:
        address = endpoint.base_url
        with pytest.raises(OutsideFailure):
            run(config(store, http(endpoint), select="all"), tmp_path / "out")
        assert not (tmp_path / "out" / "replayed.jsonl").exists()
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint)
        answers = tmp_path / "out" / "cache"
        assert len(list(answers.rglob("*.json"))) == 1
        endpoint_only = {**teacher, "endpoint": {**teacher["endpoint"], "base_url": address}}
        with pytest.raises(OutsideFailure):  # the old address is gone: only the cached step would work
            run(config(store, endpoint_only, select="all"), tmp_path / "out")
        first = run(config(store, endpoint_only, select="all", limit=1), tmp_path / "out")
        assert first["teachers"]["http"]["cache_hits"] == 1
        whole = run(config(store, teacher, select="all"), tmp_path / "out")
        again = run(config(store, teacher, select="all"), tmp_path / "out")
        assert len(endpoint.requests) == 3
    assert (whole["teachers"]["http"]["cache_hits"], again["teachers"]["http"]["cache_hits"]) == (0, 3)


def test_a_budget_stops_the_replay_and_keeps_what_it_has(tmp_path: Path) -> None:
    """A written token costs 1 US dollar, an answer has 20 and may have 256: one call fits 270, a second does not."""
    store = make_store(tmp_path, weather_traces())
    prices = tmp_path / "prices.yaml"
    prices.write_text('as_of: "2026-01-01"\nmodels: {m-1: {input: 0, output: 1000000}}\n', encoding="utf-8")
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint)
        teacher["endpoint"]["prices"] = str(prices)
        result = run(config(store, teacher, select="all", budget=270.0, batch=1), tmp_path / "out")
        assert len(endpoint.requests) == 1
    assert (result["steps"], result["selected"]) == (1, 3)
    assert "budget" in result["stopped"]
    assert (result["teachers"]["http"]["cost"], result["teachers"]["http"]["paid"]) == (20.0, 20.0)


def test_a_budget_without_a_price_is_refused_before_any_call(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        with pytest.raises(ConfigError, match="no known price"):
            run(config(store, http(endpoint), budget=1.0), tmp_path / "out")
        assert endpoint.requests == []


def test_template_hints_go_to_the_teacher_that_wants_them(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        run(config(store, http(endpoint, hint="template"), select="all"), tmp_path / "out")
    contents = [body["messages"][-1]["content"] for body in endpoint.requests]
    assert "exactly as the request states" in contents[0]
    assert contents[1] == "weather in Rome, please (1)"
    assert "one JSON object" in contents[2]


def test_gold_answers_and_gold_hints_are_found_by_task_and_named(tmp_path: Path) -> None:
    tasks = load_environment("function_calling").tasks("train", 3)
    traces = []
    for task in tasks:
        builder = TraceBuilder("x", task.tools, task.id)
        builder._context = list(task.messages)
        traces.append(builder.step(act(call("nothing", {}))).build(f"trace-{task.id}"))
    store = make_store(tmp_path, traces)
    gold = {"name": "truth", "kind": "gold", "environment": "function_calling/train:3"}
    with serving(ANSWER) as endpoint:
        told = http(endpoint, hint="gold", environment="function_calling/train:2")
        result = run(config(store, gold, told), tmp_path / "out")
    steps = list(read_lines(Path(result["replayed"]), ReplayedStep))
    by_id = {task.id: task for task in tasks}
    for step in steps:
        assert step.answers["truth"].answer.message == by_id[step.ask.task_id or ""].reference
        assert step.answers["truth"].kind == "gold answers"
    assert result["teachers"]["truth"]["kind"] == "gold answers"
    assert result["teachers"]["http"]["kind"] == "HTTP endpoint, told the gold answer"
    hints = [step.answers["http"].hint for step in steps]
    assert sum(hint is not None and hint.startswith("The right") for hint in hints) == 2


@pytest.mark.slow
def test_local_teachers_share_one_model_and_say_how_they_answer(tmp_path: Path) -> None:
    """The random model answers noise; what counts is that two teachers answer apart and are cached apart."""
    store = make_store(tmp_path, weather_traces())
    free = {"name": "free", "kind": "local", "model": "tiny-random"}
    held = {"name": "held", "kind": "local", "model": "tiny-random", "constrained": True, "hint": "template"}
    more = {"sampling.max_new_tokens": 8}
    first = run(config(store, free, held, **more), tmp_path / "out")
    again = run(config(store, free, held, **more), tmp_path / "out")
    assert first["teachers"]["free"]["kind"] == "local model"
    assert first["teachers"]["held"]["kind"] == "local model, told a hint, constrained"
    assert [one["answers"] for one in first["teachers"].values()] == [2, 2]
    assert [one["cache_hits"] for one in again["teachers"].values()] == [2, 2]
    assert [one["cost"] for one in first["teachers"].values()] == [0.0, 0.0]


def test_held_out_tasks_are_no_gold(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    gold = {"name": "truth", "kind": "gold", "environment": "function_calling/heldout"}
    with pytest.raises(ConfigError, match="may not be trained on"):
        run(config(store, gold), tmp_path / "out")


@pytest.mark.parametrize(
    ("teachers", "message"),
    [
        ([], "no teachers"),
        ([SURE, SURE], "one name"),
        ([{"name": "a", "kind": "oracle"}], "unknown teacher"),
        ([{"name": "a", "kind": "local"}], "needs model"),
        ([{"name": "a", "kind": "gold"}], "needs environment"),
        ([{"name": "a", "kind": "openai", "model": "m"}], "needs endpoint.base_url"),
        ([{"name": "a", "kind": "scripted"}], "cannot be made from a recipe"),
        (
            [
                {
                    "name": "a",
                    "kind": "openai",
                    "model": "m",
                    "constrained": True,
                    "endpoint": {"base_url": "http://localhost"},
                }
            ],
            "local models",
        ),
    ],
)
def test_teachers_that_cannot_be_made(tmp_path: Path, teachers: list[dict[str, Any]], message: str) -> None:
    store = make_store(tmp_path, weather_traces())
    with pytest.raises(ConfigError, match=message):
        run(config(store, *teachers), tmp_path / "out")


def test_a_store_without_errors_says_what_to_do(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces()[1:2])
    with pytest.raises(DataError, match="--select all"):
        run(config(store, SURE), tmp_path / "out")
