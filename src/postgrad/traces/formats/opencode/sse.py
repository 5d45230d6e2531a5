"""A recorded server-sent event stream: every line is a record, `data:` lines hold the events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from postgrad.traces.sources.jsonl import Row, decode
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import STREAM_FAULTS, open_raw

_DATA = b"data:"


def events_in(start: str) -> list[dict[str, Any]]:
    """The events in the beginning of a file, for recognising it."""
    lines = (line.encode("utf-8", "surrogateescape") for line in start.split("\n") if line.startswith("data:"))
    return [value for line in lines for value in decode(line[len(_DATA) :])[0]]


class EventStream(Ledger):
    """One pass over the lines; the number of a record is the 1-based number of its line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[Row]:
        """Every event, in order. Lines that are no data (names, comments) are metadata."""
        with open_raw(self.path) as stream:
            try:
                for number, line in enumerate(stream, 1):
                    yield from self._line(number, line)
            except STREAM_FAULTS as error:
                done = f"read the {len(self.entries)} lines before it"
                self.note(f"the compressed data is broken: {error}", done=done)

    def _line(self, number: int, line: bytes) -> Iterator[Row]:
        is_data = line.startswith(_DATA)
        values, status = decode(line[len(_DATA) :]) if is_data else ([], "ok" if line.strip() else "blank")
        if status == "bad_json" and not line.endswith(b"\n"):
            status = "truncated"
        self.enter(Entry(number, self.size, len(line), hashlib.sha256(line).hexdigest(), status))
        self.size += len(line)
        self._digest.update(line)
        if not is_data and status == "ok":
            self.use(number, "metadata", "sse")
        elif status not in ("ok", "blank"):
            done = f"recovered {len(values)} object(s)" if values else "kept raw, not used"
            what = "the last line is truncated" if status == "truncated" else "the line holds no event that is JSON"
            self.note(what, done=done, line=number)
        for value in values:
            yield Row(number, value)
