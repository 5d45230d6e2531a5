"""`postgrad ingest PATH... -o STORE`: read traces, say exactly what was read, keep them without secrets.

A path is a file, a folder (searched through), a zip archive or a glob; `--discover` looks in the places where agents
keep their sessions. Secrets are taken out of traces and evidence before they are stored or printed; the raw bytes are
kept beside them, on this machine, as they are, encrypted, or not at all (`raw`). What did not change since the last
time is not read again. Many files are read by several processes; one of them may be killed at any moment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.words import counted
from postgrad.run.config import Config
from postgrad.run.progress import note
from postgrad.traces import READERS
from postgrad.traces.storage.store import Store
from postgrad.traces.storage.vault import RawMode
from postgrad.verbs.command import verb_command
from postgrad.verbs.helping import Topic
from postgrad.verbs.ingest_run import Ingest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from postgrad.traces.discover import Place


_PART_OF_PII = frozenset({"email", "e-mail", "mail", "ip", "address", "addresse", "phone", "telephone", "card", "iban"})


class IngestConfig(Config):
    """What to read and where to keep it."""

    paths: list[str] = Field(default_factory=list)
    """Files, folders (searched through), zip archives and globs."""
    store: Path | None = None
    """The trace store to add to, made if it is not there; `store` in the run folder by default."""
    format: str | None = None
    """Read every file as this format instead of recognising it."""
    raw: RawMode | None = None
    """The bytes of the sources, secrets and all: kept in the store (readable by their owner only), kept encrypted with
    the passphrase in POSTGRAD_PASSPHRASE, or dropped. Given once, it holds for the store [keep]."""
    redact: list[Literal["pii", "names"]] = Field(default_factory=list)
    """What to take out beside secrets: `pii` (e-mail and IP addresses, telephone, card and account numbers), `names`.
    Asked for once, it holds for the store."""
    catalogue: Path | None = None
    """A file with the system prompts and tools of applications that do not write them down. Given once, it is kept
    with the store and holds for it."""
    discover: bool = False
    """Look for traces in the usual places of this machine, list them, and ask before reading."""
    yes: bool = False
    """Read what was discovered without asking."""
    rebuild: Path | None = None
    """Read the sources of this store anew from their raw bytes, where reader or options are others now."""
    verbose: bool = False
    """Show a row for every source, however many there are."""

    @field_validator("redact", mode="before")
    @classmethod
    def _known_kinds(cls, value: Any) -> Any:
        """What people call these things is told by the name that they have here."""
        kinds = [value] if isinstance(value, str) else value
        for kind in kinds if isinstance(kinds, list | tuple) else ():
            word = str(kind).lower().rstrip("s")
            if word in _PART_OF_PII:
                raise ValueError("'pii', which is e-mail and IP addresses and numbers together, or 'names'")
            if str(kind).lower().startswith("secret"):
                raise ValueError("'pii' or 'names'; secrets are always taken out")
        return kinds


CONFIG = IngestConfig


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
        from postgrad.traces import discover

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
        from postgrad.traces import readers

        readers.reader(config.format)
    folder = config.store or out / "store"
    result = Ingest(Store(folder), config).ingest(paths)
    if config.verbose:
        result["verbose"] = True
    if not any(source["format"] for source in result["sources"]):
        raise _nothing_read(paths, result["sources"])
    return result


def _nothing_read(paths: list[str], sources: Sequence[dict[str, Any]]) -> DataError:
    """What the first of the files looks like tells more than the names of all formats."""
    from postgrad.traces.sources.looks import LISTED

    first, why = sources[0]["path"], sources[0]["diagnostics"][0]["what"]
    if len(sources) == 1:
        return DataError(why, got=first, do=LISTED)
    what = f"no file here is a trace, of {counted(len(sources), 'file')}; the first, {first}: {why}"
    return DataError(what, got=", ".join(paths), do=LISTED)


def formats(words: Sequence[str]) -> tuple[list[Topic], bool]:
    """For --help: every format and what its reader says of itself."""
    from postgrad.run.outline import headline

    rows = [(name, headline(target).removeprefix("Reader of ")) for name, target in READERS.items()]
    return [Topic("Formats (each is recognised by itself; --format NAME forces one)", rows)], False


def _agreed(config: IngestConfig, places: list[Place]) -> bool:
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


def show(result: dict[str, Any]) -> RenderableType:
    """A row per source, or per folder where there are many; for a discovery a row per place."""
    from postgrad.verbs.ingest_shown import shown

    return shown(result)


command = verb_command(
    "ingest",
    CONFIG,
    run,
    help="Read traces into a store: what was read, what could not be, where the errors are, without secrets.",
    show=show,
    positional="paths",
    short={"-o": "store"},
    revisable=True,
    topics=formats,
)
