"""What a verb tells, as plain data and as JSON: numbers of any library, null for what is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from postgrad.core.canonical import plain_json

_PLAIN = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """JSON data for a value: numbers of numpy and torch (they know `item`) as Python's, what is not finite as null."""
    if type(value) in _PLAIN:  # most of a long result
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (dict, Mapping)):  # dict first, which is asked faster
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def result_json(value: Any, *, encoding: str = "utf-8") -> str:
    """JSON of `plain(value)` on one line. A long result is written as it stands, which is ten times as fast.

    What `encoding` cannot say makes all of it ASCII escapes.
    """
    try:
        text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_known), indent=0).decode()
        if encoding.lower() not in ("utf-8", "utf8"):
            text.encode(encoding)
    except (TypeError, ValueError, OverflowError):  # lone surrogates, integers beyond 64 bits, or no JSON data at all
        return plain_json(plain(value), encoding=encoding)
    return text


def _known(value: object) -> object:
    """What msgspec asks about: a number of a library, a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(type(value))
