"""What `show` reads of run folders: one with its stages and metrics, or in brief all that lie below a folder.

A cycle's stages are named as its recipe names them, those too that were not reached yet. Nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.core.words import counted
from postgrad.run.rundir import RunDir
from postgrad.verbs.in_brief import in_brief
from postgrad.verbs.tables import Rows

_DEPTH = 3
"""Folders between the one that is shown and a run."""


def is_run(path: Path) -> bool:
    """Whether a run was started in the folder; a model's folder has a config.json, too."""
    return (path / "config.json").is_file() and (path / "environment.json").is_file()


def run_folder(path: Path, *, tail: int) -> dict[str, Any]:
    """One run: state, configuration, result, the last `tail` lines of its metrics, verdict, stages.

    Raises:
        DataError: a file of it is broken.
    """
    directory = RunDir(path)
    started = directory.started()
    assert started is not None, "config.json is there"
    lines = directory.metrics()
    verdict = path / "verdict.json"
    return {
        "kind": "run",
        "path": str(path),
        "verb": started[0],
        "config": started[1],
        "complete": directory.result() is not None,
        "result": directory.result(),
        "metrics": {"lines": len(lines), "tail": lines[len(lines) - min(tail, len(lines)) :]},
        "verdict": json.loads(verdict.read_bytes()) if verdict.is_file() else None,
        "stages": list(_stages(path, started[1])),
    }


def _stages(path: Path, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The stages of a cycle's recipe, and folders of stages that the recipe does not name (any more)."""
    named = {f"{number:02d}-{one['name']}": one for number, one in enumerate(config.get("stages") or (), start=1)}
    there = {folder.name for folder in path.glob("[0-9][0-9]-*") if folder.is_dir()}
    for name in sorted({*named, *there}):
        known = named.get(name, {})
        yield _stage(path / name, known.get("name", name.partition("-")[2]), str(known.get("verb", "?")))


def _stage(folder: Path, name: str, verb: str) -> dict[str, Any]:
    """One stage: done, cut off, or not run (yet)."""
    directory = RunDir(folder)
    started, result = directory.started(), directory.result()
    mark = folder / "stage.json"
    noted = json.loads(mark.read_bytes()) if mark.is_file() else {}
    cut_off = "cut off" if folder.exists() else "not run"
    return {
        "name": name,
        "folder": folder.name,
        "verb": started[0] if started else verb,
        "status": "ran" if noted.get("complete") else cut_off,
        "seconds": noted.get("seconds", 0.0),
        "result": result or {},
    }


def runs_below(path: Path) -> list[dict[str, Any]]:
    """The runs in `path`, oldest first: path, verb, state, date (local time), and what each came to."""
    return sorted((_in_brief(folder) for folder in _folders(path, _DEPTH)), key=lambda run: str(run["date"]))


def _folders(path: Path, depth: int) -> Iterator[Path]:
    """Run folders below; a run's own folders, such as the stages of a cycle, are part of it."""
    for folder in sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith(".")):
        if is_run(folder):
            yield folder
        elif depth > 1:
            yield from _folders(folder, depth - 1)


def _in_brief(folder: Path) -> dict[str, Any]:
    directory = RunDir(folder)
    try:
        started, result = directory.started(), directory.result()
    except DataError as error:
        started, result, came_to = None, None, str(error)
    else:
        came_to = in_brief(started[0], result) if started and result else ""
    state = "complete" if result is not None else "running" if directory.busy else "not complete"
    last = max(file.stat().st_mtime for file in folder.iterdir() if file.is_file())
    date = datetime.fromtimestamp(last).astimezone().isoformat(" ", "minutes")
    return {
        "path": str(folder),
        "verb": started[0] if started else "?",
        "state": state,
        "date": date,
        "came_to": came_to,
    }


def runs_shown(result: Mapping[str, Any]) -> Rows:
    """A row a run; its folder is told from the one that was asked for."""
    rows = [
        (
            str(Path(run["path"]).relative_to(result["path"])),
            run["verb"],
            run["state"],
            run["date"][:16],
            run["came_to"],
        )
        for run in result["runs"]
    ]
    columns, title = ("run", "verb", "state", "date", "came to"), f"{result['path']}: {counted(len(rows), 'run')}"
    return Rows(columns, rows, title=title, flexible=("run", "came to"))
