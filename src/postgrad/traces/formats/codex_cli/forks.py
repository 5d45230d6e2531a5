"""Whose rollout it is, and where its own part begins.

A fork, a resumed session of an old version and a spawned subagent begin with a copy of their parent's history, which
must not be counted again. The copy brings the parent's `session_meta` line with it. Where the child's own rows begin
is said in one of these ways, tried in this order:

    ordinal          `subagent_history_start_ordinal` beside numbered rows
    a line           the child's own `session_meta` stands behind the copy
    old times        the copied rows keep their times, which are before the child began
    a burst          the copied rows got the time of the fork: they were written within milliseconds of one another
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.traces.formats.codex_cli.rows import Row
from postgrad.traces.formats.shapes.plain import mapping, seconds, text

_BURST = 1.0  # seconds: a copy is written within 40 ms gaps, the first answer of a model takes longer


@dataclass(frozen=True)
class Origin:
    """The session's own meta data, its parent's id, and the place of its first own row."""

    meta: Mapping[str, Any]
    parent: str | None
    begins: int

    @property
    def session(self) -> str | None:
        """The session's id."""
        return text(self.meta.get("id")) or text(self.meta.get("session_id"))


def origin(rows: Sequence[Row], path: Path) -> Origin:
    """Find out; a file without a `session_meta` line is all its own."""
    places = [place for place, row in enumerate(rows) if row.type == "session_meta"]
    if not places:
        return Origin({}, None, 0)
    own = _own(rows, places, path)
    meta = rows[own].payload
    others = [rows[place].payload for place in places if _id(rows[place].payload) != _id(meta)]
    parent = _parent(meta) or next((_id(other) for other in others), None)
    if parent is None:
        return Origin(meta, None, 0)
    return Origin(meta, parent, _begin(rows, own, places, copied=bool(others)))


def _own(rows: Sequence[Row], places: Sequence[int], path: Path) -> int:
    """The place of the child's meta line: the one that the file is named for, that names a parent, or comes first.

    Without any of these a later line begins a session of its own if an answer stands before it.
    """
    named = [place for place in places if (_id(rows[place].payload) or "\0") in path.name]
    forked = [place for place in places if _parent(rows[place].payload)]
    found = named or forked
    if found:
        return found[0]
    last = places[-1]
    return last if any(row.is_model for row in rows[:last]) else places[0]


def _id(meta: Mapping[str, Any]) -> str | None:
    return text(meta.get("id")) or text(meta.get("session_id"))


def _parent(meta: Mapping[str, Any]) -> str | None:
    spawn = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    named = (meta.get("forked_from_id"), meta.get("parent_thread_id"), spawn.get("parent_thread_id"))
    return next((name for value in named if (name := text(value)) and name != _id(meta)), None)


def _begin(rows: Sequence[Row], own: int, places: Sequence[int], *, copied: bool) -> int:
    meta = rows[own].payload
    first = meta.get("subagent_history_start_ordinal")
    if isinstance(first, int) and any(row.ordinal is not None for row in rows):
        return next((place for place, row in enumerate(rows) if (row.ordinal or 0) >= first and place > own), len(rows))
    again = [place for place in places if _id(rows[place].payload) == _id(meta)][-1]
    if any(row.is_model for row in rows[:again]):
        return again
    return _after_copy(rows, own, burst=copied or text(meta.get("forked_from_id")) is not None)


def _after_copy(rows: Sequence[Row], own: int, *, burst: bool) -> int:
    start = seconds(rows[own].time)
    if start is None:
        return own
    last, old_times = start, False
    for place in range(own + 1, len(rows)):
        time = seconds(rows[place].time)
        if time is None or rows[place].type == "session_meta":
            continue
        if time < start:
            old_times = True
        elif old_times or not burst or time - last >= _BURST:
            return place
        else:
            last = time
    return len(rows) if burst and not old_times and rows[own].time else own
