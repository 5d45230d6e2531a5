"""`postgrad show`: print a run folder (or list those in a folder), a trace store, an artifact, or a trace of a store.

With `--memory RECIPE` it tells what the recipe's training will take.

What a folder is, is told by what lies in it: postgrad.json makes an artifact, config.json and environment.json a run,
store.json a trace store; of any other folder the runs below it are listed. A trace is named by its id, or the beginning
of it; `--html FILE` and `--serve` give the page. It reads and changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from postgrad.core.artifact import MANIFEST, read_manifest
from postgrad.core.champion import read_champion
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.trace import Trace
from postgrad.core.words import counted
from postgrad.run.config import Config
from postgrad.run.progress import note
from postgrad.verbs.arguments import ALONE
from postgrad.verbs.command import verb_command
from postgrad.verbs.run_shown import artifact_shown, facts, run_shown
from postgrad.verbs.show_runs import is_run, run_folder, runs_below, runs_shown

if TYPE_CHECKING:
    from postgrad.traces.storage.store import Store


class ShowConfig(Config):
    """What to look at."""

    what: list[str] = Field(default_factory=list)
    """A run folder, a folder of runs, a trace store or an artifact; of a store also a trace (its id, or the beginning)
    and a step."""
    tail: int = 5
    """How many of the last metric lines to print."""
    limit: int = Field(default=50, ge=1)
    """How many traces of a store to list."""
    html: Path | None = Field(default=None, json_schema_extra={ALONE: "page.html"})
    """Write the store as one page, which needs nothing else, to this file; `--html` alone: to page.html."""
    serve: bool = False
    """Open the store as a page on this machine, until stopped."""
    port: int = Field(default=0, ge=0, le=65535)
    """Port of that page; 0 takes a free one."""
    memory: str | None = None
    """A recipe (a file, or a packaged one's name): tell what its training takes, without loading weights."""


CONFIG = ShowConfig
_SHOWN = "a run folder (or a folder of some), a trace store or an artifact"


def run(config: ShowConfig, out: Path) -> dict[str, Any]:
    """Read the folder.

    Raises:
        DataError: there is nothing there, or it is none of the three.
    """
    if config.memory is not None:
        if config.what or config.html or config.serve:
            raise ConfigError("--memory takes a recipe and nothing else", got=" ".join(config.what) or None)
        from postgrad.verbs.show_memory import memory

        return memory(config.memory)
    if not config.what or len(config.what) > 3:
        raise ConfigError(
            "nothing to show",
            got=" ".join(config.what) or None,
            expected="FOLDER, STORE TRACE [STEP], or --memory RECIPE",
        )
    path = Path(config.what[0])
    if path.is_file():
        raise DataError("a file is not shown", got=str(path), expected=_SHOWN, do=_instead(path))
    if not path.is_dir():
        raise DataError("no such folder", got=str(path), expected=_SHOWN)
    if (path / MANIFEST).is_file():
        found = {"kind": "artifact", "path": str(path), "manifest": msgspec.to_builtins(read_manifest(path))}
    elif is_run(path):
        found = run_folder(path, tail=config.tail)
    else:
        return _store_or_runs(path, config)
    if len(config.what) > 1 or config.html or config.serve:
        raise ConfigError(f"traces are shown of a store, this is a {found['kind']}", got=str(path))
    return found


def _instead(file: Path) -> str:
    """The folder that a pointer, such as champion.json, names; nothing for other files."""
    try:
        champion = read_champion(file)
    except DataError:
        return ""
    return f"to look at the champion: postgrad show {champion['artifact']}" if champion else ""


def _store_or_runs(path: Path, config: ShowConfig) -> dict[str, Any]:
    """A store's content, its page, or one trace of it; of another folder the runs below it.

    Raises:
        DataError: the folder is no store and holds no run, or there is no such trace or step.
    """
    from postgrad.traces.storage.store import Store

    store = Store(path)
    if not store.exists:
        if runs := runs_below(path):
            return {"kind": "runs", "path": str(path), "runs": runs}
        traces = f"to look at traces: postgrad ingest {path} -o STORE" if any(path.glob("*.jsonl")) else ""
        raise DataError("nothing that can be shown is here", got=str(path), expected=_SHOWN, do=traces)
    if config.serve:
        return _served(store.traces(), config)
    if config.html is not None:
        from postgrad.serve.look.page import write_page

        return {"kind": "page", "path": str(path), **write_page(store.traces(), config.html, name=path.resolve().name)}
    if len(config.what) > 1:
        return _trace(store.traces(), *config.what[1:])
    return _counted(store, config.limit)


def _counted(store: Store, limit: int) -> dict[str, Any]:
    from postgrad.serve.look.listing import listed
    from postgrad.serve.look.terminal import short_names
    from postgrad.signals.error_sites.sites import find_sites

    rows = [listed(trace, find_sites(trace), key=key) for key, trace in enumerate(store.traces())]
    for row, name in zip(rows, short_names([row["id"] for row in rows]), strict=True):
        row["short"] = name
    names = {"steps": "steps", "tool_calls": "calls", "tool_results": "results", "flagged_errors": "flagged"}
    return {
        "kind": "store",
        "path": str(store.folder),
        "traces": len(rows),
        "copies": max(0, _read(store) - len(rows)),
        "formats": dict(Counter(row["format"] for row in rows)),
        **{name: sum(row[key] for row in rows) for name, key in names.items()},
        "list": rows[:limit],
    }


def _read(store: Store) -> int:
    """How many traces were read, each file counted under each of its names: of a session the store keeps one."""
    journal = store.journal()
    names = Counter(seen.sha256 for seen in journal.seen.values())
    reports = ((sha, json.loads(bytes(source.report))) for sha, source in journal.sources.items())
    return sum(max(1, names[sha]) * len(report["source"]["traces"]) for sha, report in reports if report)


def _trace(traces: Iterable[Trace], name: str, number: str | None = None) -> dict[str, Any]:
    """The trace of that id, or the only one whose id begins like this."""
    from postgrad.serve.look.detail import detail
    from postgrad.signals.error_sites.sites import find_sites

    found = {}
    for trace in traces:
        if trace.id == name:
            found = {trace.id: trace}
            break
        if trace.id.startswith(name):
            found[trace.id] = trace
    if len(found) != 1:
        what = "no such trace" if not found else f"{len(found)} traces begin like this"
        raise DataError(what, got=name, expected=", ".join(list(found)[:5]) or "an id that `postgrad show STORE` lists")
    [trace] = found.values()
    steps = [step.index for step in trace.steps]
    if number is not None and number not in map(str, steps):
        raise DataError("no such step", got=number, expected=f"0 to {max(steps)}" if steps else "a trace with steps")
    told = detail(trace, find_sites(trace), longest=sys.maxsize)
    return {"kind": "trace", "step": None if number is None else int(number), "trace": told}


def _served(traces: Iterable[Trace], config: ShowConfig) -> dict[str, Any]:
    from postgrad.serve.look.server import looking
    from postgrad.serve.waiting import wait_until_stopped

    with looking(traces, name=Path(config.what[0]).resolve().name, port=config.port) as address:
        note(f"{address} (Ctrl-C stops)")
        wait_until_stopped()
    return {"kind": "page", "path": config.what[0], "address": address}


def show(result: dict[str, Any]) -> RenderableType:
    """Tables for a run, the list for a store, plain facts for an artifact."""
    from postgrad.serve.look import terminal as look

    if result["kind"] == "memory":
        from postgrad.verbs.show_memory import show as show_memory

        return show_memory(result)
    if result["kind"] == "store":
        return Group(_store_head(result), look.traces(result["list"], total=result["traces"]))
    if result["kind"] == "runs":
        return runs_shown(result)
    if result["kind"] == "trace":
        return look.trace(result["trace"]) if result["step"] is None else look.step(result["trace"], result["step"])
    if result["kind"] == "artifact":
        return artifact_shown(result)
    if result["kind"] != "run":
        return facts({key: value for key, value in result.items() if key != "manifest"} | result.get("manifest", {}))
    return run_shown(result)


def _store_head(result: dict[str, Any]) -> Text:
    """What the store holds, in two lines; the numbers are those of the traces that are kept."""
    formats = ", ".join(f"{count} {name}" for name, count in result["formats"].items())
    numbers = [
        counted(result["steps"], "step"),
        counted(result["tool_calls"], "call"),
        counted(result["tool_results"], "result"),
        f"{result['flagged_errors']:,} flagged as errors by their source",
    ]
    traces = f"{result['path']}: {counted(result['traces'], 'trace')}{f' ({formats})' if formats else ''}"
    if copies := result["copies"]:
        traces += f"; {copies} more that were read are copies or earlier states of these"
    return Text(f"{traces}\n{', '.join(numbers)}", overflow="fold")


command = verb_command(
    "show", ShowConfig, run, help=__doc__.splitlines()[0], show=show, positional="what", keeps_run=False
)
