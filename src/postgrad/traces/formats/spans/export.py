"""`Export`: a file of spans while it is read: JSON lines, a document with lists of them, or one span.

    export = Export(path, places, known)     # `places` says where a document's lists of spans are
    for item in export.items(): ...          # Item(number, value, key, place)
    return export.result(format, spans)      # traces, and every record with its use

Some SDKs print one indented object after the other (`sources.Concatenated`), some tools export a table
(`sources.Table`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from postgrad.core.trace import Source
from postgrad.traces.formats.spans.assemble import assemble
from postgrad.traces.formats.spans.sources import Concatenated, Table
from postgrad.traces.formats.spans.span import Span
from postgrad.traces.records import ReadResult, RecordStatus
from postgrad.traces.sources import jsonl
from postgrad.traces.sources.document import ENVELOPE, Item, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_SHOWN = 200  # records of a cut document
Decoding = Callable[[bytes], tuple[list[dict[str, Any]], RecordStatus]]


class Export:
    """The books of an export, and its records.

    Args:
        path: the source.
        places: the lists of spans in a document, as `JsonDocument` wants them; none where it is one record itself.
        known: all places where such a document can have them, for one that is cut.
        decoding: how a line is read, where it is no plain object.
        table: whether a source that is no JSON is a table (CSV).
    """

    def __init__(
        self,
        path: Path,
        places: Callable[[object], list[str]],
        known: Sequence[str],
        *,
        decoding: Decoding = jsonl.decode,
        table: bool = False,
    ) -> None:
        head = Head(path)
        own = places(head.document)
        self._places = list(dict.fromkeys([*own, *known])) if head.document is not None and head.torn else own
        self._numbers: list[int] = []
        self.ledger: JsonLines | JsonDocument | Concatenated | Table
        if table and head.start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] not in (b"{", b"["):
            self.ledger = Table(path)
        elif self._places:
            self.ledger = JsonDocument(path, *self._places)
        elif head.rows or head.document is None or decoding is not jsonl.decode:
            self.ledger = JsonLines(path, decoding=decoding)
        else:
            self.ledger = Concatenated(path)

    @property
    def envelope(self) -> Any:
        """What a document holds beside its lists."""
        return self.ledger.envelope if isinstance(self.ledger, JsonDocument) else None

    def items(self) -> Iterator[Item]:
        """Every record, in order."""
        for item in self._items():
            self._numbers.append(item.number)
            yield item

    def _items(self) -> Iterator[Item]:
        if isinstance(self.ledger, JsonLines):
            yield from (Item(row.number, row.value) for row in self.ledger.rows())
        elif isinstance(self.ledger, JsonDocument):
            for place in self._places:
                yield from self.ledger.rows(place)
        else:
            yield from self.ledger.items()

    def result(
        self,
        format: str,
        spans: Iterable[Span],
        *,
        app: str | None = None,
        uses: Mapping[int, str] | None = None,
    ) -> ReadResult:
        """The finished reading. `uses` are records that are no span: what they were used as; the rest is ignored."""
        source = Source(str(self.ledger.path), format, self.ledger.sha256, app)
        traces = assemble(list(spans), source, self.ledger)
        for number in self._numbers:
            self.ledger.use(number, (uses or {}).get(number, "ignored"), "object")
        if isinstance(self.ledger, JsonDocument) and ENVELOPE in self.ledger.entries:
            self.ledger.use(ENVELOPE, "context", "document")
        return self.ledger.result(source, traces)


def lists_among(known: Sequence[str]) -> Callable[[object], list[str]]:
    """`places` for an export whose lists stand at fixed places, dotted paths; a document that is a list is its own."""

    def held(document: object) -> list[str]:
        if isinstance(document, list):
            return [""]
        return [place for place in known if isinstance(_inside(document, place), list)]

    return held


def _inside(value: object, place: str) -> object:
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def opening(head: Head, known: Sequence[str]) -> list[Any]:
    """The first values of a source, for recognising it: rows, the items of a list, or the document.

    Of a document that is cut the records at `known` places are shown one by one, each in what stands around it.
    """
    document = head.document
    if isinstance(document, list):
        return [*head.rows, *document]
    if head.rows or not head.torn:
        return [*head.rows, document]
    cut = JsonDocument(head.path, *known)
    shown = [alone(cut.envelope, item.place.split("."), item.value) for place in known for item in cut.rows(place)]
    return [document, *shown[:_SHOWN]]


def alone(envelope: object, keys: Sequence[str], item: object) -> object:
    """A document with one record only: its list holds nothing else, and what is around the list is kept."""
    if not keys or keys == [""]:
        return item
    key, rest = keys[0], keys[1:]
    if key.isdigit():
        inner = envelope[int(key)] if isinstance(envelope, list) and int(key) < len(envelope) else None
        return [alone(inner, rest, item)]
    around = envelope if isinstance(envelope, dict) else {}
    kept = {name: value for name, value in around.items() if not isinstance(value, list) or not value}
    return {**kept, key: alone(around.get(key), rest, item) if rest else [item]}
