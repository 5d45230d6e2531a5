"""`postgrad ingest PATH... -o STORE`: read traces, say exactly what was read, keep them without secrets.

A path is a file, a folder (searched through), a zip archive or a glob; `--discover` looks in the places where agents
keep their sessions. Secrets are taken out of traces and evidence before they are stored or printed; the raw bytes are
kept beside them, on this machine, as they are, encrypted, or not at all (`raw`). What did not change since the last
time is not read again. Many files are read by several processes; one of them may be killed at any moment.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from rich.table import Table

from postgrad.core.errors import ConfigError, DataError
from postgrad.run.config import Config
from postgrad.run.progress import note
from postgrad.traces import READERS, discover, readers
from postgrad.traces.store import Store
from postgrad.traces.vault import RawMode
from postgrad.verbs.command import verb_command
from postgrad.verbs.ingest_run import Ingest


class IngestConfig(Config):
    """What to read and where to keep it."""

    paths: list[str] = Field(default_factory=list)
    """Files, folders (searched through), zip archives and globs."""
    store: Path | None = None
    """The trace store to add to, made if it is not there; `store` in the run folder by default."""
    format: str | None = None
    """Read every file as this format instead of recognising it."""
    raw: RawMode = "keep"
    """The bytes of the sources, secrets and all: kept in the store (readable by their owner only), kept encrypted with
    the passphrase in POSTGRAD_PASSPHRASE, or dropped."""
    redact: list[Literal["pii", "names"]] = Field(default_factory=list)
    """What to take out beside secrets: `pii` (e-mail and IP addresses, telephone, card and account numbers), `names`.
    Asked for once, it holds for the store."""
    catalogue: Path | None = None
    """A file with the system prompts and tools of applications that do not write them down."""
    discover: bool = False
    """Look for traces in the usual places of this machine, list them, and ask before reading."""
    yes: bool = False
    """Read what was discovered without asking."""
    rebuild: Path | None = None
    """Read the sources of this store anew from their raw bytes, where reader or options are others now."""


CONFIG = IngestConfig

_COLUMNS = {
    **{"records": "records", "steps": "steps", "tool_calls": "calls", "tool_results": "results"},
    **{"calls_without_result": "open", "flagged_errors": "errors"},
}
"""What is shown of a source -> the column's name; short, for ten columns share a terminal."""


def run(config: IngestConfig, out: Path) -> dict[str, Any]:
    """Read every path and add it to the store.

    Raises:
        DataError: a path is missing or unreadable, a file named alone is of no known format, nothing is a trace,
            somebody else writes to the store, the passphrase is wrong.
        ConfigError: no path, an unknown format, options that contradict each other.
        MissingDependency: an option needs a library that is not installed.
    """
    if config.rebuild is not None:
        if config.paths or config.discover or config.store is not None:
            raise ConfigError("--rebuild reads a store, not files", do="leave paths, --discover and --store out")
        return Ingest(Store(config.rebuild), config).rebuild()
    paths = config.paths
    if config.discover:
        if paths:
            raise ConfigError("--discover looks for paths itself", got=", ".join(paths), do="leave the paths out")
        places = discover.find_places()
        if not _agreed(config, places):
            return {"discovered": [place.shown() for place in places], "read": False}
        paths = [str(place.path) for place in places]
    if not paths:
        raise ConfigError(
            "nothing to ingest", expected="at least one file, folder or glob", do="or run it with --discover"
        )
    if "" in paths:
        raise ConfigError("an empty name is no path", expected="a file, folder or glob", do="for this folder say .")
    if config.format is not None:
        readers.reader(config.format)
    folder = config.store or out / "store"
    result = Ingest(Store(folder), config).ingest(paths)
    if not any(source["format"] for source in result["sources"]):
        raise DataError("no file here is a trace", got=", ".join(paths), expected=", ".join(READERS))
    return result


def _agreed(config: IngestConfig, places: list[discover.Place]) -> bool:
    """Whether what was found may be read; without an answer it may not."""
    for place in places:
        note(f"{place.app}: {place.files} file(s), {place.size / 1e6:.1f} MB in {place.path}")
    if not places:
        note("no traces in the usual places")
        return False
    if config.yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note("nothing was read: say --yes to read them")
        return False
    print("Read them all? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def show(result: dict[str, Any]) -> Table:
    """A row per source, and the sums; for a discovery a row per place."""
    if "discovered" in result:
        return _shown_places(result)
    if "rebuilt" in result:
        table = Table("rebuilt", "up to date", "without raw bytes")
        table.add_row(*(str(result[name]) for name in ("rebuilt", "up_to_date")), str(len(result["without_raw"])))
        return table
    title = f"{len(result['sites'])} error sites, {sum(result['redactions'].values())} redactions"
    table = Table(title=title, caption=_brief(result))
    sites = Counter(site["source"] for site in result["sites"])
    for name in ("path", "format", *_COLUMNS.values(), "sites", "notes"):
        table.add_column(name, justify="left" if name in ("path", "format") else "right", overflow="fold")
    for source in result["sources"]:
        cells = [source[name] for name in _COLUMNS] + [sites[source["path"]], len(source["diagnostics"])]
        table.add_row(source["path"], source["format"] or "not recognised", *map(str, cells))
    table.add_section()
    sums = [str(sum(source[name] for source in result["sources"])) for name in _COLUMNS]
    table.add_row("all", "", *sums, str(sites.total()), "")
    return table


def _brief(result: dict[str, Any]) -> str:
    """How well the contexts are known, and what the error sites came to: verdicts, and the rules that found them."""
    verdicts = Counter(site["verdict"] for site in result["sites"])
    rules = Counter(site["rule"] for site in result["sites"])
    rows = {
        "contexts": list(result["fidelity"].items()),
        "verdicts": verdicts.most_common(),
        "rules": rules.most_common(),
    }
    told = (
        f"{name}: {', '.join(f'{count} {word}' for word, count in counts)}" for name, counts in rows.items() if counts
    )
    return "\n".join(told)


def _shown_places(result: dict[str, Any]) -> Table:
    table = Table(title="read" if result["read"] else "found, not read")
    for name in ("application", "path", "files", "MB"):
        table.add_column(name, justify="left" if name in ("application", "path") else "right")
    for place in result["discovered"]:
        table.add_row(place["app"], place["path"], str(place["files"]), f"{place['bytes'] / 1e6:.1f}")
    return table


command = verb_command(
    "ingest",
    CONFIG,
    run,
    help="Read traces into a store: what was read, what could not be, where the errors are, without secrets.",
    show=show,
    positional="paths",
    short={"-o": "store"},
    revisable=True,
)
