"""How a replay and its plan are printed: a row per teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.core.words import counted
from postgrad.verbs.tables import Rows


def show(result: dict[str, Any]) -> Any:
    """A table of teachers: what they would cost, or what they did."""
    return _plan(result) if result.get("plan") else _replay(result)


def _plan(result: dict[str, Any]) -> Any:
    asked = f"{counted(result['steps'], 'step')}, {counted(result['calls'], 'call')}"
    title = f"plan: {asked}, {_dollars(result['planned_cost'])} US dollars"
    columns = ("calls", "cached", "tokens in", "prompt cache", "out", "US dollars", "without prompt cache", "batch API")
    bounds = f"{_dollars(result['planned_uncached'])} without prompt caches, at most {_dollars(result['planned_most'])}"
    rows = []
    for name, one in result["teachers"].items():
        counts = [f"{one[key]:,}" for key in ("calls", "cached", "tokens_in", "tokens_cached", "tokens_out")]
        batch = _dollars(one["batch_cost"]) if "batch_cost" in one else "-"
        rows.append((name, *counts, _dollars(one["cost"]), _dollars(one["cost_uncached"]), batch))
    told = (f"{name}: {one['basis']}, prompt cache: {one['prompt_cache']}" for name, one in result["teachers"].items())
    return _table(f"{title} ({bounds})", columns, rows, below="; ".join(told))


def _replay(result: dict[str, Any]) -> Any:
    done = f"{result['steps']} of {counted(result['selected'], 'step')} replayed"
    title = f"{done}, {_dollars(result['cost'])} US dollars"
    columns = ("what it is", "answers", "cut off", "too long", "invalid", "errors", "calls", "cached", "US dollars")
    rows = []
    for name, one in result["teachers"].items():
        errors = ", ".join(f"{count} {kind}" for kind, count in one["errors"].items()) or "0"
        unfit = (one["truncated"], one.get("too_long", 0), one["invalid"])  # results of older versions lack `too_long`
        counts = (one["answers"], *unfit, errors, one["calls"], one["cached"])
        seconds = ["-" if one[key] is None else f"{one[key]:.2f}" for key in ("p50", "p95")]
        rows.append((name, one["kind"], *map(str, counts), _dollars(one["cost"]), *seconds))
    stopped = "stopped: the next call might have gone over the budget; a higher --budget goes on"
    below = [stopped] if result["stopped_by_budget"] else []
    if result.get("interrupted"):  # results of older versions lack it
        below.append(f"interrupted ({result['interrupted']}): the same command goes on")
    below += [_too_long(name, one["too_long"]) for name, one in result["teachers"].items() if one.get("too_long")]
    return _table(title, (*columns, "p50 s", "p95 s"), rows, below="\n".join(below))


def _too_long(name: str, count: int) -> str:
    fit = "does not fit" if count == 1 else "do not fit"
    return f"{name}: {counted(count, 'step')} {fit} in its context (too_long), so it gave no answer there"


def _dollars(amount: float) -> str:
    """Cents where they say something, else the first digits that do."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.3g}"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, below: str) -> Any:
    from rich.console import Group
    from rich.text import Text

    table = Rows(("teacher", *columns), rows, title=title, flexible=("what it is", "errors"))
    return Group(table, Text(below)) if below else table
