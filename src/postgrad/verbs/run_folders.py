"""Run folders from the command line's side: which one to take up again, how to start one, and to leave none empty."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from postgrad.core.errors import ConfigError, UserError
from postgrad.run.config import Config
from postgrad.run.inputs import paths_in
from postgrad.run.rundir import RunDir

BOOKKEEPING = {".lock", "config.json", "environment.json", "inputs.json", "data.json"}
"""Files that say what was to be run, and nothing of what came out."""


def unfinished(name: str, config: Config) -> Path | None:
    """The latest run under runs/ of this verb and configuration that has no result and that nobody is working on."""
    for folder in sorted(Path("runs").glob(f"{name}-*"), reverse=True):
        directory = RunDir(folder)
        if not (folder / "result.json").exists() and directory.started() == (name, config.resolved()):
            try:
                with directory.locked():
                    return folder
            except ConfigError:
                continue
    return None


def difference(started: tuple[str, dict[str, Any]], name: str, config: Config) -> str:
    """The first key in which a configuration differs from the one that was started, for a person."""
    if started[0] != name:
        return f"of 'postgrad {started[0]}'"
    now, then = _flat(config.resolved()), _flat(started[1])
    key = next((key for key in {**then, **now} if then.get(key) != now.get(key)), "")
    return f"{key}: {then.get(key)} there, {now.get(key)} now"


@contextmanager
def started(
    directory: RunDir, verb: str, config: Config, *, inputs: bool
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Hold and start the run; yields what stores its result.

    A folder that this call made is gone again where the user's mistake ended the run before it did anything.

    Args:
        directory: the run folder.
        verb: whose run.
        config: its configuration.
        inputs: hash the files and folders that the configuration names.
    """
    made = [path for path in (directory.path, *directory.path.parents) if not path.exists()]
    try:
        with directory.locked():
            directory.start(verb, config.resolved())
            if inputs:
                directory.record_inputs(paths_in(config.resolved(), outside=directory.path))
            yield directory.finish
    except UserError:
        if made and {file.name for file in directory.path.rglob("*") if file.is_file()} <= BOOKKEEPING:
            shutil.rmtree(made[-1])
        raise


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {path: item for key, inner in value.items() for path, item in _flat(inner, f"{prefix}.{key}").items()}
    return {prefix.lstrip("."): value}
