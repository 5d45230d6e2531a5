"""How a replay and its plan are printed: a row per teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def show(result: dict[str, Any]) -> Any:
    """A table of teachers: what they would cost, or what they did."""
    return _plan(result) if result.get("plan") else _replay(result)


def _plan(result: dict[str, Any]) -> Any:
    title = f"plan: {result['steps']} steps, {result['calls']} calls, {_dollars(result['planned_cost'])} US dollars"
    columns = ("calls", "cached", "tokens in", "prompt cache", "out", "US dollars", "batch API")
    table = _table(f"{title} (at most {_dollars(result['planned_most'])})", columns)
    for name, one in result["teachers"].items():
        counts = [f"{one[key]:,}" for key in ("calls", "cached", "tokens_in", "tokens_cached", "tokens_out")]
        batch = _dollars(one["batch_cost"]) if "batch_cost" in one else "-"
        table.add_row(name, *counts, _dollars(one["cost"]), batch)
    table.caption = "; ".join(f"{name}: {one['basis']}" for name, one in result["teachers"].items())
    return table


def _replay(result: dict[str, Any]) -> Any:
    title = f"{result['steps']} of {result['selected']} steps replayed, {_dollars(result['cost'])} US dollars"
    columns = ("what it is", "answers", "invalid", "errors", "calls", "cached", "US dollars", "p50 s", "p95 s")
    table = _table(title, columns)
    for name, one in result["teachers"].items():
        errors = ", ".join(f"{count} {kind}" for kind, count in one["errors"].items()) or "0"
        counts = (one["answers"], one["invalid"], errors, one["calls"], one["cached"])
        seconds = ["-" if one[key] is None else f"{one[key]:.2f}" for key in ("p50", "p95")]
        table.add_row(name, one["kind"], *map(str, counts), _dollars(one["cost"]), *seconds)
    if result["stopped_by_budget"]:
        table.caption = "stopped: the next call might have gone over the budget; a higher --budget goes on"
    return table


def _dollars(amount: float) -> str:
    """Cents where they say something, else the first digits that do."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.3g}"


def _table(title: str, columns: Sequence[str]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in ("teacher", *columns):
        table.add_column(column)
    return table
