"""Canonical JSON and content ids: equal values have equal text, whatever their key order."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def canonical_json(value: object) -> str:
    """Sorted keys, no spaces, UTF-8 kept; lone surrogates survive as escapes.

    Raises:
        TypeError: `value` is not plain JSON data.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def content_id(value: object, *, length: int = 16) -> str:
    """First `length` hexadecimal digits of the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
