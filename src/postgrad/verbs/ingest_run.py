"""One ingest into one store: what changed, who reads it, and what is told about all of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.files import write_bytes, write_json
from postgrad.run.progress import note, track
from postgrad.traces.contexts import kept_catalogue
from postgrad.traces.storage.journal import Journal, Line, Seen, StoredSource
from postgrad.traces.storage.store import Store
from postgrad.traces.storage.vault import PASSPHRASE, RawMode
from postgrad.traces.walk import Found, walk
from postgrad.verbs.ingest_batches import read_all
from postgrad.verbs.ingest_changes import NO_REPORT, Changes, Folders, bare
from postgrad.verbs.ingest_settings import Item, Outcome, Settings


class Options(Protocol):
    """The part of the verb's configuration that says how to read and keep."""

    @property
    def format(self) -> str | None:
        """The format of every source, None to recognise it."""
        ...

    @property
    def raw(self) -> RawMode | None:
        """What to do with the sources' bytes; None: what was asked of this store before."""
        ...

    @property
    def redact(self) -> Sequence[str]:
        """What to take out beside secrets."""
        ...

    @property
    def catalogue(self) -> Path | None:
        """A file that fills gaps in contexts."""
        ...


_CAREFUL: tuple[RawMode, ...] = ("encrypt", "drop")


@dataclass
class Ingest:
    """Adds sources to `store`, or reads those in it anew."""

    store: Store
    options: Options
    _faults: dict[Path, bytes] = field(default_factory=dict)

    def ingest(self, names: list[str]) -> dict[str, Any]:
        """Read what changed under these names.

        Raises:
            DataError: a name leads nowhere, a source named alone cannot be read, somebody else writes to the store.
            OutsideFailure: the disk is full, a worker was killed.
        """
        known = self.store.journal() if self.store.exists else None
        folders = Folders(known.seen if known is not None else {})
        found = list(walk(names, folders.whole))
        for one in found:
            if one.alone and one.fault:
                raise DataError(one.fault, got=str(one.path))
        alone = {one.path for one in found if one.alone}
        with self.store.writing(known) as journal:
            if old := len(self._old(journal)):
                how = "by another version of postgrad or with other options"
                note(f"{old} of {len(journal.sources)} source(s) in the store were read {how}: reading them anew")
            changed = Changes(journal, self._settings)
            pending = [item for one in found if not one.fault and (item := changed.item(one.path)) is not None]
            for outcome in track(self._outcomes(pending, journal), "reading traces", len(pending)):
                if outcome.fault and outcome.path in alone:
                    if "; got " in outcome.fault:  # it names the file and says what to do itself
                        raise DataError(outcome.fault)
                    raise DataError(outcome.fault, got=str(outcome.path), do="see --format")
            journal.append([Line(seen=seen) for seen in folders.new])
            self._renew(journal)
            return self._told(found, journal)

    def rebuild(self) -> dict[str, Any]:
        """Read the sources in the store anew from their raw bytes, where reader or options are others now.

        Raises:
            DataError: the folder is no store, somebody else writes to it, the passphrase is wrong.
        """
        self.store.mark()
        with self.store.writing() as journal:
            old = self._old(journal)
            kept = [source for source in old if source.raw != "drop"]
            rebuilt = sum(self._read_again(source, journal) for source in track(kept, "reading anew"))
            return {
                "store": str(self.store.folder),
                "rebuilt": rebuilt,
                "up_to_date": len(journal.sources) - len(old),
                "without_raw": [source.path for source in old if source.raw == "drop"],
            }

    @cached_property
    def _settings(self) -> Settings:
        """Kinds of redaction, a catalogue and the care for raw bytes that were given once hold for the store."""
        mark, options = self.store.mark(), self.options
        kinds = sorted({*mark.get("redact", ()), *options.redact})
        raw = options.raw or mark.get("raw") or self._raw_before()
        held = {**mark, "raw": raw, **({"redact": kinds} if kinds else {})}
        if held != mark:
            write_json(self.store.folder / "store.json", held)
        if options.catalogue is not None:
            kept_catalogue.keep(options.catalogue, self.store.folder)
        key = self.store.key(new=True) if raw == "encrypt" else None
        marks = _marks(self.store.folder / "redaction.key")
        catalogue = kept_catalogue.kept(self.store.folder)
        return Settings(self.store.folder, options.format, raw, key, marks, tuple(kinds), catalogue)

    def _raw_before(self) -> RawMode:
        """The care of a store that does not say it yet: the greatest that any of its sources got."""
        found = {source.raw for source in self.store.journal().sources.values()}
        return next((mode for mode in _CAREFUL if mode in found), "keep")

    def _outcomes(self, pending: list[Item], journal: Journal) -> Iterator[Outcome]:
        """Read, batch by batch; each is in the store before the next is looked at."""
        known = {sha: bare(source) for sha, source in journal.sources.items()}
        for outcomes in read_all(self._settings, pending, known):
            _commit(outcomes, journal)
            self._faults |= {outcome.path: outcome.report for outcome in outcomes if not outcome.state}
            yield from outcomes

    def _read_again(self, source: StoredSource, journal: Journal) -> bool:
        from postgrad.traces.storage.restored import restored
        from postgrad.verbs.ingest_sources import read_sources

        with restored(self.store, source) as place:
            item = Item(Path(source.path), place, again=source)
            (outcome,) = read_sources(self._settings, [item], {})
        if outcome.stored is None:
            note(f"{source.path}: {outcome.fault}; its older reading is kept")
            return False
        journal.append([Line(source=_with_report(outcome))])
        return True

    def _old(self, journal: Journal) -> list[StoredSource]:
        return [one for one in journal.sources.values() if self._is_old(one)]

    def _is_old(self, source: StoredSource) -> bool:
        """Whether it would be read in another way now; by a reader from outside that is not here, it cannot be read."""
        try:
            return source.reading != self._settings.stamp(source.format)
        except ConfigError:
            return False

    def _renew(self, journal: Journal) -> None:
        """Read from their raw bytes what is old in the store and was not among the names."""
        old = self._old(journal)
        opened = [one for one in old if one.raw == "keep" or (one.raw == "encrypt" and self._opens)]
        for source in track(opened, "reading anew"):
            self._read_again(source, journal)
        if closed := len(old) - len(opened):
            why = "their raw bytes were dropped, or need the passphrase"
            note(f"{closed} source(s) stay as they were read: {why}; name their files to read them anew")

    @cached_property
    def _opens(self) -> bool:
        """Whether the encrypted raw layer can be read without asking anybody."""
        if self._settings.key is not None:
            return True
        if PASSPHRASE not in os.environ:
            return False
        try:
            self.store.key()
        except (ConfigError, DataError):
            return False
        return True

    def _told(self, found: Iterable[Found], journal: Journal) -> dict[str, Any]:
        reports = [self._report(one, journal) for one in found]
        redactions: Counter[str] = sum((Counter(report["redactions"]) for report in reports), Counter())
        fidelity: Counter[str] = sum((Counter(report["source"]["fidelity"]) for report in reports), Counter())
        return {
            "store": str(self.store.folder),
            "sources": [report["source"] for report in reports],
            "sites": [site for report in reports for site in report["sites"]],
            "fidelity": dict(sorted(fidelity.items())),
            "redactions": dict(sorted(redactions.items())),
        }

    def _report(self, one: Found, journal: Journal) -> dict[str, Any]:
        """What was told when the source was read; another file of the same bytes is told under its own name."""
        if one.fault:
            from postgrad.verbs.ingest_sources import refusal

            return _parsed(refusal(one.path, one.fault))
        if one.path in self._faults:
            return _parsed(self._faults[one.path])
        seen = journal.seen[str(one.path)]
        report = _parsed(journal.sources[seen.sha256].report if seen.sha256 else seen.report)
        if report["source"]["path"] != str(one.path):
            for told in (*report["source"]["diagnostics"], *report["sites"]):
                told["file" if "file" in told else "source"] = str(one.path)
            report["source"]["path"] = str(one.path)
        return report


def _commit(outcomes: list[Outcome], journal: Journal) -> None:
    """One write to the journal: from here on the batch is in the store."""
    lines = []
    added: set[str] = set()
    for outcome in outcomes:
        sha = outcome.same
        if outcome.stored is not None:
            sha = outcome.stored.sha256
            if sha in added or _is_there(outcome.stored, journal):
                lines.append(Line(stale=outcome.stored.segment))  # another process was first with the same bytes
            else:
                added.add(sha)
                lines.append(Line(source=_with_report(outcome), gone=outcome.outgrown))
        if outcome.state:
            report = NO_REPORT if sha else msgspec.Raw(outcome.report)
            lines.append(Line(seen=Seen(str(outcome.path), outcome.state, outcome.reading, sha, report)))
    if lines:
        journal.append(lines)


def _is_there(new: StoredSource, journal: Journal) -> bool:
    old = journal.sources.get(new.sha256)
    return old is not None and (old.reading, old.raw) == (new.reading, new.raw)


def _with_report(outcome: Outcome) -> StoredSource:
    assert outcome.stored is not None
    return msgspec.structs.replace(outcome.stored, report=msgspec.Raw(outcome.report))


def _marks(path: Path) -> bytes:
    """The key from which the store's marks are made: one find has one mark in all of its traces, for good.

    Whoever has it can check guesses (is this mark that address?), so it stays with the store and is nobody else's.
    """
    if not path.exists():
        write_bytes(path, os.urandom(32))
        path.chmod(0o600)
    return path.read_bytes()


def _parsed(report: bytes | msgspec.Raw) -> dict[str, Any]:
    """A report as plain data; `json` makes a text of it first, and is left what `msgspec` refuses."""
    parsed: dict[str, Any]
    try:
        parsed = msgspec.json.decode(report)
    except ValueError:
        parsed = json.loads(bytes(report))
    return parsed
