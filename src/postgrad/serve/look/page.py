"""The page: one HTML file with style and script in it, and no other host named.

What users and models wrote is data of strangers: details are base64 of packed JSON, rows are JSON with every "<"
escaped, and the script sets text as text. The page's policy lets no other script run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from postgrad.core.canonical import canonical_json
from postgrad.core.files import replacing
from postgrad.core.trace import Trace
from postgrad.run.html import environment
from postgrad.serve.look.shelf import Shelf

LARGEST = 64 << 20
"""Bytes of packed details in one file; traces beyond stay in the list, and the page says how to look at them."""
_SCRIPTS = ("dom.js", "source.js", "blocks.js", "trace.js", "list.js", "main.js")


def live_page(name: str) -> bytes:
    """The page that asks its server for rows and details."""
    return _page(name, live=True, details=[]).encode()


def write_page(traces: Iterable[Trace], path: Path, *, name: str, largest: int = LARGEST) -> dict[str, Any]:
    """Write the page with all its data.

    Returns:
        how many traces are listed, how many of them are whole in the page, and its size in bytes.

    Raises:
        OutsideFailure: the disk is full or not writable.
    """
    shelf = Shelf()
    shelf.fill(traces)
    details, size = [], 0
    for row in shelf.rows:
        packed = shelf.packed(row["key"])
        size += len(packed)
        if size > largest:
            break
        details.append(base64.b64encode(packed).decode())
    text = _page(name, live=False, details=details, rows=shelf.rows)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return {"html": str(path), "traces": len(shelf.rows), "whole": len(details), "bytes": len(text.encode())}


def _page(name: str, *, live: bool, details: list[str], rows: list[dict[str, Any]] | None = None) -> str:
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = canonical_json({"name": name, "live": live, "whole": len(details), "rows": rows or []})
    page: str = (
        environment("postgrad.serve.look")
        .get_template("page.html")
        .render(name=name, script=script, digest=digest, live=live, details=details, data=data.replace("<", "\\u003c"))
    )
    return page


@cache
def _script() -> str:
    """The parts in one function, so that nothing of them is global."""
    folder = files("postgrad.serve.look") / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "\n".join(['(() => {\n"use strict";', *parts, "})();"])
