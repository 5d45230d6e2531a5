"""Which agent, or which scorer, an event of an Inspect transcript belongs to.

Newer logs name a span in every event and open spans with `span_begin`; older ones nest `step` events. A sample's own
agent is the main lane. An agent inside an agent, and a scorer that asks a model, are lanes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postgrad.traces.formats.shapes.plain import string


@dataclass(frozen=True)
class Lane:
    """A conversation of its own in a sample: "" is the main one."""

    key: str = ""
    agent: str | None = None


@dataclass(frozen=True)
class _Span:
    kind: str
    name: str
    parent: str


class Lanes:
    """Follows the events in order."""

    def __init__(self) -> None:
        self._spans: dict[str, _Span] = {}
        self._open: list[tuple[str, str]] = []

    def follow(self, event: Mapping[str, Any]) -> None:
        """Take note of an event that opens or closes something."""
        kind = event.get("event")
        if kind == "span_begin":
            span = _Span(string(event.get("type")), string(event.get("name")), string(event.get("parent_id")))
            self._spans[string(event.get("id"))] = span
        elif kind == "step" and event.get("action") == "begin":
            self._open.append((string(event.get("type")), string(event.get("name"))))
        elif kind == "step" and self._open:
            self._open.pop()

    def of(self, event: Mapping[str, Any]) -> Lane:
        """The lane that an event belongs to."""
        found = Lane()
        key = string(event.get("span_id"))
        agents: list[str] = []
        seen: set[str] = set()
        while key in self._spans and key not in seen:
            seen.add(key)
            span = self._spans[key]
            if span.kind == "scorer":
                return Lane(key, span.name)
            if span.kind == "agent":
                agents.append(key)
            key = span.parent
        if len(agents) > 1:  # the outermost is the sample's own
            return Lane(agents[0], self._spans[agents[0]].name)
        if agents:
            found = Lane("", self._spans[agents[0]].name)
        scorer = next((name for kind, name in self._open if kind == "scorer"), None)
        return Lane(f"scorer {scorer}", scorer) if scorer is not None else found
