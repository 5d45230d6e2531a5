"""Foreign JSON, asked for what one expects of it: a text, a mapping, a list of mappings, or nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from postgrad.core.canonical import too_deep

_JSON_START = re.compile(r'\s*(\{|\[|"(?=\s*[\[{\\]))')
_CREDENTIALS = frozenset({"headers", "extra_headers", "default_headers", "http_options", "api_key", "authorization"})
_SECONDS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # above this a number of seconds is one of ns, µs, ms


def text(value: object) -> str | None:
    """A text that says something, else None."""
    return value if isinstance(value, str) and value else None


def string(value: object) -> str:
    """A text, empty for everything else."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """An object, empty for everything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """What is in a list, nothing for everything else."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: object) -> float | None:
    """A finite number, also one that is written as a text; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def opened(value: object) -> Any:
    """What a text of JSON says, also JSON inside JSON; everything else stays as it is."""
    for _ in range(3):
        if not isinstance(value, str) or not _JSON_START.match(value):
            break
        try:
            inner = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            break
        if too_deep(inner):
            break
        value = inner
    return value


def written(value: object) -> str:
    """A text as it is, null as nothing, everything else as its JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def seconds(value: object) -> float | None:
    """Seconds since 1970 of a time in ISO form, in s, ms, µs or ns, or as the pair (seconds, nanoseconds)."""
    if isinstance(value, list) and len(value) == 2 and all(number(part) is not None for part in value):
        return float(value[0]) + float(value[1]) / 1e9
    if (stated := number(value)) is not None:
        return next((stated / unit for limit, unit in _SECONDS if stated >= limit), stated)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00").replace(" UTC", "+00:00"))
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(value: object) -> str | None:
    """A time as it was written, or a number of seconds (ms, µs, ns) in ISO form, UTC."""
    if isinstance(value, str) and number(value) is None:
        return value or None
    found = seconds(value)
    if found is None or not 0 < found < 1e11:
        return None
    return datetime.fromtimestamp(found, UTC).isoformat()


def settings(values: Mapping[str, Any], *, data: Collection[str] = ()) -> dict[str, Any]:
    """The parameters of a request: what says something, is no `data`, and holds no credentials (keys, headers)."""
    return {
        key: value
        for key, value in values.items()
        if value is not None and key not in data and key.lower() not in _CREDENTIALS
    }


def first(source: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first key that has one."""
    return next((source[key] for key in keys if source.get(key) is not None), None)
