"""The answer of a function, in the form of the Gemini API, as text."""

from __future__ import annotations

from postgrad.traces.formats.shapes.plain import written


def response_text(response: object) -> str:
    """The output or the error itself where the response holds nothing else, else the response as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        said = response.get("output", response.get("error"))
        return said if isinstance(said, str) else written(response)
    return written(response)
