"""The report page: one HTML file that needs nothing else, and its data as JSON.

`report_data` gathers what is told: the verdict and its reasons, both reports with intervals, paired flips, curves,
examples that the candidate fixed and broke, stages, teachers, and what was not measured. `html` sets it. Model output
is data of strangers: every value is escaped, nothing in the page is executable, no other host is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.report import Comparison, Item, Report, Score, Verdict
from postgrad.evaluate.curves import HEIGHT, WIDTH, curves
from postgrad.evaluate.pairing import measured, score_interval
from postgrad.evaluate.reports import plain
from postgrad.run.html import environment

EXAMPLES = 5
"""Examples of each kind that a benchmark shows."""


def report_data(parent: Report, candidate: Report, verdict: Verdict, **told: Any) -> dict[str, Any]:
    """Gather the page's data; every value is plain JSON.

    Args:
        parent: report of the model in place.
        candidate: report of the model that wants its place.
        verdict: the gate's word on them.
        told: what else is known, each optional: `title`; `metrics` (name of a training -> rows of its metrics.jsonl);
            `stages` (dicts with `stage`, `what`, `result`, `seconds`); `teachers` (with `name`, `kind`, `what`);
            `questions` (item id -> what was asked).
    """
    roles = {one.benchmark: one for one in verdict.comparisons}
    names = list(dict.fromkeys([*roles, *parent.scores, *candidate.scores]))
    questions: dict[str, str] = told.pop("questions", {})
    benchmarks = [_benchmark(name, parent, candidate, roles.get(name)) for name in names]
    for example in (example for one in benchmarks for example in one["examples"]):
        example["question"] = questions.get(example["id"], "")
    return {
        "title": "postgrad report",
        "metrics": {},
        "stages": [],
        "teachers": [],
        **told,
        "verdict": {"decision": verdict.decision, "passed": verdict.passed, "reasons": list(verdict.reasons)},
        "before": parent.model,
        "after": candidate.model,
        "benchmarks": benchmarks,
        "unmeasured": [
            {"model": report.model, "benchmark": gap.benchmark, "reason": gap.reason}
            for report in (parent, candidate)
            for gap in report.unmeasured
        ],
    }


def html(report_data: Mapping[str, Any]) -> str:
    """Set the data of `report_data` as one self-contained HTML page."""
    page = environment("postgrad.evaluate").get_template("report.html")
    trainings = {name: curves(rows) for name, rows in report_data["metrics"].items()}
    drawn = {"trainings": trainings, "width": WIDTH, "height": HEIGHT}
    return page.render(**report_data, **drawn, percent=_percent, points=_points)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _benchmark(name: str, parent: Report, candidate: Report, comparison: Comparison | None) -> dict[str, Any]:
    before, after = parent.scores.get(name), candidate.scores.get(name)
    return {
        "name": name,
        "before": _score(before),
        "after": _score(after),
        "comparison": plain(comparison) if comparison else None,
        "flips": [len(comparison.fixed), len(comparison.broken)] if comparison else None,
        "settings": dict(after.settings if after else before.settings if before else {}),
        "examples": _examples(before, after, comparison),
    }


def _score(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    low, high = score_interval(score)
    outcomes: dict[str, int] = {}
    for item in score.items:
        outcomes[item.outcome] = outcomes.get(item.outcome, 0) + 1
    return {"mean": score.mean, "stderr": score.stderr, "n": score.n, "low": low, "high": high, "outcomes": outcomes}


def _examples(before: Score | None, after: Score | None, comparison: Comparison | None) -> list[dict[str, Any]]:
    """The first few items that the candidate fixed, and the first few that it broke."""
    if before is None or after is None or comparison is None:
        return []
    old, new = ({item.id: item for item in score.items if measured(item)} for score in (before, after))
    kinds: tuple[tuple[str, Sequence[str]], ...] = (("fixed", comparison.fixed), ("broken", comparison.broken))
    return [
        {"kind": kind, "id": id_, "before": _shown(old[id_]), "after": _shown(new[id_])}
        for kind, ids in kinds
        for id_ in ids[:EXAMPLES]
    ]


def _shown(item: Item) -> dict[str, Any]:
    return {"answer": item.answer, "score": item.score, "error": item.error or "", "outcome": item.outcome}
