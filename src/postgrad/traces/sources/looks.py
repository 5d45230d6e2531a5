"""`looks`: what a source looks like from outside, for whoever is told that no reader recognises it.

Only shapes and names of fields are told, never a value: what is refused may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.raw import SQLITE, ZIP

LISTED = "`postgrad ingest --help` lists the formats"
_SHOWN = 6
_PLAIN = re.compile(r"[A-Za-z_$@][\w.$@/-]{0,29}")
"""A field's name; a longer or odder key is somebody's data."""


def looks(path: Path) -> str:
    """In a few words: "a JSON object with the keys a, b", "an SQLite database with the tables t", "text"."""
    if path.is_dir():
        return "a folder"
    try:
        return _of(Head(path))
    except DataError:
        return "a file that cannot be read"


def _of(head: Head) -> str:
    if not head.start.strip():
        return "an empty file"
    if head.start.startswith(ZIP):
        return "a zip archive"
    if head.start.startswith(SQLITE):
        return f"an SQLite database with {_named('table', sorted(head.tables))}"
    if head.document is not None:
        return _document(head.document)
    if head.rows:
        return f"JSON lines with {_named('key', head.rows[0])}"
    return "text" if head.text else "a binary file"


def _document(document: Any) -> str:
    if isinstance(document, dict):
        return f"a JSON object with {_named('key', document)}"
    first = document[0] if document else None
    return f"a JSON list of objects with {_named('key', first)}" if isinstance(first, dict) else "a JSON list"


def _named(noun: str, names: Iterable[str]) -> str:
    """The first names, and how many more there are; those that are no plain names are counted only."""
    known = list(names)
    plain = [name for name in known if _PLAIN.fullmatch(name)][:_SHOWN]
    more = len(known) - len(plain)
    if not plain:
        return f"{more} {noun}s" if more != 1 else f"1 {noun}"
    told = f"the {noun}{'s' if len(known) > 1 else ''} {', '.join(plain)}"
    return f"{told} and {more} more" if more else told
