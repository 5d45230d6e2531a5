"""Traces out, in other tools' forms; what a form has no place for is counted (`exporter.Losses`), never lost silently.

To add a form, write one file with one frozen class that has `write(traces, path, losses)`, and one line here.
"""

from __future__ import annotations

_EXPORTS = "postgrad.traces.exports"
EXPORTS: dict[str, str] = {
    "openai": f"{_EXPORTS}.openai:OpenAIMessages",
    "atif": f"{_EXPORTS}.atif:ATIFExport",
    "sharegpt": f"{_EXPORTS}.sharegpt:ShareGPTExport",
    "inspect": f"{_EXPORTS}.inspect_log:InspectExport",
}
"""Form -> the class that writes it."""
