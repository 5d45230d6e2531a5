"""`postgrad ingest PATH... -o STORE`: read traces, say exactly what was read, keep them without secrets.

A path is a file, a folder (searched through) or a glob. Secrets are taken out of traces and evidence before they are
stored or printed; the raw bytes are kept beside them, on this machine, unless `raw` is off.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.trace import Trace
from postgrad.run.config import Config
from postgrad.run.progress import track
from postgrad.signals.sites import find_sites
from postgrad.traces import READERS, readers
from postgrad.traces.records import Diagnostic, ReadResult, counts, totals
from postgrad.traces.redact import Redactor
from postgrad.traces.store import Store
from postgrad.verbs.command import verb_command


class IngestConfig(Config):
    """What to read and where to keep it."""

    paths: list[str]
    """Files, folders (searched through) and globs."""
    store: Path | None = None
    """The trace store to add to, made if it is not there; `store` in the run folder by default."""
    format: str | None = None
    """Read every file as this format instead of recognising it."""
    raw: bool = True
    """Keep the raw bytes of the sources in the store, secrets and all, readable by their owner only."""


CONFIG = IngestConfig


def run(config: IngestConfig, out: Path) -> dict[str, Any]:
    """Read every path and add it to the store.

    Raises:
        DataError: a path is missing or unreadable, a file named alone is of no known format, nothing is a trace.
        ConfigError: no path, or an unknown format.
    """
    if not config.paths:
        raise ConfigError("nothing to ingest", expected="at least one file, folder or glob")
    folder = config.store or out / "store"
    store, redactor = Store(folder), Redactor()
    sources, sites = [], []
    for path, alone in track(list(_files(config.paths)), "reading traces"):
        result = _read(path, config.format, alone=alone)
        if isinstance(result, Diagnostic):
            sources.append(_refused(path, result))
            continue
        traces = tuple(redactor.redact(trace) for trace in result.traces)
        store.add(msgspec.structs.replace(result, traces=traces), raw=config.raw)
        sources.append(_source(path, result))
        sites += [site for trace in traces for site in _sites(path, trace)]
    if not any(source["format"] for source in sources):
        raise DataError("no file here is a trace", got=", ".join(config.paths), expected=", ".join(READERS))
    redactions = dict(sorted(redactor.counts.items()))
    return {"store": str(folder), "sources": sources, "sites": sites, "redactions": redactions}


def _files(paths: list[str]) -> Iterator[tuple[Path, bool]]:
    """Every file once, in order, and whether it was named itself; hidden files and stores in folders are left out."""
    seen: set[Path] = set()
    for name in paths:
        path = Path(name).expanduser()
        found = _expand(path)
        if not found:
            what = "the folder holds no file" if path.is_dir() else "no such file or folder"
            what = "the folder is a trace store, read already" if Store(path).exists else what
            raise DataError(what, got=name, expected="a file, a folder or a glob")
        for file in found:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file, file == path


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.is_file())
        shown = sorted(file for file in inside if not any(p.startswith(".") for p in file.relative_to(path).parts))
        stores = {folder for folder in {file.parent for file in shown} if Store(folder).exists}
        return [file for file in shown if stores.isdisjoint(file.parents)]
    if path.exists():
        return [path]
    matches = (Path(match) for match in sorted(glob.glob(str(path), recursive=True)))
    return [file for match in matches for file in (_expand(match) if match.is_dir() else [match])]


def _read(path: Path, format: str | None, *, alone: bool) -> ReadResult | Diagnostic:
    """Read a file; among others a file of another kind is worth a word, named alone it is a mistake."""
    try:
        if alone or format or readers.detect(path):
            return readers.read(path, format)
    except DataError as error:
        if alone:
            raise
        return Diagnostic(str(path), str(error), "left out")
    return Diagnostic(str(path), "no reader recognises this file", "left out")


def _source(path: Path, result: ReadResult) -> dict[str, Any]:
    uses = result.uses
    return {
        "path": str(path),
        "format": result.source.format,
        "records": uses.total(),
        "records_accounted": uses.total() - uses[""],
        **totals(result.traces),
        "diagnostics": msgspec.to_builtins(result.diagnostics),
        "traces": [{"id": trace.id, **counts(trace)} for trace in result.traces],
    }


def _refused(path: Path, why: Diagnostic) -> dict[str, Any]:
    numbers = {"records": 0, "records_accounted": 0, **totals(())}
    return {"path": str(path), "format": None, **numbers, "diagnostics": [msgspec.to_builtins(why)], "traces": []}


def _sites(path: Path, trace: Trace) -> list[dict[str, Any]]:
    """The error sites of a trace whose secrets are out."""
    return [
        {
            "source": str(path),
            "trace": site.trace,
            "trace_index": trace.index,
            "step": site.step,
            "kind": site.kind,
            "verdict": site.verdict,
            "rule": site.rule,
            "evidence": {"record": site.record, "text": site.text},
        }
        for site in find_sites(trace)
    ]


def show(result: dict[str, Any]) -> Table:
    """A row per source, and the sums."""
    names = ("records", "steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
    table = Table(title=f"{len(result['sites'])} error sites, {sum(result['redactions'].values())} redactions")
    for name in ("path", "format", *names, "diagnostics"):
        table.add_column(name.replace("_", " "), justify="left" if name in ("path", "format") else "right")
    for source in result["sources"]:
        cells = [source[name] for name in names] + [len(source["diagnostics"])]
        table.add_row(source["path"], source["format"] or "not recognised", *map(str, cells))
    table.add_section()
    table.add_row("all", "", *(str(sum(source[name] for source in result["sources"])) for name in names), "")
    return table


command = verb_command(
    "ingest",
    CONFIG,
    run,
    help="Read traces into a store: what was read, what could not be, where the errors are, without secrets.",
    show=show,
    positional="paths",
    short={"-o": "store"},
)
