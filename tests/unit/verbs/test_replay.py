"""The verb replay: from a store and a list of teachers to replayed.jsonl, with nothing paid or sent twice."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from postgrad.core.actor import Sampling
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.trace import Candidate, Request, Step
from postgrad.envs.environment import load_environment
from postgrad.run.config import load
from postgrad.signals.rows.records import read_lines
from postgrad.teachers.replay import ReplayedStep
from postgrad.verbs.replay import CONFIG, ReplayConfig, exit_code, logged_tokens, run, show
from unit.signals.traces_by_hand import TraceBuilder, act, call
from unit.teachers.endpoint_by_script import ERROR, Endpoint, Reply, completion, serving
from unit.verbs.replay_setting import RIGHT, SECRET, make_store, weather_traces

SURE = {"name": "sure", "kind": "unit.verbs.replay_setting:Sure"}
ANSWER = completion(calls=[("get_weather", '{"city": "Rome"}')])
FREE = {"input": 0, "output": 0}


def http(endpoint: Endpoint | str, **more: Any) -> dict[str, Any]:
    url = endpoint if isinstance(endpoint, str) else endpoint.base_url
    at = {"base_url": url, "max_retries": 0, "concurrency": 1}
    return {"name": "http", "kind": "openai", "model": "m-1", "price": FREE, **at, **more}


def config(store: Path, *teachers: dict[str, Any], **more: Any) -> ReplayConfig:
    return load(CONFIG, None, {"store": str(store), "teachers": list(teachers), **more})


def printed(result: dict[str, Any]) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(show(result))
    return console.export_text()


def test_error_sites_are_replayed_and_reported(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        result = run(config(store, SURE, http(endpoint)), tmp_path / "out")
    assert (result["selected"], result["steps"], result["stopped_by_budget"]) == (2, 2, False)
    assert {name: one["answers"] for name, one in result["teachers"].items()} == {"sure": 2, "http": 2}
    assert (result["calls"], result["cached"], result["cost"], result["errors"]) == (4, 0, 0.0, {})
    assert result["teachers"]["http"]["models"] == ["m-1"]
    assert (result["teachers"]["http"]["tokens_in"], result["teachers"]["http"]["tokens_out"]) == (200, 40)
    first, second = read_lines(Path(result["replayed"]), ReplayedStep)
    assert first.action.tool_calls[0].arguments == {"city": "Oslo"}
    assert second.action.tool_calls[0].parse_error
    assert first.answers["sure"].answer.message == RIGHT
    json.dumps(result)
    show(result)
    assert exit_code(result) == 0


def test_all_steps_the_limit_and_the_worthiest(tmp_path: Path) -> None:
    """Three steps of about the same cost; the two at error sites are worth most, and 70 % of the cost buys both."""
    store = make_store(tmp_path, weather_traces())
    assert run(config(store, SURE, steps="all"), tmp_path / "a")["steps"] == 3
    assert run(config(store, SURE, steps="all", limit=2), tmp_path / "b")["steps"] == 2
    result = run(config(store, SURE, steps="voi", **{"voi.share": 0.75}), tmp_path / "c")
    assert [step.trace for step in read_lines(Path(result["replayed"]), ReplayedStep)] == ["trace-0", "trace-2"]
    assert run(config(store, SURE, steps="voi", limit=1), tmp_path / "d")["steps"] == 1


def test_a_plan_asks_nothing_and_goes_with_a_later_run_in_the_same_folder(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint, price={"input": 1, "output": 2, "batch": 0.5})
        plan = run(config(store, SURE, teacher, plan=True), tmp_path / "out")
        assert endpoint.requests == []
        done = run(config(store, SURE, teacher), tmp_path / "out")
        after = run(config(store, SURE, teacher, plan=True), tmp_path / "out")
    assert (plan["steps"], plan["calls"], plan["cached"]) == (2, 4, 0)
    assert 0 < plan["planned_cost"] == done["planned_cost"] <= plan["planned_most"]
    assert plan["teachers"]["http"]["batch_cost"] == pytest.approx(plan["planned_cost"] / 2)
    assert plan["teachers"]["sure"]["cost"] == 0.0
    assert (after["calls"], after["cached"], after["planned_cost"]) == (0, 4, 0.0)
    show(plan)
    json.dumps(plan)


def test_what_was_sent_is_redacted_and_on_record(tmp_path: Path) -> None:
    """A loopback teacher is redacted like any other: only the secret's mark goes over the wire."""
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        run(config(store, SURE, http(endpoint)), tmp_path / "out")
    assert SECRET not in canonical_json(endpoint.requests)
    assert "<secret:" in canonical_json(endpoint.requests)
    sent = json.loads((tmp_path / "out" / "sent.json").read_text())
    assert sent["http"]["where"] == [endpoint.base_url.removeprefix("http://").removesuffix("/v1")]
    assert sent["sure"]["where"] == "this machine"
    assert [row["trace"] for row in sent["http"]["requests"]] == ["trace-0", "trace-2"]
    for name in ("sent.json", "calls.jsonl"):
        text = (tmp_path / "out" / name).read_text()
        assert SECRET not in text
        assert "weather in Rome" not in text


def test_the_same_command_asks_only_what_is_missing_wherever_the_server_is(tmp_path: Path) -> None:
    """Three steps, the endpoint dies after the first answer; at its new address two are asked."""
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER, Reply(ERROR, 503)) as endpoint:
        first = run(config(store, http(endpoint), steps="all"), tmp_path / "out")
    assert (first["steps"], first["calls"], first["errors"]) == (3, 1, {"server_error": 2})
    with serving(ANSWER) as endpoint:
        again = run(config(store, http(endpoint), steps="all"), tmp_path / "out")
        assert len(endpoint.requests) == 2
    assert (again["calls"], again["cached"], again["errors"]) == (2, 1, {})


def test_a_teacher_that_nobody_can_reach_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = make_store(tmp_path, weather_traces())
    result = run(config(store, SURE, http("http://127.0.0.1:9/v1")), tmp_path / "out")
    assert (result["steps"], result["errors"]) == (2, {"connection": 2})
    assert exit_code(result) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("error: http could not be reached: 0 of 2 steps answered (2 connection); to go on: ")
    assert f"postgrad replay --resume {tmp_path / 'out'} (what was answered is not asked again)" in told
    show(result)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            completion("hi", model="cheap-1"),
            "(2 wrong_model): wrong_model: cheap-1 answered for m-1; if it is what you want: accept: [cheap-1]",
        ),
        (Reply(ERROR, 400), "(2 refused): refused: 400 "),
    ],
)
def test_a_teacher_that_will_never_answer_as_it_is_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reply: Reply, told: str
) -> None:
    with serving(reply) as endpoint:
        result = run(config(make_store(tmp_path, weather_traces()), SURE, http(endpoint)), tmp_path / "out")
    assert exit_code(result) == 2
    assert f"error: http: 0 of 2 steps answered {told}" in capsys.readouterr().err


def test_steps_that_do_not_fit_are_counted_and_told(tmp_path: Path) -> None:
    small = {"name": "small", "kind": "unit.verbs.replay_setting:Small"}
    result = run(config(make_store(tmp_path, weather_traces()), SURE, small), tmp_path / "out")
    assert {name: (one["answers"], one["too_long"]) for name, one in result["teachers"].items()} == {
        "sure": (2, 0),
        "small": (0, 2),
    }
    told = printed(result)
    assert "too long" in told
    assert "small: 2 steps do not fit in its context (too_long)" in told
    assert "sure: " not in told


def test_a_run_of_fewer_steps_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three steps, then one of them: two are left out; then all again: none is."""
    store = make_store(tmp_path, weather_traces())
    run(config(store, SURE, steps="all"), tmp_path / "out")
    assert "earlier run" not in capsys.readouterr().err
    run(config(store, SURE, steps="all", limit=1), tmp_path / "out")
    told = "2 steps of the earlier run are not among these 1: their answers stay in the cache"
    assert told in capsys.readouterr().err
    run(config(store, SURE, steps="all"), tmp_path / "out")
    assert "earlier run" not in capsys.readouterr().err


def test_a_budget_stops_the_replay_keeps_what_it_has_and_counts_earlier_runs(tmp_path: Path) -> None:
    """A written token costs 1 US dollar, an answer has 20 and may have 256.

    270 let one call through: 20 are paid, and 20 + 256 is more than 270. A second run with 280 counts those 20:
    20 + 256 is within it, 40 + 256 is not.
    """
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint, price={"input": 0, "output": 1e6})
        result = run(config(store, teacher, steps="all", budget=270.0), tmp_path / "out")
        assert (len(endpoint.requests), result["steps"], result["selected"]) == (1, 1, 3)
        more = run(config(store, teacher, steps="all", budget=280.0), tmp_path / "out")
        assert len(endpoint.requests) == 2
    assert (result["stopped_by_budget"], result["cost"]) == (True, 20.0)
    assert (more["cost"], more["paid_in_all_runs"], more["cached"], more["stopped_by_budget"]) == (20.0, 40.0, 1, True)


def test_a_signal_ends_the_stage_of_a_cycle_with_an_error_and_leaves_local_models_unasked(tmp_path: Path) -> None:
    """The signal comes with the first of three calls: its answer is kept, no model is run, nothing counts as done."""
    store = make_store(tmp_path, weather_traces())

    def interrupt(body: dict[str, Any]) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        return Reply(ANSWER.body | {"model": "m-1"}, wait=0.2)

    before = signal.getsignal(signal.SIGINT)
    with serving(answer=interrupt) as endpoint:
        settings = config(store, SURE, http(endpoint), steps="all")
        with pytest.raises(OutsideFailure, match="SIGINT ended the replay after 0 of 3 steps"):
            run(settings, tmp_path / "out")
    assert (len(endpoint.requests), signal.getsignal(signal.SIGINT)) == (1, before)
    with serving(ANSWER) as endpoint:
        done = run(config(store, SURE, http(endpoint), steps="all"), tmp_path / "out")
    assert (len(endpoint.requests), done["steps"], done["interrupted"]) == (2, 3, None)


def test_a_second_signal_leaves_the_money_of_every_call_under_way_aside(tmp_path: Path) -> None:
    """Two calls were at the server; each may cost 256 US dollars, and may have been billed."""
    store = make_store(tmp_path, weather_traces())
    ready = threading.Event()

    def interrupt(body: dict[str, Any]) -> Reply:
        if len(endpoint.requests) == 2:  # in the server's lock: the first has come
            ready.set()
        return Reply(ANSWER.body | {"model": "m-1"}, wait=3.0)

    def twice() -> None:
        ready.wait(30.0)
        for _ in range(2):
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=twice, daemon=True).start()
    with serving(answer=interrupt) as endpoint:
        teacher = http(endpoint, concurrency=2, price={"input": 0, "output": 1e6})
        with pytest.raises(SystemExit):
            run(config(store, teacher), tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "calls.jsonl").read_text().splitlines()]
    ends = [(line["outcome"], line["uncertain"]) for line in lines if line["event"] == "settled"]
    assert ends == [("interrupted", 256.0)] * 2


def test_a_bill_above_what_a_call_may_cost_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """256 tokens may be written, at a dollar each, and the first answer is billed with 500."""
    store = make_store(tmp_path, weather_traces())
    with serving(completion("hi", usage=(1, 500, 0))) as endpoint:
        teacher = http(endpoint, price={"input": 0, "output": 1e6})
        result = run(config(store, teacher, steps="all", budget=300.0), tmp_path / "out")
        assert len(endpoint.requests) == 1
    assert (result["stopped_by_budget"], result["cost"]) == (True, 500.0)
    assert "came to 500.000000 US dollars, 200.000000 above the budget" in capsys.readouterr().err


def test_an_unknown_price_stops_before_any_call(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    prices = tmp_path / "prices.yaml"
    prices.write_text('as_of: "2026-01-01"\nmodels: {m-1: {input: 0, output: 1}}\n', encoding="utf-8")
    with serving(ANSWER) as endpoint:
        for plan in (False, True):
            with pytest.raises(ConfigError, match=r"no known price.*price: \{input: 0, output: 0\}"):
                run(config(store, http(endpoint, price=None), plan=plan), tmp_path / "out")
        assert endpoint.requests == []
        listed = {"calls.prices": str(prices)}
        result = run(config(store, http(endpoint, price=None), **listed), tmp_path / "out")
    assert result["cost"] == pytest.approx(2 * 20 / 1e6)


def test_a_plan_needs_no_key_and_the_replay_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEACHER_KEY", raising=False)
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint, api_key_env="TEACHER_KEY")
        plan = run(config(store, teacher, plan=True), tmp_path / "out")
        with pytest.raises(ConfigError, match="teacher http: the environment variable TEACHER_KEY is not set"):
            run(config(store, teacher), tmp_path / "out")
        assert endpoint.requests == []
    assert plan["calls"] == 2


def test_what_the_issue_asks_for_is_in_the_result(tmp_path: Path) -> None:
    """The same keys for a plan and for a replay."""
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint, price={"input": 1, "output": 2})
        plan, done = (run(config(store, teacher, plan=wanted), tmp_path / "out") for wanted in (True, False))
    for result in (plan, done):
        keys = {"steps", "calls", "cached", "planned_cost", "cost", "stopped_by_budget", "errors", "teachers"}
        assert keys <= set(result)
        assert {"calls", "cost", "tokens_in", "tokens_out", "p50", "p95", "p99"} <= set(result["teachers"]["http"])
    (trace,) = [one for name, one in done["traces"].items() if name == "trace-0"]
    assert (trace["calls"], trace["tokens_in"], trace["tokens_out"], trace["errors"]) == (1, 100, 20, {})
    assert trace["cost"] == pytest.approx(140e-6)
    assert trace["p50"] == trace["p99"] > 0


def test_only_local_teachers_when_so_wanted(tmp_path: Path) -> None:
    """Also at an address of this machine: what listens there may pass everything on."""
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        for kind in ("openai", "anthropic", "ollama"):
            with pytest.raises(ConfigError, match="only local ones"):
                run(config(store, SURE, http(endpoint, kind=kind), local_only=True), tmp_path / "out")
        assert endpoint.requests == []
    assert run(config(store, SURE, local_only=True), tmp_path / "out")["steps"] == 2
    with pytest.raises(ConfigError, match="local = True"):
        run(config(store, {"name": "x", "kind": "unit.verbs.replay_setting:Unsaid"}, local_only=True), tmp_path / "out")


def test_a_file_of_teachers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is written in the issue: an endpoint's keys beside the name, calls at once for all."""
    monkeypatch.setenv("TEACHER_KEY", "k-1")
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        price = {"input": 1.0, "output": 2.0, "cached_input": 0.1}
        one = {"name": "a", "kind": "openai", "base_url": endpoint.base_url, "model": "teacher-a", "price": price}
        path = tmp_path / "T.yaml"
        path.write_text(yaml.safe_dump({"teachers": [{**one, "api_key_env": "TEACHER_KEY"}], "concurrency": 3}))
        asked = load(CONFIG, None, {"store": str(store), "teachers": str(path)})
        result = run(asked, tmp_path / "out")
    assert asked.calls.concurrency == 3
    assert endpoint.headers[0]["authorization"] == "Bearer k-1"
    assert result["cost"] == pytest.approx(2 * (100 * 1.0 + 20 * 2.0) / 1e6)
    assert load(CONFIG, None, {"store": "s", "teachers": str(path), "calls.concurrency": "5"}).calls.concurrency == 5
    path.write_text("teachers: []\nconcurency: 3\n")
    with pytest.raises(ConfigError, match="concurrency"):
        load(CONFIG, None, {"store": "s", "teachers": str(path)})
    path.write_text(yaml.safe_dump({"teachers": [{**one, "endpoint": {"base_url": "http://localhost:1/v1"}}]}))
    with pytest.raises(ConfigError, match="base_url is given twice"):
        load(CONFIG, None, {"store": "s", "teachers": str(path)})


def test_what_was_recorded_is_played_back_without_a_network(tmp_path: Path) -> None:
    store, tape = make_store(tmp_path, weather_traces()), tmp_path / "tape.jsonl"
    with serving(ANSWER) as endpoint:
        recorded = run(config(store, http(endpoint, tape=str(tape))), tmp_path / "a")
        assert len(endpoint.requests) == 2
    played = {"name": "again", "kind": "cassette", "path": str(tape)}
    result = run(config(store, played, local_only=True), tmp_path / "b")
    assert (result["steps"], result["teachers"]["again"]["kind"], result["cost"]) == (2, "recorded answers", 0.0)
    one, other = (list(read_lines(Path(r["replayed"]), ReplayedStep)) for r in (recorded, result))
    assert [step.answers["http"].answer.message for step in one] == [
        step.answers["again"].answer.message for step in other
    ]
    assert SECRET not in tape.read_text()
    with pytest.raises(DataError, match="holds no answer"):
        run(config(store, played, steps="all"), tmp_path / "c")


def test_failover_of_a_recipe(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        teacher = http("http://127.0.0.1:9/v1", failover=[{"base_url": endpoint.base_url, "model": "m-2"}])
        result = run(config(store, teacher), tmp_path / "out")
    assert result["teachers"]["http"]["models"] == ["m-2"]
    assert (result["teachers"]["http"]["answers"], result["errors"]) == (2, {})


def test_template_hints_go_to_the_teacher_that_wants_them(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(ANSWER) as endpoint:
        run(config(store, http(endpoint, hint="template"), steps="all"), tmp_path / "out")
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
    assert [one["cached"] for one in again["teachers"].values()] == [2, 2]
    assert [one["cost"] for one in first["teachers"].values()] == [0.0, 0.0]


@pytest.mark.slow
def test_a_students_doubts_count_and_are_measured_once(tmp_path: Path) -> None:
    """The random model never says the same twice: of two samples at most one is in the largest cluster, and its
    entropy is near that of a uniform choice. A second look samples nothing: the model's weights are not even there."""
    from postgrad.traces.storage.store import Store
    from postgrad.verbs.selection import Prospects, VoiConfig
    from postgrad.verbs.student import Student

    folder = make_store(tmp_path, weather_traces())
    voi = VoiConfig(student="tiny-random", samples=2, max_new_tokens=8)
    first = Student(voi, tmp_path / "doubts")
    prospects = list(Prospects([], Sampling(), first).of(Store(folder)))
    assert [one.trace for one in prospects] == ["trace-0", "trace-1", "trace-2"]
    assert all(0.25 < one.uncertainty <= 1.0 for one in prospects)
    again = Student(voi, tmp_path / "doubts")
    assert list(Prospects([], Sampling(), again).of(Store(folder))) == prospects
    assert again._policy is None
    asked = config(folder, SURE, steps="voi", **{"voi.student": "tiny-random", "voi.share": 1, "voi.max_new_tokens": 4})
    assert run(asked, tmp_path / "out")["steps"] == 3
    assert len(list((tmp_path / "out" / "doubts").glob("*/*.json"))) == 3


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
        ([{"name": "a", "kind": "oracle"}], "teacher a: unknown teacher"),
        ([{"name": "a", "kind": "opnai"}], "did you mean 'openai'"),
        ([{"name": "a", "kind": "openai", "base_ulr": "http://x"}], "'base_ulr'; did you mean 'base_url'"),
        ([{"name": "a", "kind": "local"}], "needs model"),
        ([{"name": "a", "kind": "gold"}], "needs environment"),
        ([{"name": "a", "kind": "openai", "model": "m", "price": FREE}], "needs base_url"),
        ([{"name": "a", "kind": "anthropic", "price": FREE}], "needs model"),
        ([{"name": "a", "kind": "cassette"}], "needs tape"),
        ([{"name": "a", "kind": "local", "model": "m", "timeout": 3}], "a teacher of kind local does not use timeout"),
        ([{"name": "a", "kind": "gold", "environment": "e/s", "model": "m"}], "kind gold does not use model"),
        ([{"name": "a", "kind": "cassette", "tape": "t", "base_url": "http://h/v1"}], "does not use base_url"),
        ([{"name": "a", "kind": "local", "model": "m", "environment": "e/s"}], "does not use environment"),
        *(
            ([{"name": "a", "kind": "openai", "model": "m", "extra": {key: []}}], f"`extra` cannot set {key}")
            for key in ("messages", "model", "stream", "tools")
        ),
        ([{"name": "a", "kind": "scripted"}], "cannot be made from a recipe"),
        (
            [
                {
                    "name": "a",
                    "kind": "openai",
                    "model": "m",
                    "constrained": True,
                    "price": FREE,
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


KEYS = ("sk-proj-AbC123", "ghp_A1b2C3d4E5f6G7h8I9", "AKIAIOSFODNN7EXAMPLE", "0f" * 16, "two words", "")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_the_place_of_a_name_is_never_shown(tmp_path: Path, key: str) -> None:
    store = make_store(tmp_path, weather_traces())
    with pytest.raises(ConfigError, match="api_key_env is no name") as told:
        config(store, http("http://127.0.0.1:9/v1", api_key_env=key))
    assert not key or key not in str(told.value)
    failover = [{"base_url": "http://127.0.0.1:9/v1", "api_key_env": key}]
    with pytest.raises(ConfigError, match="api_key_env is no name"):
        config(store, http("http://127.0.0.1:9/v1", failover=failover))


def test_a_password_in_an_address_is_refused_before_it_is_written_anywhere(tmp_path: Path) -> None:
    store, url = make_store(tmp_path, weather_traces()), "http://ada:s3cret@127.0.0.1:9/v1"
    for teacher in (http(url), http("http://127.0.0.1:9/v1", failover=[{"base_url": url}])):
        with pytest.raises(ConfigError, match="base_url holds a user or a password; got 'an address at") as told:
            config(store, teacher)
        assert "s3cret" not in str(told.value)


def test_a_price_file_that_was_named_is_there_also_where_nobody_needs_it(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with pytest.raises(ConfigError, match="cannot use the price file"):
        run(config(store, SURE, **{"calls.prices": str(tmp_path / "gone.yaml")}), tmp_path / "out")


def test_answers_that_were_cut_off_are_counted(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces())
    with serving(completion("It is", finish="length")) as endpoint:
        result = run(config(store, http(endpoint)), tmp_path / "out")
    assert (result["teachers"]["http"]["answers"], result["teachers"]["http"]["truncated"]) == (2, 2)
    show(result)


def test_what_broke_off_is_released_when_the_user_says_so(tmp_path: Path) -> None:
    """A written token costs 1 US dollar, 256 may come. The first call is cut and may have been billed: 256 of 300 are
    gone, so nothing more is asked; nor with 250, which may be overrun already. Once released, both steps are."""
    store = make_store(tmp_path, weather_traces())
    teacher = {"price": {"input": 0, "output": 1e6}}
    with serving(Reply(ANSWER.body, cut=20), ANSWER) as endpoint:
        first = run(config(store, http(endpoint, **teacher), budget=300.0), tmp_path / "out")
        assert (first["uncertain"], first["stopped_by_budget"], len(endpoint.requests)) == (256.0, True, 1)
        assert run(config(store, http(endpoint, **teacher), budget=250.0), tmp_path / "out")["calls"] == 0
        more = {"budget": 300.0, "calls.release": True}
        done = run(config(store, http(endpoint, **teacher), **more), tmp_path / "out")
    assert (done["steps"], done["uncertain"], done["paid_in_all_runs"]) == (2, 0.0, 40.0)


def test_what_broke_off_pays_for_asking_it_again_in_a_later_run(tmp_path: Path) -> None:
    """As above, and the same command again: the 256 that the lost try holds pay for the next. Its bill is 20, so 40 are
    gone, and the second step's 256 fit in 300."""
    store = make_store(tmp_path, weather_traces())
    with serving(Reply(ANSWER.body, cut=20), ANSWER) as endpoint:
        asked = config(store, http(endpoint, price={"input": 0, "output": 1e6}), budget=300.0)
        first, done = run(asked, tmp_path / "out"), run(asked, tmp_path / "out")
    assert (first["errors"], first["uncertain"]) == ({"truncated": 1}, 256.0)
    assert (done["steps"], done["errors"], done["uncertain"], done["paid_in_all_runs"]) == (2, {}, 20.0, 40.0)


def test_a_budget_that_lost_tries_hold_is_an_error_that_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """256 of 300 are lost with the first try, and its retry uses them again: there is nothing for a third."""
    store = make_store(tmp_path, weather_traces())
    with serving(Reply(b"no JSON")) as endpoint:
        teacher = http(endpoint, price={"input": 0, "output": 1e6}, max_retries=5)
        result = run(config(store, teacher, budget=300.0), tmp_path / "out")
        assert len(endpoint.requests) == 2
    assert (result["steps"], result["errors"], result["stopped_by_budget"]) == (1, {"invalid_reply": 1}, True)
    assert exit_code(result) == 3
    told = capsys.readouterr().err
    assert "up to 256.000000 US dollars, which count against the budget" in told
    assert "error: http could not be reached: 0 of 1 step answered (1 invalid_reply)" in told


def test_a_killed_replay_goes_on_within_its_budget(tmp_path: Path) -> None:
    """A written token costs 1 US dollar, an answer has 20 and may have 256. Of a budget of 300 a killed process left
    256 set aside for the first step: it is asked with these, and then 40 are gone, the bill and as much for the lost
    try. So the second step (256) fits, and the third (20 more are gone) does not with 300, and does with 320."""
    store, out = make_store(tmp_path, weather_traces()), tmp_path / "out"
    with serving(ANSWER) as endpoint:
        teacher = http(endpoint, price={"input": 0, "output": 1e6})
        run(config(store, teacher, steps="all", limit=1, budget=300.0), out)
        sent = (out / "calls.jsonl").read_text().splitlines()[0]
        (out / "calls.jsonl").write_text(sent + "\n")
        for answer in (out / "cache").glob("*/*.json"):
            answer.unlink()
        again = run(config(store, teacher, steps="all", budget=300.0), out)
        more = run(config(store, teacher, steps="all", budget=320.0), out)
    assert (again["steps"], again["stopped_by_budget"], again["cost"], again["uncertain"]) == (2, True, 40.0, 20.0)
    assert (more["steps"], more["stopped_by_budget"], more["paid_in_all_runs"], more["uncertain"]) == (
        3,
        False,
        60.0,
        20.0,
    )


def test_a_discount_that_no_bill_has_shown_is_said_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = make_store(tmp_path, [TraceBuilder("x", [])
        .step(act(call("bash", {"command": "a"}, "c0")), [("no " * 3000, True)])
        .step(act(call("bash", {"command": "b"}, "c1")), [("no", True)])
        .step(act(call("bash", {"command": "c"}, "c2")), [("no", True)])
        .build("long")])  # fmt: skip
    teacher = http("http://127.0.0.1:9/v1", price={"input": 1, "output": 2, "cached_input": 0.1})
    plan = run(config(store, teacher, steps="all", plan=True), tmp_path / "out")
    assert plan["planned_cost"] < plan["planned_uncached"] <= plan["planned_most"]
    told = " ".join(capsys.readouterr().err.split())
    assert "openai, assumed" in told
    assert f"{plan['planned_uncached']:.6f} if it finds nothing" in told
    show(plan)


def test_a_bill_above_the_plan_is_said_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every answer is billed as 100,000 tokens at 1 US dollar a million."""
    store = make_store(tmp_path, weather_traces())
    with serving(completion("hi", usage=(100_000, 1, 0))) as endpoint:
        run(config(store, http(endpoint, price={"input": 1, "output": 0})), tmp_path / "out")
    assert "http: a call cost 0.100000 US dollars where" in " ".join(capsys.readouterr().err.split())


def test_a_store_without_errors_says_what_to_do(tmp_path: Path) -> None:
    store = make_store(tmp_path, weather_traces()[1:2])
    with pytest.raises(DataError, match="--steps all"):
        run(config(store, SURE), tmp_path / "out")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 7}, (100, 7)),
        ({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}, (100, 7)),
        ({"promptTokenCount": 100, "candidatesTokenCount": 7}, (100, 7)),
        ({"prompt_tokens": "many", "completion_tokens": True}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_a_plan_reads_what_logs_counted(usage: dict[str, Any], expected: tuple[int | None, int | None]) -> None:
    step = Step(0, Request(("m",)), (Candidate(RIGHT, usage=usage),))
    assert logged_tokens(step) == expected


def test_a_hit_of_the_prompt_cache_is_no_dearer_than_a_miss(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cached_input is 2, expected at most input \(1\)"):
        config(tmp_path, http("http://127.0.0.1:9/v1", price={"input": 1, "output": 2, "cached_input": 2}))
