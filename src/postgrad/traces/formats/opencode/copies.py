"""Messages that a forked session took over from its parent: they are context of the fork and no steps of its own.

A fork copies the beginning of a session under new ids. A copy has the content and the time of its original; where the
source names the parent, equal content is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from postgrad.core.canonical import content_id
from postgrad.traces.formats.opencode.sessions import Session, Told

_OWN = frozenset({"id", "sessionID", "messageID"})


def copies(sessions: Iterable[Session]) -> dict[str, tuple[str, frozenset[str]]]:
    """Session id -> the session that it was forked from, and the ids of the messages that it took over."""
    before: list[tuple[Session, list[list[Any]]]] = []
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for session in sessions:
        ordered = session.ordered()
        mine = [_signature(told) for told in ordered]
        lengths = [(_common(theirs, mine, timed=other.id != session.parent), other.id) for other, theirs in before]
        length, parent = max(lengths, default=(0, ""), key=lambda entry: entry[0])
        if any(told.role == "assistant" for told in ordered[:length]):
            found[session.id] = (parent, frozenset(told.id for told in ordered[:length]))
        before.append((session, mine))
    return found


def _signature(told: Told) -> list[Any]:
    parts = [{name: value for name, value in part.value.items() if name not in _OWN} for part in told.parts.values()]
    return [told.created, content_id([told.role, parts])]


def _common(theirs: Sequence[list[Any]], mine: Sequence[list[Any]], *, timed: bool) -> int:
    """How many messages at the beginning are the same."""
    length = 0
    for one, other in zip(theirs, mine, strict=False):
        if one[1] != other[1] or (timed and (one[0] is None or one[0] != other[0])):
            break
        length += 1
    return length
