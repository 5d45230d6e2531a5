"""Real Claude Code files, where the folder with them is present: hand-checked counts, complete contexts."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.records import totals

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("POSTGRAD_SHARED", ROOT.parent / "shared")) / "traces"
TRUTH = SHARED / "GROUND_TRUTH.tsv"
ROWS = list(csv.DictReader(TRUTH.open(), delimiter="\t")) if TRUTH.is_file() else []
CLAUDE = [row for row in ROWS if row["file"].startswith("claude_code/")]
OTHER = [row["file"] for row in ROWS if not row["file"].startswith("claude_code/")]


@pytest.mark.parametrize("row", CLAUDE, ids=lambda row: row["file"])
def test_counts_equal_the_hand_checked_ones(row: dict[str, str]) -> None:
    path = SHARED / row["file"]
    result = readers.read(path)
    assert result.source.format == "claude_code"
    names = {"llm_steps": "steps"}
    wanted = {names.get(n, n): int(row[n]) for n in row if n not in ("file", "notes")}
    assert totals(result.traces) == wanted
    assert sum(result.uses.values()) == sum(1 for line in path.read_bytes().split(b"\n") if line.strip())


@pytest.mark.parametrize("row", CLAUDE, ids=lambda row: row["file"])
def test_every_result_is_in_the_context_of_the_next_step(row: dict[str, str]) -> None:
    """W16: a plain walk up the tree finds 12 of 16 (spotter_subagent) and 168 of 186 (spotter_258c7280)."""
    for trace in ClaudeCode().read(SHARED / row["file"]).traces:
        assert missing(trace) == []


def missing(trace: Trace) -> list[str]:
    """Results that the step after theirs does not see, unless a compaction lies between."""
    cut = {event.before_step for event in trace.events if event.kind == "compaction"}
    lost = []
    for step, following in zip(trace.steps, trace.steps[1:], strict=False):
        seen = {result.call_id for message in trace.context(following) for result in message.tool_results}
        wanted = set() if following.index in cut else {result.call_id for result in step.results}
        lost += sorted(wanted - seen)
    return lost


@pytest.mark.parametrize("file", OTHER)
def test_other_formats_are_not_taken_for_ours(file: str) -> None:
    path = SHARED / file.partition("#")[0]
    assert path.is_dir() or readers.detect(path) is None
