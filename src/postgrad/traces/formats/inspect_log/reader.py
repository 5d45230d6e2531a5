"""Inspect evaluation logs: `.eval` (a zip archive, also one of a crashed run) and `.json`, log versions 1 to 3.

Records are the events of all samples in the order of the file, counted from 0; of a sample without events its messages.
What stands around them (the header, a sample's own fields) has records with negative numbers. An event has no place in
the packed file (offset -1), its hash is that of its JSON. Read without Inspect itself: its package pins a large part of
the Python world (decision 006), and the files need no more than JSON.

"The same sample" means: the same evaluation, sample id and epoch, so `.eval` and `.json` of one log are one. Not
covered: the buffers of a run that is still going on, which Inspect keeps in a database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.canonical import canonical_json, too_deep
from postgrad.core.errors import DataError
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.inspect_log.packed import Member, members, unpack
from postgrad.traces.formats.inspect_log.samples import Sample, records_of
from postgrad.traces.formats.shapes.plain import first, mapping, string, text
from postgrad.traces.records import ReadResult, RecordStatus
from postgrad.traces.sources.document import JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import start_of, whole

_ZIP = b"PK\x03\x04"
_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_NEWEST = 3


@dataclass(frozen=True)
class Inspect:
    """Reader of Inspect logs."""

    format: str = "inspect"

    def recognises(self, head: Head) -> bool:
        """An archive with a log's header or journal, or an object with an evaluation and its status."""
        if head.start.startswith(_ZIP):
            whole = {_HEADER, _START} & set(head.members)
            return bool(whole) or _START.encode() in head.start[:64]
        document = head.document
        if not isinstance(document, dict) or not isinstance(document.get("eval"), dict):
            return False
        named = {"task", "model"} <= document["eval"].keys()
        return named and isinstance(document.get("status"), str) and "version" in document

    def read(self, path: Path) -> ReadResult:
        """Read a log.

        Raises:
            DataError: it cannot be opened or is no log of Inspect.
        """
        log: _Log = _Archive(path) if start_of(path, len(_ZIP)) == _ZIP else _Document(path)
        spec = mapping(log.header.get("eval"))
        version = text(mapping(spec.get("packages")).get("inspect_ai"))
        source = Source(str(path), self.format, log.sha256, "inspect_ai", version)
        return log.stream(_traces(log, spec, source), lambda: source)


class _Log(Ledger):
    """A log's books. `header` is the log without its samples."""

    sha256 = ""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.header: dict[str, Any] = {}
        self._next, self._lowest = 0, -1

    def samples(self) -> Iterator[dict[str, Any]]:
        """The samples, in order."""
        raise NotImplementedError

    def around(self, value: object, kind: str, *, status: RecordStatus = "ok") -> int:
        """Enter something that is no event."""
        self._record(self._lowest, value, status)
        number, self._lowest = self._lowest, self._lowest - 1
        if status == "ok":
            self.use(number, "metadata", kind)
        return number

    def open_sample(self, sample: Mapping[str, Any]) -> int:
        """Enter a sample's events (or messages); the number of the first."""
        start = self._next
        events, messages = records_of(sample)
        for item in events or messages:
            self._record(self._next, item)
            self._next += 1
        left_out = ("events", "messages", "transcript")
        self.around({key: value for key, value in sample.items() if key not in left_out}, "sample")
        return start

    def _record(self, number: int, value: object, status: RecordStatus = "ok") -> None:
        data = value if isinstance(value, bytes) else canonical_json(value).encode("utf-8", "surrogatepass")
        self.enter(Entry(number, -1, len(data), hashlib.sha256(data).hexdigest(), status))


class _Document(_Log):
    """A `.json` log."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        document = JsonDocument(path, "samples")
        self.size, self.sha256 = document.size, document.sha256
        self.diagnostics += document.diagnostics
        self._items = list(document.rows("samples"))
        self.header = document.envelope if isinstance(document.envelope, dict) else {}
        if "eval" not in self.header:
            raise DataError("not an Inspect log", got=str(path), expected="an object with 'eval' and 'samples'")
        self.around(self.header, "header")
        for entry in document.entries.values():
            if entry.status != "ok":
                self.around(b"", "sample", status=entry.status)

    def samples(self) -> Iterator[dict[str, Any]]:
        for item in self._items:
            if isinstance(item.value, dict):
                yield item.value
            else:
                self.around(item.value, "sample")
                self.note("a sample is no JSON object", done="kept raw, in no step")


class _Archive(_Log):
    """An `.eval` log. Of a sample that was written twice (a retry) the last one counts."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = whole(path)
        self.size, self.sha256 = len(self._data), hashlib.sha256(self._data).hexdigest()
        found, torn = members(self._data)
        if torn:
            self.note(
                "the archive has no directory: it is torn", done=f"found {len(found)} members by their own headers"
            )
        self._members = {member.name: member for member in found}
        self.header = self._header()
        if not self.header and not self._samples():
            raise DataError("not an Inspect log", got=str(path), expected=f"{_HEADER} or {_START} in the archive")
        for name, member in self._members.items():
            if not name.startswith(_SAMPLES):
                self._around(name, member)

    def samples(self) -> Iterator[dict[str, Any]]:
        for name in self._samples():
            value = self._json(name)
            if isinstance(value, dict):
                yield value

    def _samples(self) -> list[str]:
        """Sample members by sample id and epoch, numbers as numbers."""
        names = [name for name in self._members if name.startswith(_SAMPLES) and name.endswith(".json")]
        return sorted(
            names,
            key=lambda name: [
                (part.isdigit(), int(part) if part.isdigit() else 0, part)
                for part in name[len(_SAMPLES) : -len(".json")].split("_epoch_")
            ],
        )

    def _header(self) -> dict[str, Any]:
        """A run that crashed has no header, but the journal's start."""
        header = self._json(_HEADER, quietly=True) if _HEADER in self._members else None
        if isinstance(header, dict):
            return header
        start = self._json(_START, quietly=True) if _START in self._members else None
        if isinstance(start, dict):
            self.note("the log has no header: its run did not end", done="read the samples that were written")
            return start
        return {}

    def _around(self, name: str, member: Member) -> None:
        data = self._data[member.start : None if member.size is None else member.start + member.size]
        self.around(data, name)

    def _json(self, name: str, *, quietly: bool = False) -> Any:
        data = unpack(self._data, self._members[name])
        try:
            value = json.loads(data.decode("utf-8", "surrogateescape"), strict=False) if data is not None else None
        except (ValueError, RecursionError):
            value = None
        if value is None or too_deep(value):
            if not quietly:
                self.around(name.encode(), name, status="truncated" if data is None else "bad_json")
                what = "cannot be unpacked" if data is None else "is no JSON"
                self.note(f"{name} {what}", done="kept raw, not used")
            return None
        return value


def _traces(log: _Log, spec: Mapping[str, Any], source: Source) -> Iterator[Trace]:
    if isinstance(log.header.get("version"), int) and log.header["version"] > _NEWEST:
        log.note(f"log version {log.header['version']} is newer than {_NEWEST}", done="read as far as it is known")
    index = 0
    evaluation = first(spec, "eval_id", "run_id")
    for sample in log.samples():
        start = log.open_sample(sample)
        name = (evaluation, string(spec.get("task")), str(sample.get("id")), sample.get("epoch"))
        task = f"{string(spec.get('task'))}/{sample.get('id')}"
        for trace in Sample(sample, log, start, source, name, task).traces(index):
            index += 1
            yield trace
