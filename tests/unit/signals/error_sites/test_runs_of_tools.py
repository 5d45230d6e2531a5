"""What the tools of many languages write: a failure is found with an exit code and without, and a success is none.

Each row of `runs_of_tools.yaml` is a run after an edit of the file that it is about.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from postgrad.signals.error_sites.sites import Site, find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

TABLE: dict[str, list[dict[str, str]]] = yaml.safe_load(
    Path(__file__).with_name("runs_of_tools.yaml").read_text("utf-8")
)
CODE_LOST = " 2>&1 | tail -30"


def named(rows: list[dict[str, str]]) -> list[str]:
    return [f"{number}-{row['line']}" for number, row in enumerate(rows)]


@pytest.mark.parametrize("row", TABLE["failed"], ids=named(TABLE["failed"]))
@pytest.mark.parametrize("code", [1, None])
def test_a_failed_run_is_the_fault_of_the_edit(row: dict[str, str], code: int | None) -> None:
    told = row["output"] if code is None else f"Exit code {code}\n{row['output']}"
    (site,) = sites(row, row["line"] + CODE_LOST if code is None else row["line"], told, True if code else None)
    assert site.verdict == "real"


@pytest.mark.parametrize("row", TABLE["passed"], ids=named(TABLE["passed"]))
@pytest.mark.parametrize("behind", ["", CODE_LOST, "; echo done"])
def test_a_run_that_went_well_is_no_site(row: dict[str, str], behind: str) -> None:
    assert sites(row, row["line"] + behind, row["output"], None) == []


def sites(row: dict[str, str], line: str, output: str, flag: bool | None) -> list[Site]:
    edit = act(call("Edit", {"file_path": row["edited"], "old_string": "a", "new_string": "b"}, "e0"))
    builder = TraceBuilder().step(edit, [("The file has been updated.", False)])
    return find_sites(builder.step(act(bash(line, "c1")), [(output, flag)]).build())
