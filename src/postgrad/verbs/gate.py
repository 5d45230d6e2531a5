"""Compare a candidate's report with its parent's: promote, iterate or roll back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.core.files import write_json, write_text
from postgrad.evaluate.policy import GatePolicy
from postgrad.run.config import Config
from postgrad.run.rundir import RunDir
from postgrad.verbs.command import verb_command
from postgrad.verbs.tables import Rows


class Teacher(Config):
    """One teacher, as the page names it."""

    name: str
    kind: str = ""
    """what it is in plain words: gold answers, local model, HTTP endpoint"""
    what: str = ""
    """what it did"""


class GateConfig(Config):
    """Two reports of the same benchmarks, and what the candidate must show."""

    parent: Path
    """report.json of the model in place, or its evaluation's run folder"""
    candidate: Path
    """report.json of the model that wants its place, or its evaluation's run folder"""
    policy: GatePolicy = GatePolicy()
    """targets, guards and margins"""
    title: str = "postgrad report"
    """title of the page"""
    training: tuple[Path, ...] = ()
    """run folders of trainings whose curves the page shows"""
    teachers: tuple[Teacher, ...] = ()
    """who taught, for the page"""


CONFIG = GateConfig


def run(config: GateConfig, out: Path) -> dict[str, Any]:
    """Judge, and write verdict.json, report.json and report.html.

    Raises:
        DataError: a report or a training is missing, or the two were not measured in the same way.
    """
    from postgrad.evaluate.gates import gate
    from postgrad.evaluate.page import html, report_data
    from postgrad.evaluate.reports import plain, read_report

    parent, candidate = read_report(config.parent), read_report(config.candidate)
    verdict = gate(parent, candidate, config.policy)
    weights = sorted({score.settings.get("weights", "") for score in candidate.scores.values()})
    judged = {"model": candidate.model, "weights": weights}
    result: dict[str, Any] = {"comparisons": [], **plain(verdict), "passed": verdict.passed, "candidate": judged}
    write_json(out / "verdict.json", result)
    data = report_data(parent, candidate, verdict, **_told(config))
    write_json(out / "report.json", data)
    write_text(out / "report.html", html(data))
    benchmarks = [_brief(one) for one in data["benchmarks"]]
    files = {"verdict": str(out / "verdict.json"), "report": str(out / "report.html")}
    return {**result, "benchmarks": benchmarks, **files}


def _brief(benchmark: dict[str, Any]) -> dict[str, Any]:
    """One benchmark of the page without settings and examples; what is neither target nor guard has no role."""
    comparison = benchmark["comparison"] or {}
    judged = {key: comparison.get(key) for key in ("role", "difference", "low", "high", "verdict")}
    sides = {side: benchmark[side] and benchmark[side]["mean"] for side in ("before", "after")}
    n = (benchmark["after"] or benchmark["before"] or {}).get("n", 0)
    return {"name": benchmark["name"], **sides, "n": n, **judged}


def _told(config: GateConfig) -> dict[str, Any]:
    """Gather what the page tells besides the verdict."""
    for folder in config.training:
        if not RunDir(folder).metrics_path.exists():
            raise DataError("no training here", got=str(folder), expected="a run folder with metrics.jsonl")
    return {
        "title": config.title,
        "metrics": {str(folder): RunDir(folder).metrics() for folder in config.training},
        "teachers": [teacher.resolved() for teacher in config.teachers],
        "questions": _questions(config.candidate if config.candidate.is_dir() else config.candidate.parent),
    }


def _questions(folder: Path) -> dict[str, str]:
    """Read what was asked, by task, from the evaluation's transcripts where they lie beside the report."""
    path = folder / "traces.sources.jsonl"
    if not path.exists():
        return {}
    from postgrad.traces.readers import read

    firsts = ((str(trace.task_id), trace.context(trace.steps[0])) for trace in read(path).traces if trace.steps)
    return {task: next((one.text for one in asked if one.role == "user"), "") for task, asked in firsts}


def show(result: dict[str, Any]) -> Any:
    """Print every benchmark before and after, then the reasons, the decision first."""
    from rich.console import Group
    from rich.text import Text  # not a string: square brackets in a reason are no markup

    reasons = Text("\n  ".join([*result["reasons"], f"page: {result['report']}"]))
    return Group(benchmarks_table(result["benchmarks"]), reasons)


def benchmarks_table(benchmarks: Sequence[dict[str, Any]]) -> Rows:
    """Scores in per cent, differences in points; what the gate did not ask for is there for information."""
    rows = []
    for one in benchmarks:
        sides = ["unmeasured" if one[side] is None else f"{100 * one[side]:.1f} %" for side in ("before", "after")]
        points = f"{100 * (one['after'] - one['before']):+.1f}" if None not in (one["before"], one["after"]) else ""
        if one["difference"] is not None:
            points = f"{100 * one['difference']:+.1f} ({100 * one['low']:+.1f} to {100 * one['high']:+.1f})"
        judged = f"{one['role']}: {one['verdict'].replace('_', '-')}" if one["role"] else "for information"
        rows.append((one["name"], *sides, points, str(one["n"]), judged))
    columns = ("benchmark", "before", "after", "points (95 %)", "n", "role")
    return Rows(columns, rows, numbers=columns[1:5], flexible=("role", "points (95 %)"))


def exit_code(result: dict[str, Any]) -> int:
    """1 unless the candidate is promoted."""
    return 0 if result["passed"] else 1


command = verb_command("gate", CONFIG, run, help=__doc__.splitlines()[0], show=show, exit_code=exit_code)
