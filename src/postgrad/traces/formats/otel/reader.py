"""OpenTelemetry exports of LLM applications: OTLP, Tempo, Jaeger, the SDKs' own JSON, Phoenix.

One reader for two conventions, the GenAI semantic conventions (with all their former generations) and OpenInference:
tracers mix them in one file. The name of the format says which of the two a file begins with. A record is a line
of JSON lines, or a span of a document.

Log records of the conventions belong to the span that they name; Claude Code's are read as a session
(`claude_code_logs`). Not covered: OTLP in protobuf, metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postgrad.traces.formats.otel.claude_code_logs import is_session, sessions
from postgrad.traces.formats.otel.containers import RawSpan, raw_spans
from postgrad.traces.formats.otel.places import KNOWN, span_lists
from postgrad.traces.formats.otel.understand import is_openinference, is_ours, understood
from postgrad.traces.formats.spans.export import Export, alone, opening
from postgrad.traces.formats.spans.span import Span
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_LOOKED_AT = 200  # spans looked at to tell what a file is about


@dataclass(frozen=True)
class OTelGenAI:
    """Reader of spans and logs that follow the GenAI conventions."""

    format: str = "otel_genai"

    def recognises(self, head: Head) -> bool:
        """Spans of which some speak of models, tools or agents, and none is OpenInference's."""
        found = _spans(head)
        return any(is_ours(raw) for raw in found) and not any(is_openinference(raw) for raw in found)

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        return _read(path, self.format)


@dataclass(frozen=True)
class OpenInference:
    """Reader of spans that follow OpenInference: Phoenix, Arize, and what their tracers export."""

    format: str = "openinference"

    def recognises(self, head: Head) -> bool:
        """Spans of which some are OpenInference's."""
        return any(is_openinference(raw) for raw in _spans(head))

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        return _read(path, self.format)


def _spans(head: Head) -> list[RawSpan]:
    """Spans of the beginning. A row that is a span only by its attributes must not be another tool's row."""
    found: list[RawSpan] = []
    for value in opening(head, KNOWN):
        for raw in raw_spans(value, 0):
            found.append(raw)
            if len(found) >= _LOOKED_AT and any(is_ours(raw) for raw in found):
                return found
    return found


def _read(path: Path, format: str) -> ReadResult:
    export = Export(path, span_lists, KNOWN)
    raws = [
        raw
        for item in export.items()
        for raw in raw_spans(alone(export.envelope, item.place.split("."), item.value), item.number)
    ]
    logs: defaultdict[tuple[str, str], list[RawSpan]] = defaultdict(list)
    for raw in raws:
        if raw.is_log and not is_session(raw):
            logs[raw.trace, raw.id].append(raw)
    spans = [understood(raw, logs.pop((raw.trace, raw.id), ())) for raw in raws if not raw.is_log]
    spans += [_of_logs(group) for group in logs.values()] + sessions([raw for raw in raws if is_session(raw)])
    app = next((span.app for span in spans if span.app and span.kind != "other"), None)
    return export.result(format, spans, app=app, uses={raw.record: "event" for raw in raws if raw.is_log})


def _of_logs(logs: Sequence[RawSpan]) -> Span:
    """A call of which only log records were exported."""
    first = logs[0]
    whole = RawSpan(
        first.record,
        first.id,
        first.trace,
        name=first.name,
        start=first.start,
        time=first.time,
        resource=first.resource,
    )
    for log in logs:
        whole.attributes |= {key: value for key, value in log.attributes.items() if key != "event.name"}
        whole.end = max(whole.end, log.start)
    return understood(whole, logs)
