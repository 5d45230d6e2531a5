"""Logs of requests and responses: JSON lines, documents, HAR files, cassettes, and raw event streams.

A record is one exchange: a line, an item of a document's list, an interaction of a cassette, a stream. Its envelope is
`logged`'s matter, its API is `protocols`', and which exchanges make one conversation is `openai_chat.conversations`'.
Requests and responses of batch files are joined by `custom_id`, also over the files of one folder.

Not covered: WebSocket sessions, claude-tap's bundles of blob references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from postgrad.core.canonical import struct_id
from postgrad.core.trace import Source
from postgrad.traces.formats.api_log.logged import Logged, is_chunk, logged
from postgrad.traces.formats.api_log.protocols import History, Protocol, exchange, protocol_of
from postgrad.traces.formats.api_log.sources import Entries, entries, opening
from postgrad.traces.formats.openai_chat.conversations import Conversations
from postgrad.traces.formats.shapes.plain import mapping
from postgrad.traces.packing.spool import Index
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import head as first_rows

_SIBLINGS = 64 << 20  # bytes of a file beside a batch output in which its requests are looked for


def first_protocol(head: Head) -> str | None:
    """What the first exchange in a source is: an API, "http" where HTTP was recorded, "litellm", or None."""
    if head.path.is_dir():
        return None
    failed = None
    for value in opening(head):
        if is_chunk(value):
            return "chat"
        log = logged(value)
        if log is None or not (log.response or log.error or log.custom_id):
            continue
        protocol = protocol_of(log)
        if protocol is None:
            continue
        kind = "http" if log.transport else "litellm" if "call_type" in log.whole else protocol
        if not (log.error or mapping(log.response).get("error")):
            return kind
        failed = failed or kind  # what failed tells its API less surely than an answer behind it
    return failed


class LogReader:
    """A reader of logs whose first exchange is one of `kinds`, as `first_protocol` names them."""

    format: str
    kinds: ClassVar[tuple[str, ...]]

    def recognises(self, head: Head) -> bool:
        """Whether the first exchange is of this reader's kinds."""
        return first_protocol(head) in self.kinds

    def read(self, path: Path) -> ReadResult:
        """Read a log.

        Raises:
            DataError: it cannot be opened.
        """
        return read_log(path, self.format)


@dataclass(frozen=True)
class OpenAIResponses(LogReader):
    """Reader of logs of OpenAI's Responses API: a request with `input` and its response with `output`."""

    format: str = "openai_responses"
    kinds: ClassVar[tuple[str, ...]] = ("responses",)


@dataclass(frozen=True)
class AnthropicMessages(LogReader):
    """Reader of logs of Anthropic's Messages API: a request with messages and a response of the type "message"."""

    format: str = "anthropic_messages"
    kinds: ClassVar[tuple[str, ...]] = ("anthropic",)


@dataclass(frozen=True)
class HTTPLog(LogReader):
    """Reader of recorded HTTP traffic with model APIs: HAR, VCR cassettes, claude-tap, claude-trace, mock servers.

    Gemini's and Ollama's pairs of request and response are read here too.
    """

    format: str = "http_log"
    kinds: ClassVar[tuple[str, ...]] = ("http", "gemini", "ollama")


@dataclass(frozen=True)
class LiteLLM(LogReader):
    """Reader of LiteLLM's standard logging payloads and of its table of spend logs."""

    format: str = "litellm"
    kinds: ClassVar[tuple[str, ...]] = ("litellm",)


def read_log(path: Path, format: str) -> ReadResult:
    """Read a log of requests and responses, whatever it is kept in.

    Raises:
        DataError: it cannot be opened.
    """
    source = entries(path)
    reading = _Reading(source, Conversations(), _Batches(path))
    for number, value in source.rows():
        reading.take(number, value)
    reading.finish()
    app = "postgrad" if reading.conversations.named else None
    about = Source(str(path), format, source.ledger.sha256, app)
    return source.ledger.stream(reading.conversations.traces(about), lambda: about)


class _Reading:
    """One pass over a log."""

    def __init__(self, source: Entries, conversations: Conversations, batches: _Batches) -> None:
        self.conversations = conversations
        self._ledger, self._batches = source.ledger, batches
        self._seen = Index()
        self._history = History()
        self._chunks: dict[str, tuple[list[int], list[Any]]] = {}

    def take(self, number: int, value: Any) -> None:
        """Take in a record."""
        ledger = self._ledger
        if is_chunk(value):
            numbers, chunks = self._chunks.setdefault(str(value.get("id")), ([], []))
            numbers.append(number)
            chunks.append(value)
            ledger.use(number, "step", "chunk")
            return
        key = (struct_id(value, length=32),)
        log = logged(value)
        if log is not None and protocol_of(log) is None and not log.custom_id:
            ledger.use(number, "ignored", "request")
        elif log is None:
            kind = "unknown" if number >= 0 else "context"
            ledger.use(number, kind, "object")
            if number >= 0:
                ledger.note("the record is no request with a response", done="kept raw, in no step", line=number)
        elif self._seen.get(key) is not None:
            ledger.use(number, "duplicate", "exchange")
        elif log.custom_id and log.request is not None and log.response is None and not log.error:
            self._batches.asked(log)
            ledger.use(number, "context", "request")
        else:
            self._place(number, self._batches.joined(log) if log.custom_id else log)
        self._seen.put(key)

    def _place(self, number: int, log: Logged) -> None:
        protocol: Protocol | None = protocol_of(log)
        found = exchange(number, log, protocol, self._history) if protocol is not None else None
        if found is None:
            self._ledger.use(number, "ignored", "request")
            return
        self._ledger.use(number, self.conversations.place(found), "exchange")
        if found.cut:
            self._ledger.note("the answer was cut: no finish reason", done="used as far as it goes", line=number)

    def finish(self) -> None:
        """Chunks without a request are answers of which the context is not known."""
        for numbers, chunks in self._chunks.values():
            self._place(numbers[0], Logged(None, chunks))


class _Batches:
    """Requests of batch files by `custom_id`: those of this file, and of the files beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._requests: dict[str, Logged] = {}
        self._looked = False

    def asked(self, log: Logged) -> None:
        """Remember a request."""
        self._requests[log.custom_id] = log

    def joined(self, log: Logged) -> Logged:
        """A response with its request, where that is known."""
        if log.custom_id not in self._requests and not self._looked:
            self._looked = True
            for other in self._beside():
                self._requests.setdefault(other.custom_id, other)
        asked = self._requests.get(log.custom_id)
        return replace(log, request=asked.request, path=asked.path) if asked is not None else log

    def _beside(self) -> Iterator[Logged]:
        if not self._path.is_file():
            return
        for path in sorted(self._path.parent.glob("*.jsonl")):
            if path != self._path and path.stat().st_size <= _SIBLINGS:
                for row in first_rows(path, rows=1 << 20, limit=_SIBLINGS):
                    log = logged(row) if "custom_id" in row else None
                    if log is not None and log.request is not None and log.response is None:
                        yield log
