"""How a turn of the wheel is printed: a table of stages, then what the recipe's summary selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from postgrad.verbs.in_brief import in_brief, made, short
from postgrad.verbs.tables import Rows

_OWN_KEYS = {"name", "run", "stages", "seconds", "passed"}
_MEASURED = {"accuracy", "stderr", "n"}


def show(result: Mapping[str, Any]) -> RenderableType:
    """Stages with what came out and how long they took, measured scores with 95 % intervals, then the rest."""
    summary = {key: value for key, value in result.items() if key not in _OWN_KEYS}
    parts: list[RenderableType] = [_stages(result)]
    scores = list(_scores(summary))
    if scores:
        parts.append(_score_table(scores))
    parts.extend(Text(f"{name}: {short(value)}") for name, value in _rest(summary))
    parts.append(Text(f"run folder: {result['run']}"))
    return Group(*parts)


def _stages(result: Mapping[str, Any]) -> Rows:
    rows: list[Sequence[str] | None] = []
    for stage in result["stages"]:
        status = "" if stage["status"] == "ran" else f" ({stage['status']})"
        seconds = f"{stage['seconds']:.1f}" if stage["status"] != "not run" else ""
        rows.append((stage["name"], stage["verb"] + status, _came_to(stage, result["run"]), seconds))
    rows += [None, ("total", "", "", f"{result['seconds']:.1f}")]
    columns = ("stage", "what", "result", "seconds")
    return Rows(columns, rows, title=result["name"], numbers=("seconds",), flexible=("result",))


def _came_to(stage: Mapping[str, Any], run: str) -> str:
    """What a stage came to, and where in the run folder its work lies."""
    where = made(stage["result"])
    if where and Path(where).is_relative_to(run):
        where = str(Path(where).relative_to(run))
    return "; ".join(part for part in (in_brief(stage["verb"], stage["result"]), where) if part)


def _scores(value: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Everything in the summary that has an accuracy, a standard error and a number of items."""
    if isinstance(value, Mapping):
        if value.keys() >= _MEASURED:
            yield name, value
        else:
            for key, item in value.items():
                yield from _scores(item, f"{name} {key}".strip())


def _score_table(scores: list[tuple[str, Mapping[str, Any]]]) -> Rows:
    rows = []
    for name, score in scores:
        if score["accuracy"] is None:
            rows.append((name, "unmeasured", "", ""))
            continue
        low, high = _interval(score)
        interval = f"{100 * low:.1f} to {100 * high:.1f}"
        rows.append((name, f"{100 * score['accuracy']:.1f} %", interval, str(score["n"])))
    columns = ("score", "accuracy", "95 % interval", "n")
    return Rows(columns, rows, numbers=columns[1:], flexible=("score",))


def _interval(score: Mapping[str, Any]) -> tuple[float, float]:
    """The score's own interval; without one, Wilson's on the items that the standard error is worth.

    se^2 = mean (1 - mean) / (n - 1)
    """
    if score.get("low") is not None and score.get("high") is not None:
        return score["low"], score["high"]
    from postgrad.evaluate.statistics import wilson

    mean, stderr, n = score["accuracy"], score["stderr"] or 0.0, score["n"]
    worth = mean * (1 - mean) / stderr**2 + 1 if stderr > 0 else n
    return wilson(mean, min(n, worth), level=0.95)


def _rest(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What is no score, one line each."""
    if isinstance(value, Mapping):
        if not value.keys() >= _MEASURED:
            for key, item in value.items():
                yield from _rest(item, f"{name}.{key}".strip("."))
    else:
        yield name, value
