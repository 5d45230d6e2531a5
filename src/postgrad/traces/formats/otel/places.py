"""Where the spans of a document stand, so that every span is a record of its own."""

from __future__ import annotations

from postgrad.traces.formats.otel.containers import RESOURCES, SCOPES
from postgrad.traces.formats.shapes.plain import mappings

_LEAVES = ("spans", "logRecords", "log_records")
KNOWN = (
    *(f"{key}.*.{scope}.*.spans" for key in ("resourceSpans", "batches") for scope in SCOPES),
    *(f"resourceLogs.*.{scope}.*.logRecords" for scope in SCOPES),
    *("data.*.spans", "trace.resourceSpans.*.scopeSpans.*.spans", "spans"),
)
"""Where spans stand in a document that is cut, of which the lists at the top are not whole."""


def span_lists(value: object) -> list[str]:
    """The places of the lists of spans and log records in a document, as `JsonDocument` wants them."""
    if isinstance(value, list):
        sample = next((item for item in value if isinstance(item, dict)), {})
        return [f"*.{place}" for place in span_lists(sample)] or [""]
    if not isinstance(value, dict):
        return []
    found = []
    for key in (*RESOURCES, "spans", "data", "trace", "result"):
        inner: object = value.get(key)
        if isinstance(inner, dict):
            found += [f"{key}.{place}" for place in span_lists(inner)]
        elif isinstance(inner, list) and key in RESOURCES:
            names = {name for item in mappings(inner) for name in SCOPES if name in item}
            found += [f"{key}.*.{name}.*.{leaf}" for name in sorted(names) for leaf in _LEAVES]
        elif isinstance(inner, list):
            holds = any(isinstance(item.get("spans"), list) for item in mappings(inner))
            found.append(f"{key}.*.spans" if holds else key)
    return found
