"""A result on one line: the number that is asked for first, and where the work lies."""

from __future__ import annotations

from typing import Any

import pytest

from postgrad.verbs.in_brief import brief, in_brief, made

RESULT = {"loss": 0.123456, "sites": [1, 2], "path": "runs/a", "kinds": {"sft": 3, "by": {}}, "none": None, "a": "b"}
SCORE = {"accuracy": 0.325, "n": 40}
GAP = {"accuracy": None, "n": 0}


def test_a_result_in_brief() -> None:
    assert brief(RESULT) == "loss 0.1235, 2 sites, sft 3, a b"
    assert brief(RESULT, shown=1) == "loss 0.1235"


@pytest.mark.parametrize(
    ("verb", "result", "told"),
    [
        ("evaluate", {"scores": {"a/b": SCORE, "c/d": GAP}}, "a/b 32.5 % (n=40), c/d unmeasured"),
        (
            "rollout",
            {"n": 8, "accuracy": 0.25, "errors": {"x": 1, "y": 3, "z": 2}},
            "8 answers, 25.0 % right; 3 y, 2 z",
        ),
        ("ingest", {"sources": [1], "sites": [1, 2]}, "1 source, 2 error sites"),
        ("replay", {"steps": 9, "cost": 0.126}, "9 steps asked about, 0.13 US dollars"),
        ("replay", {"steps": 9, "cost": 0.0}, "9 steps asked about"),
        ("replay", {"plan": True, "calls": 18, "steps": 9, "cost": 0.0}, "plan: 18 calls at 9 steps"),
        ("build", {"records": {"total": 3, "sft": 3, "hinted": 0}}, "3 rows: 3 sft"),
        ("build", {"records": {"total": 0, "sft": 0}}, "0 rows"),
        ("train", {"steps": 1, "last": {"loss": 0.5}}, "1 step, loss 0.5 at last"),
        ("gate", {"decision": "iterate", "comparisons": [{"benchmark": "a/b", "verdict": "non_inferior"}]},
         "iterate: a/b non-inferior"),
        ("cycle", {"stages": [{"status": "kept"}, {"status": "not run"}], "passed": False},
         "1 of 2 stages, a gate said no"),
        ("train", {"steps": 3}, "steps 3"),
        ("my.module", {"made": 3}, "made 3"),
    ],
)  # fmt: skip
def test_a_verb_is_told_by_its_main_number(verb: str, result: dict[str, Any], told: str) -> None:
    """A result that lacks what the line needs, and a foreign verb's, are told by plain facts."""
    assert in_brief(verb, result) == told


def test_what_was_made_is_what_one_goes_on_with() -> None:
    assert made({"metrics": "m", "artifact": "a", "report": "r"}) == "a"
    assert made({"steps": 3}) == ""
