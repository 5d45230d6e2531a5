"""At 80 columns nothing that a verb prints is cut off: neither a name nor a number ends in an ellipsis."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from postgrad.verbs import evaluate, gate, rollout, stages_table
from postgrad.verbs.tables import Rows


def printed(what: Any, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(what, markup=False, highlight=False)
    return console.export_text()


def words(text: str) -> str:
    return " ".join(re.sub("[\u2500-\u257f]", " ", text).split())


LONG = "function_calling/heldout_irrelevant@constrained"
SCORE = {
    "accuracy": 0.975,
    "stderr": 0.02,
    "n": 40,
    "low": 0.87,
    "high": 0.996,
    "outcomes": {"scored": 39, "truncated": 1},
}
GATE = {
    "name": LONG,
    "before": 1.0,
    "after": 0.0,
    "n": 8,
    "role": "guard",
    "difference": -1.0,
    "low": -1.0,
    "high": -0.5,
    "verdict": "non_inferior",
}


def test_columns_that_fit_stand_side_by_side() -> None:
    text = printed(Rows(("a", "n"), [("x", "1"), None, ("yy", "20")], title="t", numbers=("n",)))
    assert text.splitlines()[0] == "t"
    assert "│ x  │  1 │" in text
    assert "│ yy │ 20 │" in text


def test_columns_that_do_not_fit_become_lines_and_say_their_names() -> None:
    """Seven rows of two cells of 30 characters in 40 columns; an empty cell is not told."""
    text = printed(Rows(("a", "b", "c"), [("x" * 30, "y" * 30, "")] * 7), width=40)
    assert [line.rstrip() for line in text.splitlines()] == ["x" * 30, f"  b {'y' * 30}"] * 7


def test_the_space_around_cells_goes_before_the_table_does() -> None:
    """Three columns of 10 need 3 * 10 + 4 characters without space around them, and 6 more with it."""
    table = Rows(("a", "b", "c"), [("x" * 10,) * 3] * 7)
    assert "│ xxxxxxxxxx │" in printed(table, width=40)
    assert "│xxxxxxxxxx│" in printed(table, width=34)
    assert "│" not in printed(table, width=33)


def test_a_table_of_few_rows_is_turned_where_its_columns_do_not_fit() -> None:
    """Nine columns in 40 characters: two rows stand side by side, and a column that says nothing is left out."""
    names = [f"column {n}" for n in range(9)]
    rows = [("one", *"1234567", ""), ("two", *"abcdefg", "")]
    lines = [line.strip("│┃ ").split() for line in printed(Rows(names, rows), width=40).splitlines()]
    assert ["column", "0", "┃", "one", "┃", "two"] in lines
    assert ["column", "7", "│", "7", "│", "g"] in lines
    assert "column 8" not in printed(Rows(names, rows), width=40)


def test_a_flexible_column_folds_first() -> None:
    """50 + 18 + 7 characters fit into 80, so the table stays a table."""
    text = printed(Rows(("a", "b"), [("x" * 50, "many words " * 9)], flexible=("b",)))
    assert "┃" in text
    assert words(text).count("many words") == 9


EVALUATED = {"model": "runs/demo/14-compose/artifact", "scores": {LONG: SCORE}, "unmeasured": []}
GATED = {"benchmarks": [GATE], "reasons": ["promote: better"], "report": "runs/x/report.html"}
CYCLED = {
    "name": "demo",
    "run": "runs/demo",
    "seconds": 1234.5,
    "stages": [
        {"name": "before-constrained", "verb": "evaluate", "status": "kept", "seconds": 1234.5, "result": SCORE}
    ],
    f"outside {LONG} before": SCORE,
}
ROLLED = {"n": 1, "errors": {"wrong_argument_value": 1}, "traces": "runs/" + "x" * 90 + "/traces.jsonl"}


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (evaluate.show(EVALUATED), [LONG, "97.5 %", "87.0 to 99.6", "40", "39 scored, 1 truncated"]),
        (gate.show(GATED), [LONG, "100.0 %", "0.0 %", "-100.0 (-100.0 to -50.0)", "8", "guard: non-inferior"]),
        (stages_table.show(CYCLED), ["before-constrained", "evaluate (kept)", "1234.5", "97.5 %", "87.0 to 99.6"]),
        (rollout.show(ROLLED), ["1 rollout in", "wrong_argument_value"]),
    ],
    ids=["evaluate", "gate", "cycle", "rollout"],
)
@pytest.mark.parametrize("width", [80, 60])
def test_nothing_is_cut_off(shown: Any, told: list[str], width: int) -> None:
    text = printed(shown, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for part in told:
        assert part in words(text) or part.replace(" ", "") in words(text).replace(" ", ""), part


def test_a_benchmark_that_is_no_guard_is_in_the_table_with_its_fall() -> None:
    """Eight of eight before, none after: 100 points down, "for information", whatever the gate decides."""
    fallen = GATE | {"role": None, "difference": None, "low": None, "high": None, "verdict": None}
    text = words(printed(gate.show(GATED | {"benchmarks": [fallen]})))
    assert "100.0 %" in text
    assert "-100.0" in text
    assert "for information" in text


def test_none_right_shows_an_interval_and_no_standard_error() -> None:
    none = SCORE | {"accuracy": 0.0, "stderr": 0.0, "low": 0.0, "high": 0.088}
    text = words(printed(evaluate.show(EVALUATED | {"scores": {"a/b": none}})))
    assert "0.0 % 0.0 to 8.8 40" in text.replace(" ", " ")
    assert "standard error" not in text
