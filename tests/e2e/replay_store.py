"""A store of made traces, a file of teachers, and the command line as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from postgrad.core.trace import Trace
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call
from unit.teachers.endpoint_by_script import Reply, completion
from unit.verbs.replay_setting import make_store

CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Quito", "Paris", "Delhi")
ANSWER = ("get_weather", '{"city": "Rome", "day": 2}')


def made_traces(traces: int, steps: int, *, page_lines: int = 6) -> list[Trace]:
    """Traces of several steps: each asks for the weather and reads a page of so many lines about it."""
    made = []
    for number in range(traces):
        request = "please look up the weather of every city on my list. " * 8
        builder = TraceBuilder(f"Trip {number}: {request}", [WEATHER])
        for step in range(steps):
            city = CITIES[(number + step) % len(CITIES)]
            page = (
                f"The weather of {city} on day {step} of trip {number} is fine and warm, with light wind. " * page_lines
            )
            builder.step(act(call("get_weather", {"city": city, "day": step}, f"c{step}")), [(page, False)])
        made.append(builder.build(f"trip-{number}"))
    return made


def store_of(folder: Path, *, traces: int, steps: int) -> Path:
    """A store in `folder` with such traces."""
    return make_store(folder, made_traces(traces, steps))


def teachers_file(folder: Path, *teachers: dict[str, Any], concurrency: int = 8) -> Path:
    """T.yaml."""
    path = folder / "T.yaml"
    path.write_text(yaml.safe_dump({"teachers": list(teachers), "concurrency": concurrency}), encoding="utf-8")
    return path


def openai(url: str, name: str = "a", **more: Any) -> dict[str, Any]:
    """A teacher as the issue writes it."""
    price = {"input": 1.0, "output": 2.0, "cached_input": 0.1, "prompt_cache": "all"}
    return {"name": name, "kind": "openai", "base_url": url, "model": f"teacher-{name}", "price": price, **more}


def command(*words: object) -> list[str]:
    """postgrad replay WORDS --json"""
    return [sys.executable, "-m", "postgrad", "replay", *map(str, words), "--json"]


def replayed(*words: object, expected: int = 0) -> dict[str, Any]:
    """The result of a replay that ends with exit code `expected`."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=300)
    assert done.returncode == expected, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class Provider:
    """A scripted provider with a prompt cache that keeps the bill.

    It counts four bytes of the body a token and finds the longest beginning that it has been asked before.
    """

    def __init__(self, *, wait: float = 0.0) -> None:
        self.wait = wait
        self.bill = 0.0
        self.answered: list[str] = []
        self._kept: list[list[Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        read = _tokens(body)
        found = max((_common(kept, messages) for kept in self._kept), default=0)
        cached = _tokens({**body, "messages": messages[:found]}) if found else 0
        written = len(json.dumps(dict(zip(("name", "arguments"), ANSWER, strict=True)))) // 4
        self._kept.append(messages)
        self.bill += ((read - cached) * 1.0 + cached * 0.1 + written * 2.0) / 1e6
        self.answered.append(json.dumps(body, sort_keys=True))
        said = completion(calls=[ANSWER], usage=(read, written, cached))
        return Reply(said.body, wait=self.wait)


def _tokens(body: dict[str, Any]) -> int:
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) // 4


def _common(one: list[Any], other: list[Any]) -> int:
    same = [a == b for a, b in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)
