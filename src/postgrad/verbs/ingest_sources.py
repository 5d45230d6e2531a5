"""What `ingest` does with one source: read, fill gaps, take secrets out, store, tell. Runs in a worker process or here.

A worker writes a segment of its own and touches nothing else; only the process that holds the store's lock writes the
journal, and until it has, nothing of the worker's is in the store.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import plain_json
from postgrad.core.errors import DataError
from postgrad.core.heap import few_collections, give_back
from postgrad.core.trace import Trace
from postgrad.signals.error_sites.site import LEARNABLE, Site
from postgrad.signals.error_sites.sites import find_sites
from postgrad.traces import readers
from postgrad.traces.contexts.fidelity import complete, fidelity_counts
from postgrad.traces.packing.set_aside import SetAside
from postgrad.traces.records import Diagnostic, ReadResult, counts, totals
from postgrad.traces.redaction.redactor import Redactor
from postgrad.traces.sources.looks import looks
from postgrad.traces.sources.raw import holding, open_raw, state
from postgrad.traces.storage.journal import StoredSource
from postgrad.traces.storage.segment import Segment
from postgrad.traces.storage.tables import LONG
from postgrad.verbs.boundary import DEBUG
from postgrad.verbs.ingest_settings import Item, Outcome, Settings

_BLOCK = 1 << 20


@few_collections()
def read_sources(settings: Settings, items: Iterable[Item], known: Mapping[str, StoredSource]) -> list[Outcome]:
    """Read sources into one new segment.

    Args:
        settings: how.
        items: which.
        known: sources that the store holds, by hash.
    """
    items, broken = list(items), dict[Path, str]()
    while True:
        try:
            with Segment(settings.store, raw=settings.raw, key=settings.key) as segment:
                batch = _Batch(settings, segment, dict(known), broken)
                outcomes = [batch.read(item) for item in items]
            give_back()  # what is told of them, and the next batch, need other memory
            return outcomes
        except _Broken as fault:  # half of the source may be in the segment, which is gone now
            broken[fault.path] = fault.told


class _Broken(Exception):
    """A source that postgrad's own code fails on: a foreign file, whatever is in it, ends no ingest of others."""

    def __init__(self, path: Path, error: Exception) -> None:
        self.path, self.told = path, f"this file meets a bug in postgrad: {readers.place_of(error)}"
        super().__init__(self.told)


@dataclass
class _Batch:
    settings: Settings
    segment: Segment
    known: dict[str, StoredSource]
    broken: Mapping[Path, str]

    def read(self, item: Item) -> Outcome:
        """What became of it.

        Raises:
            _Broken: our code failed on it; the segment is not to be kept.
        """
        if item.path in self.broken:
            return self._refused(item, self.broken[item.path])
        try:
            return self._whole(item)
        except readers.FAULTS as error:
            if os.environ.get(DEBUG):
                raise
            raise _Broken(item.path, error) from error

    def _whole(self, item: Item) -> Outcome:
        try:
            now = tuple(state(item.place))
            with holding(item.place):
                try:
                    return self._read(item, now)
                except DataError as error:
                    if "changed while it was read" not in str(error):
                        raise
                    return self._read(item, tuple(state(item.place)))  # it was being written: once more
        except DataError as error:
            return self._refused(item, str(error))

    def _read(self, item: Item, now: tuple[int | str, ...]) -> Outcome:
        if item.known and (same := self._same(_hash_of(item.place))):
            return Outcome(item.path, now, self.known[same].reading, same=same)
        failed: list[str] = []
        name = item.again.format if item.again else self.settings.format
        name = name or readers.detect(item.place, failed=failed.append)
        if name is None:
            return self._refused(item, "", now, failed)
        result = _renamed(readers.read(item.place, name), item.path, item.place)
        passed_over = tuple(Diagnostic(str(item.path), fault, "asked the other readers") for fault in failed)
        result = msgspec.structs.replace(result, diagnostics=(*passed_over, *result.diagnostics))
        reading = self.settings.stamp(name)
        if not item.again and (same := self._same(result.source.sha256)):
            return Outcome(item.path, now, reading, same=same)
        traces, result = _handed_on(result.traces), msgspec.structs.replace(result, traces=())
        report = Report(result, self.settings)
        told = report.told(traces)
        outgrown: list[str] = []
        if item.again:
            stored = self.segment.add_again(item.again, result, told, reading=reading)
        else:
            stored, outgrown = self.segment.add(result, told, reading=reading, older=item.older)
        self.known[stored.sha256] = stored
        return Outcome(item.path, now, reading, stored, tuple(outgrown), report=report.json())

    def _same(self, sha256: str) -> str:
        """The hash, if the store holds those bytes and would read and keep them just so."""
        stored = self.known.get(sha256)
        if stored is None or stored.raw != self.settings.raw or stored.reading != self.settings.stamp(stored.format):
            return ""
        return sha256

    def _refused(self, item: Item, fault: str, now: tuple[int | str, ...] = (), failed: Iterable[str] = ()) -> Outcome:
        """Only what no reader recognises is remembered: another fault may be gone the next time."""
        fault = fault or "; ".join([f"no reader recognises this file, {looks(item.place)}", *failed])
        return Outcome(item.path, now, self.settings.stamp(None), report=refusal(item.path, fault), fault=fault)


def refusal(path: Path, fault: str) -> bytes:
    """What is told about a source that was not read, as JSON."""
    told = msgspec.to_builtins(Diagnostic(str(path), fault, "left out"))
    numbers = {"records": 0, "records_accounted": 0, **totals(())}
    source: dict[str, Any] = {
        "path": str(path),
        "format": None,
        **numbers,
        "fidelity": {},
        "diagnostics": [told],
        "traces": [],
    }
    return plain_json({"source": source, "sites": [], "redactions": {}}).encode()


@dataclass
class Report:
    """What `ingest` tells about one source; made while its traces pass through on their way to the store.

    What is told of a trace or a site is kept as JSON: there can be a hundred thousand.
    """

    result: ReadResult
    settings: Settings
    _traces: bytearray = field(default_factory=bytearray)
    _sites: bytearray = field(default_factory=bytearray)
    _totals: Counter[str] = field(default_factory=Counter)
    _fidelity: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._redactor = Redactor(key=self.settings.marks or None, also=self.settings.redact)

    def told(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces as they are to be kept: completed, without secrets. Takes notes of every one, and keeps none.

        A long one that held a secret is there twice only until it is clean: nobody holds on to what came in.
        """
        return map(self._noted, map(self._clean, traces))

    def _clean(self, raw: Trace) -> Trace:
        source = self.result.source
        own = raw if raw.source.path == source.path else msgspec.structs.replace(raw, source=source)
        clean = self._redactor.redact(complete(own, self.settings.filler))
        _tidy(clean)
        return clean

    def _noted(self, trace: Trace) -> Trace:
        numbers = counts(trace)
        self._totals.update(numbers)
        fidelity = fidelity_counts([trace])
        self._fidelity.update(fidelity)
        _note(self._traces, {"id": trace.id, **numbers, "fidelity": dict(sorted(fidelity.items()))})
        for site in find_sites(trace):
            _note(self._sites, _site(self.result.source.path, trace.index, site))
        _tidy(trace)
        return trace

    def json(self) -> bytes:
        """The notes, once all traces are through."""
        uses = self.result.uses
        source = {
            "path": self.result.source.path,
            "format": self.result.source.format,
            "records": uses.total(),
            "records_accounted": uses.total() - uses[""],
            **{name: self._totals[name] for name in totals(())},
            "fidelity": dict(sorted(self._fidelity.items())),
            "diagnostics": msgspec.to_builtins((*self.result.diagnostics, *self._empty(uses))),
        }
        redactions = dict(sorted(self._redactor.counts.items()))
        parts = (
            *(b'{"source": ', plain_json(source).encode()[:-1], b', "traces": [', self._traces, b"]}"),
            *(b', "sites": [', self._sites, b'], "redactions": ', plain_json(redactions).encode(), b"}"),
        )
        return b"".join(parts)

    def _empty(self, uses: Counter[str]) -> tuple[Diagnostic, ...]:
        """A file that a reader took and that holds no step: of another format, or half of what belongs together."""
        if self._totals["steps"] or not uses.total():
            return ()
        found = ", ".join(f"{count} {name or 'unused'}" for name, count in sorted(uses.items()))
        source = self.result.source
        return (Diagnostic(source.path, f"read as {source.format}, and no step of a model is in it", f"kept: {found}"),)


def _note(told: bytearray, value: object) -> None:
    """Add to the inside of a JSON list."""
    if told:
        told += b", "
    told += plain_json(value).encode()


def _handed_on(traces: Sequence[Trace]) -> Iterator[Trace]:
    """The traces one by one; whoever gets one is the only one to hold it, so a long one can be let go of."""
    if not isinstance(traces, tuple):  # on disk
        (_give_back_all if isinstance(traces, SetAside) else give_back)()
        yield from traces
        return
    left = list(reversed(traces))
    del traces
    while left:
        yield left.pop()


def _tidy(trace: Trace) -> None:
    """Each thing that is done with a long trace needs memory of its own: it is given back before the next."""
    if len(trace.steps) >= LONG:
        _give_back_all()


def _give_back_all() -> None:
    """`give_back`, with what only a collection frees: cycles, and the free lists that hold on to pages."""
    gc.collect()
    give_back()


def _site(path: str, index: int, site: Site) -> dict[str, Any]:
    """An error site of a trace whose secrets are out; what is not known of it has no key."""
    known = {
        "call": site.call,
        "hint_step": site.step if site.verdict in LEARNABLE else None,
        "repeat_of": site.repeat_of,
        "recovery_step": site.recovery_step,
        "outcome": site.outcome,
    }
    return {
        "source": path,
        "trace": site.trace,
        "trace_index": index,
        "step": site.step,
        "kind": site.kind,
        "verdict": site.verdict,
        "rule": site.rule,
        "evidence": {"record": site.record, "text": site.text},
        **{key: value for key, value in known.items() if value is not None},
    }


def _hash_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open_raw(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _renamed(result: ReadResult, path: Path, place: Path) -> ReadResult:
    """A reading of bytes that lie at `place` for now, as one of the source `path`."""
    if path == place:
        return result
    source = msgspec.structs.replace(result.source, path=str(path))
    diagnostics = tuple(
        msgspec.structs.replace(told, file=told.file.replace(str(place), str(path))) for told in result.diagnostics
    )
    return msgspec.structs.replace(result, source=source, diagnostics=diagnostics)
