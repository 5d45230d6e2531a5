"""The command line of build on what a scripted provider answered: pairs exactly as the rules say, and their cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.replay_store import openai, replayed, teachers_file
from postgrad.signals.rows.records import read_records
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call
from unit.teachers.endpoint_by_script import Reply, completion, serving
from unit.verbs.replay_setting import make_store

ROME, OSLO, BERN = (("get_weather", json.dumps({"city": city})) for city in ("Rome", "Oslo", "Bern"))
SPACED = ("get_weather", '{ "days": 1.0, "city": "\\u0052ome" }')
PLAIN = ("get_weather", '{"city": "Rome", "days": 1}')
BROKEN, AGAINST = ("get_weather", '{"city": "Rome"'), ("get_weather", '{"city": 5}')
TABLE: dict[str, tuple[Any, Any, Any]] = {
    "0": (ROME, ROME, OSLO),  # 2 of 3
    "1": (ROME, OSLO, BERN),  # three of one each
    "2": (SPACED, PLAIN, BROKEN),  # 2 of 3, the broken one votes against
    "3": (AGAINST, AGAINST, ROME),  # one valid answer is no majority
    "4": (OSLO, OSLO, ROME),  # the student's own action
    "5": ("I cannot.", "I  cannot.\n", "I cannot."),  # 3 of 3, in words
}


def answer(body: dict[str, Any]) -> Reply:
    case = body["messages"][-1]["content"].split()[1]
    said = TABLE[case][["teacher-a", "teacher-b", "teacher-c"].index(body["model"])]
    return completion(said) if isinstance(said, str) else completion(calls=[said])


def built(*words: object, expected: int = 0) -> dict[str, Any]:
    command = [sys.executable, "-m", "postgrad", "build", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == expected, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_pairs_of_scripted_disagreements_are_as_the_rules_say(tmp_path: Path) -> None:
    """18 calls of 100 tokens at 1 and 20 at 2 US dollars a million: 18 * 140e-6 = 0.00252; a third of that a pair."""
    student = act(call("get_weather", {"city": "Oslo"}))
    traces = [
        TraceBuilder(f"Case {case} please", [WEATHER]).step(student, [("5", False)]).build(f"t{case}") for case in TABLE
    ]
    store, replays = make_store(tmp_path, traces), tmp_path / "replays"
    price = {"input": 1.0, "output": 2.0}
    with serving(answer=answer) as endpoint:
        teachers = teachers_file(tmp_path, *(openai(endpoint.base_url, name, price=price) for name in "abc"))
        replayed(store, "--teachers", teachers, "--budget", 1, "--steps", "all", "-o", replays)
    result = built(store, "--replays", replays, "--recipe", "preferences", "-o", tmp_path / "data")
    assert result["records"]["preference"] == result["records"]["total"] == 3
    assert result["dropped"]["preference"] == {"low_agreement": 1, "same_as_student": 1, "tie": 1}
    assert result["costs"]["replays"] == pytest.approx(0.00252)
    assert result["costs"]["per_pair"] == pytest.approx(0.00084)
    rows = {row.provenance.trace: row for row in read_records(tmp_path / "data" / "records.jsonl")}
    assert sorted(rows) == ["t0", "t2", "t5"]
    assert {name: (row.weight, row.provenance.teachers) for name, row in rows.items()} == {
        "t0": (2 / 3, ("a", "b")),
        "t2": (2 / 3, ("a", "b")),
        "t5": (1.0, ("a", "b", "c")),
    }
    assert rows["t2"].action.tool_calls[0].arguments == {"city": "Rome", "days": 1.0}
    assert rows["t5"].action.text == "I cannot."
    for row in rows.values():
        assert row.rejected is not None
        assert row.rejected.tool_calls[0].arguments == {"city": "Oslo"}
        where = row.provenance
        assert (where.rule, where.fidelity, where.cost) == ("majority/1", "exact", pytest.approx(0.00042))
        assert where.agreement == row.weight
        assert where.why
    sft = built(store, "--replays", replays, "--recipe", "sft", "--imitate", "c", "-o", tmp_path / "sft")
    assert sft["dropped"]["sft"] == {"malformed_json": 1}
    assert sft["rules"] == {"teacher/1": 5}
    wrong = built(store, "--recipe", "distill", "-o", tmp_path / "none", expected=2)
    assert "recipe distill cannot be made from these inputs" in wrong["error"]["message"]
    unknown = built(store, "--recipe", "preferense", "-o", tmp_path / "none", expected=2)
    assert "did you mean 'preferences'" in unknown["error"]["message"]
