"""The edit that the user made of an edit: the changes that stand in the result, put into the call's own arguments.

Agents tell the model what the user changed before accepting a call, as a unified diff against what was proposed. Each
hunk is looked up in the call's texts by its lines, never by its line numbers, and must stand in one place of one
argument; a diff that does not fit gives nothing. Not covered: changes told in words, and whole new texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from postgrad.core.canonical import canonical_json
from postgrad.core.message import ToolCall

_HEADER = re.compile(r"^(--- |\+\+\+ |diff |index |Index: |=+$|\\ No newline)")
_HUNK = re.compile(r"^@@.*@@.*$|^@@\s*$")


def edited_call(call: ToolCall, diff: str) -> ToolCall | None:
    """`call` with the user's changes in it, None where `diff` is no diff or does not fit."""
    arguments = call.arguments
    hunks = list(_hunks(diff))
    if arguments is None or not hunks:
        return None
    edited: dict[str, Any] = dict(arguments)
    for before, after in hunks:
        places = [key for key, value in edited.items() if isinstance(value, str) and _lines_in(value, before) == 1]
        if len(places) != 1 or not before:
            return None
        edited[places[0]] = _replaced(edited[places[0]], before, after)
    if edited == arguments:
        return None
    return ToolCall(call.id, call.name, canonical_json(edited), edited, None, call.provider_id)


def _hunks(diff: str) -> Iterator[tuple[list[str], list[str]]]:
    """Lines before and after, hunk by hunk. Text before the first hunk, and what follows the diff, is not read."""
    before: list[str] = []
    after: list[str] = []
    inside = changed = False
    for line in diff.splitlines():
        if _HUNK.match(line):
            if changed:
                yield before, after
            before, after, inside, changed = [], [], True, False
        elif inside and _HEADER.match(line):
            inside = inside and not line.startswith(("--- ", "diff ", "Index: "))
        elif inside and line[:1] in (" ", "+", "-", ""):
            changed = changed or line[:1] in ("+", "-")
            before += [line[1:]] if line[:1] != "+" else []
            after += [line[1:]] if line[:1] != "-" else []
        else:
            inside = False
    if changed:
        yield before, after


def _lines_in(text: str, lines: list[str]) -> int:
    rows = text.split("\n")
    return sum(rows[at : at + len(lines)] == lines for at in range(len(rows) - len(lines) + 1))


def _replaced(text: str, before: list[str], after: list[str]) -> str:
    rows = text.split("\n")
    at = next(at for at in range(len(rows)) if rows[at : at + len(before)] == before)
    return "\n".join([*rows[:at], *after, *rows[at + len(before) :]])
