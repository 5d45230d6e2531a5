"""The command line of replay against a scripted provider: the plan and the bill, the budget, kill -9 and resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

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


@pytest.mark.slow
def test_killed_again_and_again_at_every_stage_of_a_call(tmp_path: Path) -> None:
    """One call at a time, and the process is killed by its own call: before the answer, inside it, or right behind it.

    Of 12 steps every answer that came whole is paid once. What is asked twice is what a kill broke off, a call a kill,
    and what came cut before the kill did, which is in the journal.
    """
    store, provider, out = store_of(tmp_path, traces=4, steps=3), Provider(), tmp_path / "out"
    victims: list[subprocess.Popen[bytes]] = []
    stages = iter(["before", "inside", "behind", "before", "inside", "behind"])
    calls = 0

    def deadly(body: dict[str, Any]) -> Reply:
        """Every second call of a process is its last."""
        nonlocal calls
        calls += 1
        reply = provider(body)
        stage = next(stages, "") if victims and calls % 2 == 0 else ""
        if not stage:
            return reply
        victim = victims.pop()
        if stage == "before":
            victim.kill()
            return reply
        threading.Timer(0.05, victim.kill).start()  # mostly before it asks again, a quarter of a second later
        return Reply(reply.body, wait=0.0, cut=60 if stage == "inside" else None)

    with serving(answer=deadly) as endpoint:
        price = {"input": 1.0, "output": 2.0}
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price=price), concurrency=1)
        words = (store, "--teachers", teachers, "--budget", 1, "--steps", "all", "-o", out)
        kills = 0
        for _ in range(6):
            process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            victims[:] = [process]
            kills += process.wait() == -signal.SIGKILL
        victims.clear()
        done = replayed(*words)
    assert kills >= 4
    assert (done["steps"], done["errors"], len(set(provider.answered))) == (12, {}, 12)
    journal = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    cut = sum(line.get("outcome") == "truncated" for line in journal)
    assert len(provider.answered) - 12 <= kills + cut
    lines = [json.loads(line) for line in (out / "replayed.jsonl").read_text().splitlines()]
    assert len({(line["trace"], line["step"]) for line in lines}) == 12
    assert done["paid_in_all_runs"] + done["uncertain"] >= provider.bill - 1e-9


@pytest.mark.slow
def test_eight_processes_in_one_folder_keep_one_budget(tmp_path: Path) -> None:
    """One of them works, the others are told that it does; together they spend no more than it may."""
    store, provider, out = store_of(tmp_path, traces=8, steps=2), Provider(wait=0.2), tmp_path / "out"
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 2.0}))
        words = (store, "--teachers", teachers, "--steps", "all", "--budget", 0.004, "-o", out)
        processes = [subprocess.Popen(command(*words), stdout=subprocess.PIPE) for _ in range(8)]
        told = [json.loads(process.communicate(timeout=900)[0]) for process in processes]
    codes = [process.returncode for process in processes]
    assert set(codes) <= {0, 2}
    assert codes.count(0) >= 1
    assert all("another process" in one["error"]["message"] for one in told if "error" in one)
    assert 0 < provider.bill <= 0.004


@pytest.mark.slow
def test_processes_that_share_a_cache_pay_for_a_call_once(tmp_path: Path) -> None:
    """Three replays of the same steps at the same moment, each in its own folder: 6 calls in all, 6 answers each."""
    store, provider = store_of(tmp_path, traces=2, steps=3), Provider(wait=0.2)
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url))
        words = (store, "--teachers", teachers, "--steps", "all", "--budget", 1, "--calls.cache", tmp_path / "cache")
        commands = [command(*words, "-o", tmp_path / f"out-{number}") for number in range(3)]
        processes = [subprocess.Popen(one, stdout=subprocess.PIPE) for one in commands]
        told = [json.loads(process.communicate(timeout=900)[0]) for process in processes]
    assert [(one["steps"], one["errors"]) for one in told] == [(6, {})] * 3
    assert len(provider.answered) == len(set(provider.answered)) == 6
    assert sum(one["calls"] for one in told) == 6
    assert sum(one["cost"] for one in told) == pytest.approx(provider.bill)


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
        ({"base_ulr": "x"}, ("--local-only",), "did you mean 'base_url'"),
        ({"api_key_env": "NO_SUCH_KEY"}, ("--budget", 1), "NO_SUCH_KEY is not set"),
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
