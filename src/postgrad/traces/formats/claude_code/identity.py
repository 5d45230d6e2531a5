"""Which session a history is, and which session a subagent's own file belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.traces.formats.claude_code.rows import Row, parse_row
from postgrad.traces.sources import jsonl

_NAME = re.compile(r"[\w-]+")
_ROWS, _BYTES = 4000, 16 << 20  # of a session's beginning: its first message may stand behind many rows for the screen


def trace_id(format: str, rows: Sequence[Row]) -> str:
    """The id of a history: the same first message and the same agent are the same history."""
    first = next((row for row in rows if row.role in ("user", "step")), rows[0])
    return content_id([format, first.agent if first.sidechain else None, first.uuid])


def parent_of(path: Path, rows: Sequence[Row]) -> str | None:
    """The trace id of the session whose subagent has this file of its own, None if its file is not there.

    The file is `<session>/subagents/agent-<id>.jsonl` beside `<session>.jsonl`; older versions put both in one folder.
    """
    session = next((row.session for row in rows if row.session), None)
    if session is None or not _NAME.fullmatch(session) or not any(row.sidechain for row in rows):
        return None
    places = [path.parent / f"{session}.jsonl"]
    if path.parent.name == "subagents":
        folder = path.parent.parent
        places += [folder.parent / f"{session}.jsonl", folder.parent / f"{folder.name}.jsonl"]
    return next((found for place in places if place != path and (found := _main(place))), None)


def _main(path: Path) -> str | None:
    try:
        values = jsonl.head(path, rows=_ROWS, limit=_BYTES)
    except DataError:
        return None
    rows = [parse_row(number, value) for number, value in enumerate(values, 1)]
    main = [row for row in rows if not row.sidechain and row.role in ("user", "step")]
    return trace_id("claude_code", main) if main else None
