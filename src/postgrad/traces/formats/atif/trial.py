"""A Harbor trial, a folder that is one source: ``agent/trajectory.json`` (and its continuations), results, rewards.

    agent/trajectory.json, agent/trajectory.cont-1.json, ...   ATIF trajectories
    verifier/reward.txt | reward.json | ctrf.json              what the verifier said
    result.json                                                the trial: task, agent, rewards, exception

A continuation goes on from a summary, with the steps before it copied or gone: it is a trace of its own, whose parent
is the one before. The reward stands at the last step of the last trace. All other files are kept raw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.trace import Event, Feedback, Source, Trace
from postgrad.traces.formats.atif.trajectory import is_trajectory, traces
from postgrad.traces.formats.datasets.rows import Row
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, number, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import JsonDocument
from postgrad.traces.sources.folder import File, Folder
from postgrad.traces.sources.head import Head

_TRAJECTORY = re.compile(r"agent/trajectory(?:\.cont-(\d+))?\.json")


@dataclass(frozen=True)
class HarborTrial:
    """Reader of a Harbor trial's folder."""

    format: str = "harbor_trial"

    def recognises(self, head: Head) -> bool:
        """A folder with an agent's trajectory beside what a trial writes."""
        folder = head.path
        if not folder.is_dir() or not (folder / "agent" / "trajectory.json").is_file():
            return False
        return any((folder / name).exists() for name in ("result.json", "verifier", "config.json"))

    def read(self, path: Path) -> ReadResult:
        """Read a trial.

        Raises:
            DataError: it cannot be opened.
        """
        folder = Folder(path)
        found = {int(match[1] or 0): file for file in folder.files if (match := _TRAJECTORY.fullmatch(file.name))}
        source = Source(str(path), self.format, folder.sha256)
        told: list[Trace] = []
        start = 1
        for _, file in sorted(found.items()):
            document = folder.document(file, "steps", "subagent_trajectories", first=start)
            if document is not None:
                source, new = _trajectory(folder, document, source, told, file)
                told += new
            start = max([0, *folder.entries]) + 1
        others = [file for file in folder.files if file not in found.values()]
        results = {file.name: _other(folder, file, start + place) for place, file in enumerate(others)}
        return folder.result(source, _judged(told, results))


def _trajectory(
    folder: Folder, document: JsonDocument, source: Source, told: list[Trace], file: File
) -> tuple[Source, list[Trace]]:
    """The source as this trajectory names its agent, and the traces in it."""
    value = document.envelope if isinstance(document.envelope, dict) else {}
    lists = {name: list(document.rows(name)) for name in ("steps", "subagent_trajectories")}
    value |= {name: [item.value for item in items] for name, items in lists.items()}
    numbers = {name: tuple(item.number for item in items) for name, items in lists.items()}
    agent = mapping(value.get("agent"))
    source = msgspec.structs.replace(source, app=text(agent.get("name")), app_version=text(agent.get("version")))
    if not is_trajectory(value) or not numbers["steps"]:
        folder.note(f"{file.name} is no ATIF trajectory", done="kept raw, in no step")
        for number in (*numbers["steps"], *numbers["subagent_trajectories"]):
            folder.use(number, "unknown", "object")
        return source, []
    row = Row(value, numbers["steps"], folder, {"subagent_trajectories": numbers["subagent_trajectories"]})
    before = next((trace.id for trace in reversed(told) if trace.parent is None or trace.index == 0), None)
    new = list(traces(row, source, index=len(told)))
    if new and before is not None:
        new[0] = msgspec.structs.replace(new[0], parent=before)
    row.settle("trajectory")
    return source, new


def _other(folder: Folder, file: File, record: int) -> tuple[int, Any]:
    """Enter a file that is no trajectory; what it says, where it is JSON or a number."""
    folder.entry(file, record)
    judges = file.name == "result.json" or file.name.startswith("verifier/")
    folder.use(record, "event" if judges else "ui", file.name)
    try:
        return record, json.loads(file.data) if judges else None
    except (ValueError, RecursionError):
        return record, None


def _judged(told: list[Trace], results: Mapping[str, tuple[int, Any]]) -> list[Trace]:
    """The traces with the reward at the end, and with the exception that ended the trial, if one did."""
    if not told or not told[-1].steps:
        return told
    main = max((place for place, trace in enumerate(told) if trace.steps[0].kind == "main"), default=len(told) - 1)
    trace = told[main]
    record, result = results.get("result.json", (0, None))
    words = "; ".join(_failed_tests(results.get("verifier/ctrf.json", (0, None))[1]))
    feedback = tuple(Feedback(kind, value, words, "verifier") for kind, value in _rewards(results))
    last = msgspec.structs.replace(trace.steps[-1], feedback=trace.steps[-1].feedback + feedback)
    events = trace.events
    exception = mapping(mapping(result).get("exception_info"))
    if exception:
        said = ": ".join(str(exception[key]) for key in ("exception_type", "exception_message") if exception.get(key))
        events += (Event("error", len(trace.steps), record, said),)
    task = text(first(mapping(result), "task_name", "task_id")) or trace.task_id
    judged = msgspec.structs.replace(trace, steps=(*trace.steps[:-1], last), events=events, task_id=task)
    return [*told[:main], judged, *told[main + 1 :]]


def _rewards(results: Mapping[str, tuple[int, Any]]) -> Iterator[tuple[str, float]]:
    """The rewards by name: of the result, else as the verifier wrote them."""
    result = mapping(results.get("result.json", (0, None))[1])
    rewards = mapping(mapping(result.get("verifier_result")).get("rewards"))
    written = (
        rewards or results.get("verifier/reward.json", (0, None))[1] or results.get("verifier/reward.txt", (0, None))[1]
    )
    for name, value in written.items() if isinstance(written, dict) else [("reward", written)]:
        if (figure := number(value)) is not None:
            yield str(name), figure


def _failed_tests(report: object) -> list[str]:
    tests = mappings(mapping(mapping(report).get("results")).get("tests"))
    return [f"failed: {string(test.get('name'))}" for test in tests if test.get("status") == "failed"]
