"""What happened in a session beside the answers: stops, words of the user, compactions, hooks, modes, cut outputs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from postgrad.core.trace import Event
from postgrad.traces.formats.claude_code.rows import Row
from postgrad.traces.formats.claude_code.steps import History

_KEPT_ELSEWHERE = re.compile(r"[^\s<>]*tool-results/[^\s<>]+")
_CUT = ("<persisted-output>", "Output too large", "Error: result (")
_HEAD = 600  # characters of a result in which the application says where it kept the whole
_KINDS = {
    "attachment:hook_blocking_error": "hook",
    "attachment:edited_text_file": "user_edit",
    "attachment:plan_mode": "mode_change",
    "attachment:plan_mode_exit": "mode_change",
    "attachment:plan_mode_reentry": "mode_change",
    "attachment:auto_mode": "mode_change",
    "attachment:auto_mode_exit": "mode_change",
    "permission-mode": "mode_change",
    "mode": "mode_change",
    "system:stop_hook_summary": "hook",
    "system:api_error": "api_error",
    "system:compact_boundary": "compaction",
    "system:microcompact_boundary": "compaction",
    "system:local_command": "local_command",
    "system:scheduled_task_fire": "scheduled_task",
}


def events(rows: Iterable[Row], history: History) -> tuple[Event, ...]:
    """The events of one history, each before the step that followed."""
    firsts = sorted(history.firsts)
    return tuple(
        Event(kind, bisect_left(firsts, row.number), row.number, text, data)
        for row in rows
        if not (row.role == "step" and not row.flags and row.spawned is None)  # an answer is no event
        for kind, text, data in _events(row, history)
    )


def _events(row: Row, history: History) -> list[tuple[str, str, dict[str, Any]]]:
    """What happened at a row. Meta rows (texts of the application, hidden from the user) are no user text."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    if row.interrupt:
        found.append(("interrupt", row.text, {}))
    elif row.type == "user" and row.blocks and not row.flags and not row.results:
        found.append(("user_text", row.text, {}))
    if row.spawned:
        found.append(("spawn", row.text, {"agent": row.spawned, "call": history.call_of(row)}))
    for result in row.results:
        head = result.text[:_HEAD]
        if head.lstrip().startswith(_CUT) and (kept := _KEPT_ELSEWHERE.search(head)):
            found.append(("cut_output", kept[0], {"call": history.call_of(row)}))
    if "isApiErrorMessage" in row.flags:
        found.append(("api_error", row.text, {}))
    elif row.type == "attachment" and row.blocks:
        found.append(("user_text", row.text, {}))
    elif row.kind in _KINDS:
        after = {"after": row.logical_parent} if "boundary" in row.kind else {}
        found.append((_KINDS[row.kind], row.text, after))
    elif row.role == "event":
        found.append((row.type.replace("-", "_"), row.text, {}))
    return found
