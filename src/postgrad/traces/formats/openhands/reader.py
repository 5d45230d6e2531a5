"""OpenHands event streams up to 0.x, in the three places where they lie.

- one JSON document: a list of events (the "trajectory" of the GUI), or an object with it under `trajectory`/`history`;
- a folder with a file an event (`events/0.json`, ...), or the session folder above it: read as one source;
- `output.jsonl` of an evaluation: a run a line, with its events under `history` (the oldest hold them in pairs).

Records of a document and of a folder are the events, under their own ids (their places where ids are missing or not
unique). Records of an evaluation are its lines; the record numbers in its traces are the events' ids all the same, for
that is how the format counts.

"The same session" means: the same time of the first event, the same first context and action (and instance).

Not covered: `event_cache` pages (they repeat the events), delegated agents as traces of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.formats.openhands.events import Stream, flat, is_event
from postgrad.traces.formats.shapes.plain import mapping, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, Item, JsonDocument
from postgrad.traces.sources.folder import Folder, entries_of
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Ledger

_LISTS = ("trajectory", "history")
_LARGEST = 1 << 32  # ids beyond it are no counts


@dataclass(frozen=True)
class OpenHands:
    """Reader of OpenHands event streams (up to 0.x)."""

    format: str = "openhands"

    def recognises(self, head: Head) -> bool:
        """Events of this stream, and nothing but events, in one of the three places."""
        if head.path.is_dir():
            return _is_folder(head.path)
        if any(_is_run(row) for row in head.rows):
            return True
        document = head.document
        lists = [document.get(key) for key in _LISTS] if isinstance(document, dict) else [document]
        return any(_is_stream(listed) for listed in lists)

    def read(self, path: Path) -> ReadResult:
        """Read a stream, or an evaluation's streams.

        Raises:
            DataError: it cannot be opened.
        """
        if path.is_dir():
            return self._folder(path)
        if any(_is_run(row) for row in Head(path).rows):
            return self._evaluation(path)
        document = JsonDocument(path, *(_LISTS if isinstance(Head(path).document, dict) else ("",)))
        items = _numbered(document, [item for at in ("", *_LISTS) for item in document.rows(at)])
        return self._stream(document, items, document.sha256)

    def _folder(self, path: Path) -> ReadResult:
        folder = Folder(path)
        values: list[Item] = []
        other = len(folder.files)
        for place, file in enumerate(sorted(folder.files, key=lambda file: _place(file.path))):
            if _place(file.path)[0] == 0:
                values.append(Item(place, folder.value(file, place), file.name))
            else:
                folder.entry(file, other + place)
                folder.use(other + place, "metadata", "file")
        return self._stream(folder, _numbered(folder, values), folder.sha256)

    def _stream(self, ledger: Ledger, items: list[Item], sha256: str) -> ReadResult:
        stream = Stream([(item.number, item.value) for item in items])
        _account(ledger, stream)
        if ENVELOPE in ledger.entries:
            ledger.use(ENVELOPE, "metadata", "document")
        source = Source(str(ledger.path), self.format, sha256, "openhands", stream.version)
        trace = _trace(stream, source, {})
        return ledger.result(source, [trace] if trace else [])

    def _evaluation(self, path: Path) -> ReadResult:
        lines = JsonLines(path)
        versions: list[str] = []

        def source() -> Source:
            return Source(str(path), self.format, lines.sha256, "openhands", next(iter(versions), None))

        def traces() -> Iterator[Trace]:
            index = 0
            for row in lines.rows():
                if not isinstance(row.value.get("history"), list):
                    lines.use(row.number, "unknown", "object")
                    lines.note("the row has no history of events", done="kept raw, in no step", line=row.number)
                    continue
                stream = Stream(list(_ids(flat(row.value["history"]))))
                for word in sorted({word for use, word in stream.uses.values() if use == "unknown"}):
                    lines.note(f"unknown events '{word}' in a history", done="in no step", line=row.number)
                lines.use(row.number, "trace" if stream.talk.steps else "event", "run")
                versions.extend([stream.version] if stream.version else [])
                trace = _trace(stream, source(), row.value)
                if trace is not None:
                    yield msgspec.structs.replace(trace, index=index)
                    index += 1

        return lines.stream(traces(), source)


def _is_stream(value: object) -> bool:
    """Some events, all of this stream; the oldest in pairs."""
    if not isinstance(value, list) or not value:
        return False
    events = flat(value[:50])
    return all(is_event(event) for event in events) and any(_ours(event) for event in events)


def _ours(event: object) -> bool:
    """An event with a mark of this application and no other: who it is from, or what kind of action it is."""
    value = mapping(event)
    return value.get("source") in ("agent", "user", "environment") or value.get("action") in (
        *("run", "run_ipython", "message", "finish", "read", "write", "browse", "edit"),
    )


def _is_run(row: Mapping[str, Any]) -> bool:
    history = row.get("history")
    known = {"instance_id", "test_result", "metadata", "instruction"} & row.keys()
    return bool(known) and isinstance(history, list) and _is_stream(history)


def _is_folder(path: Path) -> bool:
    """A folder of numbered files that are events, or the folder above `events`."""
    events = path / "events" if (path / "events").is_dir() else path
    first = next((file for file in entries_of(events) if file.is_file() and _place(file)[0] == 0), None)
    return first is not None and is_event(Head(first).document) and _ours(Head(first).document)


def _place(file: Path) -> tuple[int, int, str]:
    """Events by number, before everything else; pages of the cache are something else."""
    if file.suffix == ".json" and file.stem.isdecimal():
        return 0, int(file.stem), file.name
    return 1, 0, str(file)


def _ids(events: Iterable[object]) -> list[tuple[int, object]]:
    """Events under their own ids if all have one of their own, else under their places."""
    listed = list(events)
    ids = [event.get("id") if isinstance(event, dict) else None for event in listed]
    own = all(isinstance(name, int) and not isinstance(name, bool) and 0 <= name < _LARGEST for name in ids)
    if not own or len(set(ids)) < len(ids):
        return list(enumerate(listed))
    return [(name, event) for name, event in zip(ids, listed, strict=True) if isinstance(name, int)]


def _numbered(ledger: Ledger, items: list[Item]) -> list[Item]:
    """Records under the events' own ids, in the books too; pairs are taken apart, both under the pair's number."""
    if any(isinstance(item.value, list) for item in items):
        return [replace(item, value=event) for item in items for event in flat([item.value])]
    names = {item.number: name for item, (name, _) in zip(items, _ids(item.value for item in items), strict=True)}
    free = max([*names.values(), *ledger.entries, -1]) + 1
    entries = list(ledger.entries.values())
    ledger.entries.clear()
    for entry in entries:
        if entry.number != ENVELOPE:
            entry.number = names[entry.number] if entry.number in names else (free := free + 1)
        ledger.enter(entry)
    return [replace(item, number=names[item.number]) for item in items]


def _account(ledger: Ledger, stream: Stream) -> None:
    unused = {number: ("unknown", "?") for number in ledger.entries if number not in stream.uses and number != ENVELOPE}
    for number, (use, kind) in (stream.uses | unused).items():
        entry = ledger.entries[number]
        if entry.status == "ok" and not entry.used_as:
            ledger.use(number, use, kind)
            if use == "unknown":
                ledger.note("the record is no event", done="kept raw, in no step", line=number)


def _trace(stream: Stream, source: Source, run: Mapping[str, Any]) -> Trace | None:
    """The stream's trace; `run` is its row in an evaluation, if it is from one."""
    talk = stream.talk
    if not talk.steps:
        return None
    if text(run.get("error")):
        talk.event("run_error", -1, str(run["error"]))
    outcome = mapping(run.get("test_result"))
    resolved = mapping(outcome.get("report")).get("resolved", outcome.get("resolved", run.get("resolved")))
    if isinstance(resolved, bool):
        talk.judge(Feedback("outcome", float(resolved), "", "evaluation"))
    task = text(run.get("instance_id"))
    trace = talk.trace(source, task, stream.begun, *talk.beginning)
    return trace and msgspec.structs.replace(trace, task_id=task)
