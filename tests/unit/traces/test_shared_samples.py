"""Real files of every format, where the folder with them is present: hand-checked counts, complete contexts."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from postgrad.core.errors import DataError
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.records import totals

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("POSTGRAD_SHARED", ROOT.parent / "shared")) / "traces"
TRUTH = SHARED / "GROUND_TRUTH.tsv"
ROWS = list(csv.DictReader(TRUTH.open(), delimiter="\t")) if TRUTH.is_file() else []
FORMATS = {
    "claude_code": "claude_code",
    "codex_cli": "codex_cli",
    "gemini_cli": "gemini_cli",
    "opencode": "opencode",
    "openhands": "openhands",
    "openhands_v1": "openhands_v1",
    "swe_agent": "swe_agent",
    "mini_swe_agent": "mini_swe_agent",
    "cline": "cline",
    "inspect": "inspect",
    "atif": "atif",
    "sharegpt": "sharegpt",
    "tau_bench": "tau_bench",
    "anthropic_managed_agents": "anthropic_managed_agents",
    "langfuse": "langfuse",
    "openinference": "openinference",
    "otel_genai": "otel_genai",
}
"""Folder of samples -> the format that all of its files are recognised as."""
READ = [row for row in ROWS if row["file"].partition("/")[0] in FORMATS and not row["notes"].startswith("invalid JSON")]
BROKEN = [row["file"] for row in ROWS if row["notes"].startswith("invalid JSON")]
CLAUDE = [row for row in ROWS if row["file"].startswith("claude_code/")]


@pytest.mark.parametrize("row", READ, ids=lambda row: row["file"])
def test_counts_equal_the_hand_checked_ones(row: dict[str, str]) -> None:
    """Columns that are empty were not counted by hand."""
    name, _, place = row["file"].partition("#")  # file.jsonl#2: the third run of the file
    path = SHARED / name
    result = readers.read(path)
    assert result.source.format == FORMATS[row["file"].partition("/")[0]]
    names = {"llm_steps": "steps"}
    wanted = {names.get(n, n): int(row[n]) for n in row if n not in ("file", "notes") and row[n]}
    counted = totals([result.traces[int(place)]] if place else result.traces)
    assert {name: counted[name] for name in wanted} == wanted
    if path.suffix == ".jsonl":
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


@pytest.mark.parametrize("file", BROKEN)
def test_a_file_that_is_no_json_is_refused_with_its_name(file: str) -> None:
    with pytest.raises(DataError, match=Path(file).name):
        readers.read(SHARED / file)
