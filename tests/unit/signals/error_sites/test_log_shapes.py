"""What failures look like in the logs of many tools, and what only looks like one: the table `log_shapes.yaml`.

Each row is one call with its result, as the reader of a format would give it. Before it lies one edit of `src/app.py`
that went well, so that a failing test run has somebody to blame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from postgrad.core.message import ToolCall
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("log_shapes.yaml").read_text("utf-8"))
ROWS = [(f"{group}-{number}", row) for group, rows in TABLE.items() for number, row in enumerate(rows)]


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[name for name, _ in ROWS])
def test_a_result_is_judged_as_a_reader_of_the_log_would(row: dict[str, Any]) -> None:
    made = bash(row["line"], "c1") if "line" in row else call(row["tool"], row["arguments"], "c1")
    found = [f"{site.kind} {site.verdict}" for site in sites(made, row["text"], row["flag"])]
    assert found == ([] if row["site"] == "none" else [row["site"]]), row


def sites(made: ToolCall, text: str, flag: bool | None) -> list[Any]:
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "src/app.py"}, "e0")), [("Updated.", False)])
    return find_sites(builder.step(act(made), [(text, flag)]).build())
