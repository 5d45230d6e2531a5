"""Precision and recall on sessions labelled by hand, where the folder with them is present.

`python tests/unit/signals/test_shared_sites.py [-v]` prints the table per format and every disagreement.
"""

from __future__ import annotations

import csv
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from postgrad.core.errors import DataError
from postgrad.core.trace import Trace
from postgrad.signals.error_sites.sites import LEARNABLE, Site, find_sites
from postgrad.traces import readers

ROOT = Path(__file__).parents[4]
SHARED = Path(os.environ.get("POSTGRAD_SHARED", ROOT.parent / "shared")) / "traces"
TABLE = SHARED / "ERROR_SITES.tsv"
LEAST = 0.9


class Label(NamedTuple):
    """A place that was read by hand: its number, and what the number counts (line, row, event, step, call)."""

    counts: str
    number: int
    verdict: str
    why: str


class Judged(NamedTuple):
    """A labelled or found place of one trace: the label's verdict ("" where none), and ours."""

    format: str
    where: str
    wanted: str
    found: str
    why: str


def labelled() -> dict[str, list[Label]]:
    """File (with `#index` of the trace) -> its labels."""
    if not TABLE.is_file():
        return {}
    files: dict[str, list[Label]] = defaultdict(list)
    with TABLE.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            counts, number = row["where"].split()
            files[row["file"]].append(Label(counts, int(number), row["verdict"], row["why"]))
    return files


def judged(file: str, labels: list[Label]) -> Iterator[Judged]:
    """Every labelled place and every learnable site of a file. A file that cannot be read misses all its labels."""
    name, _, index = file.partition("#")
    (path,) = SHARED.glob(name.rstrip("…") + "*") if name.endswith("…") else [SHARED / name]
    source = name.split("/")[0]
    try:
        traces = list(readers.read(path).traces)
    except DataError:
        traces = []
    chosen = [trace for trace in traces if not index or trace.index == int(index)]
    sites = [(trace, site) for trace in chosen for site in find_sites(trace)]
    taken: set[int] = set()
    for label in labels:
        free = [at for at in range(len(sites)) if at not in taken]
        hits = [at for at in free if place(*sites[at], label) == label.number]
        hits.sort(key=lambda at: sites[at][1].verdict != label.verdict)
        found = sites[hits[0]][1].verdict if hits else ""
        taken |= set(hits)
        yield Judged(source, f"{file} {label.counts} {label.number}", label.verdict, found, label.why)
    for at, (_, site) in enumerate(sites):
        if at not in taken and site.verdict in LEARNABLE:
            why = f"{site.rule} {site.kind}: {site.text[:200]!r}"
            yield Judged(source, f"{file} record {site.record} step {site.step}", "", site.verdict, why)


def place(trace: Trace, site: Site, label: Label) -> int:
    """The number of a site in the label's own counting: of its record, or of its call in the trace."""
    if label.counts != "call":
        return site.record
    calls = [call.id for step in trace.steps for call in step.action.tool_calls]
    return calls.index(site.call) + 1 if site.call in calls else -1


def precision_recall(places: list[Judged]) -> tuple[float, float, int]:
    """Over learnable against everything else; and the number of learnable labels."""
    hits = sum(place.wanted in LEARNABLE and place.found in LEARNABLE for place in places)
    found = sum(place.found in LEARNABLE for place in places)
    wanted = sum(place.wanted in LEARNABLE for place in places)
    return hits / found if found else 1.0, hits / wanted if wanted else 1.0, wanted


LABELLED = labelled()


@pytest.mark.parametrize("files", [LABELLED] if LABELLED else [], ids=["all"])
def test_precision_and_recall_on_labelled_sessions(files: dict[str, list[Label]]) -> None:
    places = [place for file, labels in files.items() for place in judged(file, labels)]
    precision, recall, _ = precision_recall(places)
    assert precision >= LEAST, [place for place in places if place.found in LEARNABLE and place.wanted not in LEARNABLE]
    assert recall >= LEAST, [place for place in places if place.wanted in LEARNABLE and place.found not in LEARNABLE]


@pytest.mark.parametrize("file", [file for file in LABELLED if file.startswith("claude_code/")])
def test_verdicts_equal_the_labels(file: str) -> None:
    """Claude Code flags its errors, so every verdict can be right, not only learnable or not."""
    assert [place for place in judged(file, LABELLED[file]) if place.wanted != place.found] == []


def report(*, verbose: bool) -> Iterator[str]:
    """The table that the module prints when it is run."""
    places = [place for file, labels in LABELLED.items() for place in judged(file, labels)]
    for source in [*dict.fromkeys(place.format for place in places), "all"]:
        ours = [place for place in places if source in (place.format, "all")]
        precision, recall, wanted = precision_recall(ours)
        same = sum(place.wanted == place.found for place in ours if place.wanted)
        yield f"{source:14} precision {precision:.3f}  recall {recall:.3f}  learnable {wanted}  same verdict {same}"
    for place in places:
        if place.wanted != place.found and (verbose or (place.wanted in LEARNABLE) != (place.found in LEARNABLE)):
            yield f"  {place.where}: wanted {place.wanted or '-'}, found {place.found or '-'}  ({place.why})"


if __name__ == "__main__":
    print("\n".join(report(verbose="-v" in sys.argv)))
