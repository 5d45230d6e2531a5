"""The command line of replay against a scripted provider: the plan and the bill, the budget, kill -9 and resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from e2e.replay_store import Provider, command, openai, replayed, store_of, teachers_file
from unit.teachers.endpoint_by_script import ERROR, Reply, completion, serving


def test_the_plan_is_what_the_bill_will_be(tmp_path: Path) -> None:
    """Within 2 %, prompt cache included; the plan itself asks nothing."""
    store, provider = store_of(tmp_path, traces=6, steps=8), Provider(wait=0.01)
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url))
        words = (store, "--teachers", teachers, "--budget", 1, "--steps", "all", "-o", tmp_path / "out")
        plan = replayed(*words, "--plan")
        assert endpoint.requests == []
        done = replayed(*words)
    assert (plan["steps"], plan["calls"], plan["cost"]) == (48, 48, 0.0)
    assert plan["planned_cost"] == pytest.approx(provider.bill, rel=0.02)
    assert done["planned_cost"] == plan["planned_cost"]
    assert done["cost"] == pytest.approx(provider.bill, abs=1e-9)
    assert plan["planned_most"] > done["cost"]
    assert (done["calls"], done["cached"], done["stopped_by_budget"], done["errors"]) == (48, 0, False, {})
    assert done["teachers"]["a"]["tokens_cached"] > done["teachers"]["a"]["tokens_in"] / 2


def test_eight_workers_never_overrun_a_budget_and_use_it(tmp_path: Path) -> None:
    """Half the plan's price: at least 60 % of it is spent, and a higher budget goes on without paying twice."""
    store, provider = store_of(tmp_path, traces=16, steps=3), Provider(wait=0.02)
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 2.0}))
        words = (store, "--teachers", teachers, "--steps", "all", "-o", tmp_path / "out")
        budget = replayed(*words, "--plan")["planned_cost"] / 2
        half = replayed(*words, "--budget", budget, "--sampling.max_new_tokens", 64)
        paid = half["cost"]
        assert half["stopped_by_budget"] is True
        assert 0.6 * budget < paid <= budget
        assert 0 < half["steps"] < 48
        whole = replayed(*words, "--budget", 1, "--sampling.max_new_tokens", 64)
    assert (whole["steps"], whole["stopped_by_budget"]) == (48, False)
    assert whole["cached"] == half["calls"]
    assert len(set(provider.answered)) == len(provider.answered) == 48
    assert whole["paid_in_all_runs"] == pytest.approx(paid + whole["cost"])


def test_a_provider_that_bills_more_than_anyone_could_know_overruns_by_its_first_call_at_most(tmp_path: Path) -> None:
    """Every call costs 10,000 tokens whatever is sent. A budget of 3.5 calls buys three."""
    store = store_of(tmp_path, traces=12, steps=1)
    with serving(completion("hi", usage=(10_000, 1, 0))) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 0.0}))
        words = (store, "--teachers", teachers, "--steps", "all", "--budget", 0.035, "-o", tmp_path / "out")
        done = replayed(*words)
        assert len(endpoint.requests) == 3
    assert (done["cost"], done["stopped_by_budget"]) == (0.03, True)


def test_kill_in_mid_replay_and_resume(tmp_path: Path) -> None:
    """What was in the cache when the process died is not asked again; nothing is lost."""
    store, provider, out = store_of(tmp_path, traces=8, steps=5), Provider(wait=0.05), tmp_path / "out"
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 2.0}))
        words = (store, "--teachers", teachers, "--budget", 1, "--steps", "all", "-o", out)
        process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 200
        while len(list(out.glob("cache/*/*.json"))) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.3)  # what was under way ends at the server
        kept = len(list(out.glob("cache/*/*.json")))
        asked = len(endpoint.requests)
        done = replayed(*words)
        assert len(endpoint.requests) - asked == 40 - kept
    assert 10 <= kept < 40
    assert (done["steps"], done["calls"], done["cached"]) == (40, 40 - kept, kept)
    assert len(set(provider.answered)) == 40
    # Twice answered are only calls that were under way when the process died: at most one a worker.
    assert len(provider.answered) - 40 <= 8
    lines = [json.loads(line) for line in (out / "replayed.jsonl").read_text().splitlines()]
    assert all(line["answers"]["a"]["answer"]["message"]["blocks"] for line in lines)
    # The budget holds over both runs, and what died under way counts as money that may be gone.
    assert done["paid_in_all_runs"] + done["uncertain"] >= provider.bill - 1e-9


def test_everything_goes_wrong_at_once(tmp_path: Path) -> None:
    """A good teacher, one that is never reached, one that is another model, one that speaks no JSON."""
    store = store_of(tmp_path, traces=3, steps=2)
    busy = Reply(ERROR, 429, {"retry-after": "1"})
    with (
        serving(busy, Reply(ERROR, 500, {"retry-after-ms": "5"}), completion("hi")) as good,
        serving(completion("hi", model="cheap")) as other,
        serving(Reply(b"<html>")) as broken,
    ):
        quick = {"max_retries": 0, "timeout": 5}
        teachers = teachers_file(
            tmp_path,
            openai(good.base_url, "good"),
            openai(other.base_url, "other"),
            openai(broken.base_url, "broken", **quick),
            openai("http://127.0.0.1:9/v1", "gone", **quick),
        )
        words = (store, "--teachers", teachers, "--budget", 1, "--steps", "all", "-o", tmp_path / "out")
        done = replayed(*words, expected=3)
    told = done["teachers"]
    assert (told["good"]["answers"], told["good"]["errors"]) == (6, {})
    assert told["good"]["retries"] == {"rate_limited": 1, "server_error": 1}
    assert told["other"]["errors"] == {"wrong_model": 6}
    assert sum(told["broken"]["errors"].values()) == sum(told["gone"]["errors"].values()) == 6
    assert done["errors"]["wrong_model"] == 6
    assert {"p50", "p95", "p99", "cost", "tokens_in", "tokens_out", "calls"} <= set(told["good"])
    assert sum(trace["steps"] for trace in done["traces"].values()) == 6
    sent = json.loads((tmp_path / "out" / "sent.json").read_text())
    assert sent["good"]["where"] == [good.base_url.removeprefix("http://").removesuffix("/v1")]
    assert sent["good"]["tries"] == 8


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"price": None}, ("--budget", 1), "no known price"),
        ({"base_ulr": "x"}, ("--local-only",), "base_ulr"),
    ],
)
def test_mistakes_are_told_before_any_call(
    tmp_path: Path, change: dict[str, object], options: tuple[object, ...], message: str
) -> None:
    store = store_of(tmp_path, traces=1, steps=1)
    with serving(completion("hi")) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, **change))
        words = (store, "--teachers", teachers, "--steps", "all", *options, "-o", tmp_path / "out")
        told = replayed(*words, expected=2)
        assert endpoint.requests == []
    assert message in told["error"]["message"]
