"""The plan against the bill of servers that count and cache in their own ways, before a bill and after some.

Six traces of eight steps. A server's tokens are bytes of the body by four, characters of the words alone by four, or
100 whatever is sent; its prompt cache keeps as OpenAI's, everything, or nothing. `cached_input` is a tenth of `input`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.replay_store import ANSWER, made_traces
from postgrad.run.config import load
from postgrad.verbs import replay
from unit.teachers.endpoint_by_script import Reply, completion, serving
from unit.verbs.replay_setting import make_store

Count = Callable[[dict[str, Any]], int]
STEPS = 8
WRITTEN = len(json.dumps(dict(zip(("name", "arguments"), ANSWER, strict=True)))) // 4


def by_json(body: dict[str, Any]) -> int:
    return math.ceil(len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) / 4)


def by_words(body: dict[str, Any]) -> int:
    said = [one.get("content") or one.get("tool_calls") for one in body["messages"]]
    return sum(len(str(one)) for one in (*said, *body["tools"])) // 4


def always_the_same(body: dict[str, Any]) -> int:
    return 100


class Server:
    """Answers, counts, caches by `found` (tokens of a known beginning -> tokens found), and keeps the bill."""

    def __init__(self, count: Count, found: Callable[[int], int]) -> None:
        self.bill = 0.0
        self._count, self._found = count, found
        self._kept: list[list[Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        known = max((_common(one, messages) for one in self._kept), default=0)
        read = self._count(body)
        cached = self._found(self._count({**body, "messages": messages[:known]})) if known else 0
        self._kept.append(messages)
        self.bill += (read - cached + 0.1 * cached + 2.0 * WRITTEN) / 1e6
        return completion(calls=[ANSWER], usage=(read, WRITTEN, cached))


def _common(one: list[Any], other: list[Any]) -> int:
    same = [a == b for a, b in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)


def as_openai(tokens: int) -> int:
    return tokens // 128 * 128 if tokens >= 1024 else 0


def nothing(tokens: int) -> int:
    return 0


def everything(tokens: int) -> int:
    return tokens


def planned_and_billed(
    folder: Path, server: Server, *, limit: int = STEPS, page_lines: int = 6, **price: Any
) -> tuple[dict[str, Any], float, dict[str, Any], float]:
    """The first plan and the whole bill; the plan after `limit` steps (one trace), and the bill of the others."""
    store = make_store(folder, made_traces(6, STEPS, page_lines=page_lines))
    with serving(answer=server) as endpoint:
        asked = {"name": "a", "kind": "openai", "base_url": endpoint.base_url, "model": "teacher-a"}
        asked["price"] = {"input": 1.0, "output": 2.0, "cached_input": 0.1, **price}

        def run(**more: Any) -> dict[str, Any]:
            settings = {"store": str(store), "teachers": [asked], "steps": "all", "budget": 9, **more}
            return replay.run(load(replay.CONFIG, None, settings), folder / "out")

        first = run(plan=True)
        run(limit=limit)
        before = server.bill
        second = run(plan=True)
        run()
    return first, server.bill, second, server.bill - before


@pytest.mark.parametrize(
    ("count", "found", "price", "number"),
    [
        (by_json, as_openai, {}, "planned_cost"),
        (by_json, everything, {"prompt_cache": "all"}, "planned_cost"),
        (by_json, nothing, {"prompt_cache": "none"}, "planned_cost"),
        (by_json, nothing, {}, "planned_uncached"),
    ],
)
def test_a_server_that_does_what_is_said_of_it_is_planned_within_2_percent(
    tmp_path: Path, count: Count, found: Callable[[int], int], price: dict[str, str], number: str
) -> None:
    first, bill, _, _ = planned_and_billed(tmp_path, Server(count, found), **price)
    assert first[number] == pytest.approx(bill, rel=0.02)
    assert first["planned_cost"] <= first["planned_uncached"] <= first["planned_most"]
    assert bill < first["planned_most"]


@pytest.mark.parametrize(
    ("count", "found"),
    [(by_json, nothing), (by_json, everything), (by_words, as_openai), (always_the_same, nothing)],
)
def test_after_one_trace_any_server_is_planned_within_2_percent(
    tmp_path: Path, count: Count, found: Callable[[int], int]
) -> None:
    _, _, second, rest = planned_and_billed(tmp_path, Server(count, found))
    assert second["cached"] == STEPS
    assert second["planned_cost"] == pytest.approx(rest, rel=0.02)


@pytest.mark.parametrize("found", [as_openai, everything])
def test_a_run_that_follows_at_once_finds_what_the_run_before_has_asked(
    tmp_path: Path, found: Callable[[int], int]
) -> None:
    """44 of 48 steps are answered; of the last trace's other four the first also begins like one that was asked.

    Pages are long enough for all four to be above the 1,024 tokens from which on OpenAI keeps a beginning.
    """
    _, _, second, rest = planned_and_billed(tmp_path, Server(by_json, found), limit=44, page_lines=18)
    assert second["calls"] == 4
    assert second["planned_cost"] == pytest.approx(rest, rel=0.02)
    assert second["planned_uncached"] > 1.5 * rest
