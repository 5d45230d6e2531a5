"""Ctrl-C and SIGTERM in a replay, a process of its own at a slow provider: no call is dropped, none is paid twice."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.replay_store import Provider, command, openai, replayed, store_of, teachers_file
from unit.teachers.endpoint_by_script import Endpoint, Reply, completion, serving


def _asked(endpoint: Endpoint, calls: int) -> None:
    """Wait until the endpoint has got so many calls."""
    deadline = time.monotonic() + 120
    while len(endpoint.requests) < calls and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(endpoint.requests) >= calls


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_waits_for_calls_under_way_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """24 steps, four calls at once: what was asked when the signal came is answered, billed and kept, once."""
    store, provider, out = store_of(tmp_path, traces=8, steps=3), Provider(wait=0.4), tmp_path / "out"
    with serving(answer=provider) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url), concurrency=4)
        words = (store, "--teachers", teachers, "--steps", "all", "--budget", 1, "-o", out)
        process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _asked(endpoint, 6)
        process.send_signal(number)
        said, told = process.communicate(timeout=60)
        part: dict[str, Any] = json.loads(said)
        assert process.returncode == code
        asked = len(endpoint.requests)
        assert asked < 24
        assert (part["interrupted"], part["selected"], part["errors"]) == (number.name, 24, {})
        assert (part["steps"], part["calls"], part["uncertain"]) == (asked, asked, 0.0)
        assert part["cost"] == pytest.approx(provider.bill)
        assert sum(number.name in line for line in told.splitlines()) == 1
        assert (
            "no new calls; waiting for calls under way (at most 45.6 s); once more" in told
        )  # 20 and a tenth for each of 256
        assert f"postgrad replay --resume {out}" in told
        assert not (out / "result.json").exists()
        assert json.loads((out / "interrupted.json").read_text())["steps"] == asked
        assert len((out / "replayed.jsonl").read_text().splitlines()) == asked
        done = replayed(*words)
        assert len(endpoint.requests) == 24
    assert (done["steps"], done["calls"], done["cached"], done["interrupted"]) == (24, 24 - asked, asked, None)
    assert len(set(provider.answered)) == len(provider.answered) == 24
    assert done["paid_in_all_runs"] == pytest.approx(provider.bill)
    assert not (out / "interrupted.json").exists()


def test_the_second_signal_leaves_at_once_and_what_was_under_way_counts_as_money_that_may_be_gone(
    tmp_path: Path,
) -> None:
    store, out = store_of(tmp_path, traces=4, steps=1), tmp_path / "out"
    with serving(answer=lambda body: Reply(completion("hi").body, wait=8.0)) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 2.0}))
        words = (store, "--teachers", teachers, "--steps", "all", "--calls.concurrency", 2, "-o", out)
        process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        _asked(endpoint, 2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == 130
        lines = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
        assert sum(line["event"] == "sent" for line in lines) == len(endpoint.requests) == 2
        plan = replayed(*words, "--plan")
    assert plan["calls"] == 4


def test_it_does_not_wait_for_a_rest_that_the_endpoint_asked_for(tmp_path: Path) -> None:
    """Every call is told to come back in 100 s: nothing is under way then, and nothing was paid."""
    store, out = store_of(tmp_path, traces=4, steps=1), tmp_path / "out"
    with serving(Reply({"error": {"message": "busy"}}, 429, {"retry-after": "100"})) as endpoint:
        teachers = teachers_file(tmp_path, openai(endpoint.base_url, price={"input": 1.0, "output": 2.0}))
        words = (store, "--teachers", teachers, "--steps", "all", "--budget", 1, "-o", out)
        process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        _asked(endpoint, 1)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        part = json.loads(process.communicate(timeout=10)[0])
    assert process.returncode == 143
    assert (part["steps"], part["cost"], part["uncertain"], part["interrupted"]) == (0, 0.0, 0.0, "SIGTERM")
