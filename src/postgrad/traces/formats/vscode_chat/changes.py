"""A document that is kept as a log of changes: one line sets it, the others change it at a path.

    {"kind": 0, "v": {...}}                         the whole document
    {"kind": 1, "k": ["requests", 0, "vote"], "v"}  set
    {"kind": 2, "k": ["requests"], "v": [...], "i"} push; `i` first cuts the list to that length
    {"kind": 3, "k": [...]}                         delete

A change whose path leads nowhere changes nothing and is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.traces.sources.jsonl import JsonLines, Row

WHOLE, SET, PUSH, DELETE = 0, 1, 2, 3
_NAMES = {WHOLE: "initial", SET: "set", PUSH: "push", DELETE: "delete"}


def is_change(row: Mapping[str, Any]) -> bool:
    """Whether a row is a change of this log."""
    kind = row.get("kind")
    if not isinstance(kind, int) or isinstance(kind, bool) or kind not in _NAMES:
        return False
    return isinstance(row.get("v"), dict) if kind == WHOLE else isinstance(row.get("k"), list)


def replay(lines: JsonLines) -> tuple[dict[str, Any], dict[int, int]]:
    """The document at the end of the log; and for every request the line that last wrote to it."""
    document: dict[str, Any] = {}
    written: dict[int, int] = {}
    for row in lines.rows():
        if not is_change(row.value):
            lines.use(row.number, "unknown", "object")
            lines.note("the row is no change of a document", done="kept raw, not used", line=row.number)
            continue
        lines.use(row.number, "update", _NAMES[row.value["kind"]])
        if row.value["kind"] == WHOLE:
            document = row.value["v"]
            written = dict.fromkeys(range(len(_requests(document))), row.number)
        elif not _apply(document, row.value):
            lines.note("the change leads to no place in the document", done="not applied", line=row.number)
        else:
            _mark(document, row, written)
    return document, written


def _apply(document: dict[str, Any], change: Mapping[str, Any]) -> bool:
    path: Sequence[Any] = change["k"]
    if not path:
        return False
    holder: Any = document
    for key in path[:-1]:
        holder = _at(holder, key)
    last = path[-1]
    if change["kind"] == PUSH:
        target = _at(holder, last)
        if target is None and isinstance(holder, dict):
            target = holder[str(last)] = []
        if not isinstance(target, list):
            return False
        if isinstance(change.get("i"), int):
            del target[max(change["i"], 0) :]
        target += change["v"] if isinstance(change.get("v"), list) else []
        return True
    return _set(holder, last, change.get("v"), delete=change["kind"] == DELETE)


def _at(holder: Any, key: Any) -> Any:
    if isinstance(holder, dict):
        return holder.get(str(key))
    if isinstance(holder, list) and isinstance(key, int) and 0 <= key < len(holder):
        return holder[key]
    return None


def _set(holder: Any, key: Any, value: Any, *, delete: bool) -> bool:
    if isinstance(holder, dict):
        if delete:
            holder.pop(str(key), None)
        else:
            holder[str(key)] = value
        return True
    if not isinstance(holder, list) or not isinstance(key, int) or not 0 <= key <= len(holder):
        return False
    if delete:
        del holder[key : key + 1]
    elif key == len(holder):
        holder.append(value)
    else:
        holder[key] = value
    return True


def _mark(document: Mapping[str, Any], row: Row, written: dict[int, int]) -> None:
    path = row.value["k"]
    count = len(_requests(document))
    if path[0] != "requests":
        return
    if len(path) > 1 and isinstance(path[1], int):
        written[path[1]] = row.number
    elif row.value["kind"] == PUSH:
        kept = row.value["i"] if isinstance(row.value.get("i"), int) else None
        first = kept if kept is not None else count - len(row.value.get("v") or [])
        written |= dict.fromkeys(range(max(first, 0), count), row.number)
    else:
        written |= dict.fromkeys(range(count), row.number)


def _requests(document: Mapping[str, Any]) -> list[Any]:
    listed = document.get("requests")
    return listed if isinstance(listed, list) else []
