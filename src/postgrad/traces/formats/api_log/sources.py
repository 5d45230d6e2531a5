"""Where the exchanges of a log stand: lines, a document's list, a cassette's interactions, or a raw event stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from postgrad.core.canonical import content_id
from postgrad.traces.formats.api_log.logged import body_text, logged
from postgrad.traces.formats.openai_chat.stream import chunks_of, is_stream
from postgrad.traces.formats.shapes.plain import mapping, mappings
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines
from postgrad.traces.sources.ledger import Entry, Ledger
from postgrad.traces.sources.raw import whole

_LISTS = (
    "log.entries",
    "interactions",
    "http_interactions",
    "data",
    "exchanges",
    "requests",
    "calls",
    "logs",
    "traces",
)
_YAML = (b"interactions:", b"version:", b"http_interactions:", b"---")


@dataclass
class Plain(Ledger):
    """The books of a source that is neither lines nor a JSON document."""

    sha256: str = ""


@dataclass
class Entries:
    """A source's books and its records, in order."""

    ledger: JsonLines | JsonDocument | Plain
    place: str | None = None

    def rows(self) -> Iterator[tuple[int, Any]]:
        """The records that may be exchanges, with their numbers."""
        ledger = self.ledger
        if isinstance(ledger, JsonLines):
            for row in ledger.rows():
                yield row.number, row.value
        elif isinstance(ledger, JsonDocument):
            if self.place is None:
                yield ENVELOPE, ledger.envelope
                return
            for item in ledger.rows(self.place):
                yield item.number, item.value
            if ENVELOPE in ledger.entries:
                ledger.use(ENVELOPE, "context", "document")
        else:
            yield from _plain(ledger)


def entries(path: Path) -> Entries:
    """The records of a source."""
    head = Head(path)
    if head.start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] not in (b"{", b"["):
        if head.start.startswith(_YAML) or is_stream(head.text):
            return Entries(Plain(path))
        return Entries(JsonLines(path))
    place = place_of(head.document)
    if place is None and head.torn and not head.rows:
        cut = JsonDocument(path, *_LISTS)
        place = next((name for name in _LISTS if next(cut.rows(name), None)), None)
    if place is None and head.rows:
        return Entries(JsonLines(path))
    return Entries(JsonDocument(path, *([] if place is None else [place])), place)


def place_of(document: object) -> str | None:
    """The list of exchanges in a document, None where the document is one itself."""
    if isinstance(document, list):
        return ""
    if not isinstance(document, dict) or logged(document) is not None:
        return None
    for place in _LISTS:
        inner: object = document
        for key in place.split("."):
            inner = mapping(inner).get(key)
        if isinstance(inner, list) and (place == "log.entries" or any(logged(item) for item in mappings(inner)[:5])):
            return place
    return None


def opening(head: Head) -> list[Any]:
    """The first records of a source, for recognising it."""
    if head.start.startswith(_YAML):
        return [value for _, value, _ in _interactions(whole(head.path))]
    document = head.document
    place = place_of(document)
    if head.rows and place is None and not isinstance(document, list):
        return list(head.rows)
    if document is not None and place is None and head.torn:
        cut = JsonDocument(head.path, *_LISTS)
        return [item.value for name in _LISTS for item in cut.rows(name)]
    if document is not None and place is not None:
        inner: Any = document
        for key in place.split(".") if place else []:
            inner = mapping(inner).get(key)
        return inner if isinstance(inner, list) else [inner]
    if document is not None:
        return [document]
    return [{"response": head.text, "method": "POST", "status": 200}] if is_stream(head.text) else []


def _plain(ledger: Plain) -> Iterator[tuple[int, Any]]:
    """A cassette's interactions, or the streams that follow each other in a raw event stream."""
    data = whole(ledger.path)
    ledger.size, ledger.sha256 = len(data), hashlib.sha256(data).hexdigest()
    if data.startswith(_YAML):
        found = list(_interactions(data))
        if not found:
            ledger.note("no cassette: the YAML holds no interactions", done="kept raw, not used")
        for number, value, digest in found:
            ledger.enter(Entry(number, -1, len(digest), digest))
            yield number, value
        return
    for number, (offset, part) in enumerate(_streams(data)):
        ledger.enter(Entry(number, offset, len(part), hashlib.sha256(part).hexdigest()))
        yield number, {"response": part.decode("utf-8", "surrogateescape"), "method": "POST", "status": 200}


def _interactions(data: bytes) -> Iterator[tuple[int, Any, str]]:
    try:
        document = yaml.load(data.decode("utf-8", "replace"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    listed = mapping(document).get("interactions") or mapping(document).get("http_interactions")
    for number, value in enumerate(mappings(listed)):
        yield number, _plain_json(value), content_id(json.dumps(value, default=repr), length=64)


def _plain_json(value: Any) -> Any:
    """YAML with bytes and times in it as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_json(item) for item in value]
    value = body_text(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _streams(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The streams in a file: a new answer's id begins a new one."""
    start, offset, current = 0, 0, None
    for line in data.split(b"\n"):
        for chunk in chunks_of(line.decode("utf-8", "surrogateescape")):
            key = chunk.get("id") or mapping(chunk.get("message")).get("id")
            if chunk.get("type") in (None, "message_start") and isinstance(key, str) and key != current:
                if current is not None:
                    yield start, data[start:offset]
                    start = offset
                current = key
        offset += len(line) + 1
    yield start, data[start:]
