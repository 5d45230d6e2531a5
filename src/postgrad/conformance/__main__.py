"""`python -m postgrad.conformance`: exit code 0 if all of ours agree, 1 if one does not, 2 for a wrong request."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table

from postgrad.conformance.suite import load_cases, run_suite
from postgrad.core.canonical import plain_json
from postgrad.verbs.boundary import Boundary, stdout_to_stderr


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, all else on stderr.")
@click.option("--peers", help="Peers to measure, or none.  [default: those that are installed]")
@click.option("--only", default="", help="Cases whose names begin so, such as policy/dapo.")
def main(as_json: bool, peers: str | None, only: str) -> None:
    """Measure every named objective and estimator against values worked out by hand."""
    with Boundary(as_json=as_json):
        names = None if peers is None else [name.strip() for name in peers.split(",") if name.strip()]
        names = [] if names == ["none"] else names
        with stdout_to_stderr() as stdout:
            result = run_suite(load_cases(only), names)
        if as_json:
            stdout.write(plain_json(result) + "\n")
        else:
            show(result, Console())
        raise SystemExit(1 if result["failed"] else 0)


def show(result: dict[str, Any], console: Console) -> None:
    """What failed of ours, and where each peer differs from the paper."""
    rows = result["rows"]
    console.print(f"{len(rows) - len(result['failed'])} of {len(rows)} cases agree with their papers")
    _differing(console, "postgrad", [row for row in rows if not row["ok"]])
    for peer, measured in result["peers"].items():
        if peer in result["not_installed"]:
            continue
        differing = [row for row in measured if not row["agrees"]]
        console.print(f"{peer}: {len(measured) - len(differing)} of {len(measured)} cases agree with their papers")
        _differing(console, peer, differing)
    for peer, do in result["not_installed"].items():
        console.print(f"{peer} is not installed and was not measured; {do}", soft_wrap=True)


def _differing(console: Console, who: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table("case", "paper", "by hand", who, "note")
    for row in rows:
        table.add_row(row["case"], row["source"], _told(row["expected"]), _told(row["got"]), row.get("note", ""))
    console.print(table)


def _told(values: list[float | str | None]) -> str:
    return ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)


if __name__ == "__main__":
    main()
