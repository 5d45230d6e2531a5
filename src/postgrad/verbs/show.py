"""`postgrad show`: print a run folder, a trace store or an artifact.

What a folder is, is told by what lies in it: postgrad.json makes an artifact, config.json a run, anything else is
tried as a trace store. It reads and changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.pretty import Pretty
from rich.table import Table
from rich.text import Text

from postgrad.core.artifact import MANIFEST, read_manifest
from postgrad.core.errors import DataError
from postgrad.run.config import Config
from postgrad.run.rundir import RunDir
from postgrad.verbs.command import verb_command
from postgrad.verbs.stages_table import show as show_stages


class ShowConfig(Config):
    """What to look at."""

    path: Path
    """A run folder, a trace store or an artifact."""
    tail: int = 5
    """How many of the last metric lines to print."""


CONFIG = ShowConfig


def run(config: ShowConfig, out: Path) -> dict[str, Any]:
    """Read the folder.

    Raises:
        DataError: there is nothing there, or it is none of the three.
    """
    path = config.path
    if not path.is_dir():
        raise DataError("no such folder", got=str(path), expected="a run folder, a trace store or an artifact")
    if (path / MANIFEST).is_file():
        return {"kind": "artifact", "path": str(path), "manifest": msgspec.to_builtins(read_manifest(path))}
    if (path / "config.json").is_file():
        return _run_folder(RunDir(path), config.tail)
    return _store(path)


def _run_folder(directory: RunDir, tail: int) -> dict[str, Any]:
    started = directory.started()
    assert started is not None, "config.json is there"
    lines = directory.metrics()
    verdict = directory.path / "verdict.json"
    return {
        "kind": "run",
        "path": str(directory.path),
        "verb": started[0],
        "config": started[1],
        "complete": directory.result() is not None,
        "result": directory.result(),
        "metrics": {"lines": len(lines), "tail": lines[len(lines) - min(tail, len(lines)) :]},
        "verdict": json.loads(verdict.read_bytes()) if verdict.is_file() else None,
        "stages": [_stage(folder) for folder in sorted(directory.path.glob("[0-9][0-9]-*")) if folder.is_dir()],
    }


def _stage(folder: Path) -> dict[str, Any]:
    """One stage of a cycle's run, also of one that was cut off."""
    directory = RunDir(folder)
    started, result = directory.started(), directory.result()
    mark = folder / "stage.json"
    noted = json.loads(mark.read_bytes()) if mark.is_file() else {}
    return {
        "name": folder.name,
        "verb": started[0] if started else "?",
        "status": "ran" if noted.get("complete") else "cut off",
        "seconds": noted.get("seconds", 0.0),
        "result": result or {},
    }


def _store(path: Path) -> dict[str, Any]:
    """Count a trace store's content.

    Raises:
        DataError: the folder is no store.
    """
    from postgrad.traces.store import Store

    traces = list(Store(path).traces())
    if not traces:
        raise DataError("nothing of postgrad is here", got=str(path), expected="a run folder, a store or an artifact")
    return {
        "kind": "store",
        "path": str(path),
        "traces": len(traces),
        "formats": dict(Counter(trace.source.format for trace in traces)),
        "steps": sum(len(trace.steps) for trace in traces),
        "tool_calls": sum(trace.tool_calls for trace in traces),
        "tool_results": sum(trace.tool_results for trace in traces),
        "flagged_errors": sum(trace.flagged_errors for trace in traces),
    }


def show(result: dict[str, Any]) -> RenderableType:
    """Tables for a run, plain pairs for a store or an artifact."""
    if result["kind"] != "run":
        return _pairs({key: value for key, value in result.items() if key != "manifest"} | result.get("manifest", {}))
    state = "complete" if result["complete"] else "not complete"
    parts: list[RenderableType] = [Text(f"{result['path']}: {result['verb']}, {state}")]
    if result["stages"]:
        parts.append(_stages(result))
    elif result["result"]:
        parts.append(_pairs(result["result"]))
    if result["metrics"]["lines"]:
        parts.append(_metrics(result["metrics"]))
    if result["verdict"]:
        verdict = result["verdict"]
        parts.append(Text(f"verdict: {verdict['decision']}; {'; '.join(verdict['reasons'])}"))
    return Group(*parts)


def _stages(result: dict[str, Any]) -> RenderableType:
    seconds = sum(stage["seconds"] for stage in result["stages"])
    told = result["result"] or {"name": result["config"].get("name", ""), "run": result["path"]}
    return show_stages({**told, "stages": result["stages"], "seconds": seconds})


def _pairs(values: dict[str, Any]) -> Table:
    table = Table(show_header=False)
    for key, value in values.items():
        table.add_row(
            key, Pretty(value, max_length=10, max_string=200) if isinstance(value, (dict, list)) else str(value)
        )
    return table


def _metrics(metrics: dict[str, Any]) -> Table:
    """The tail of the metrics, a column per value that the last line has."""
    columns = [key for key, value in metrics["tail"][-1].items() if isinstance(value, (int, float, str))][:8]
    table = Table(*columns, title=f"metrics: the last of {metrics['lines']} lines", title_justify="left")
    for line in metrics["tail"]:
        cells = (line.get(column, "") for column in columns)
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells))
    return table


command = verb_command(
    "show", ShowConfig, run, help=__doc__.splitlines()[0], show=show, positional="path", keeps_run=False
)
