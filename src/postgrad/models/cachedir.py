"""Where converted models and measurements of this machine are kept: ``POSTGRAD_CACHE``, else ``~/.cache/postgrad``.

The cache saves time and decides nothing, so one that cannot be written stops nobody: what is in it is still read, and
what is made anew goes to a temporary folder that ends with the process. That is said once.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from postgrad.core.errors import OutsideFailure
from postgrad.core.files import write_json

log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """The cache folder; it may not exist yet."""
    named = os.environ.get("POSTGRAD_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "postgrad"


def place(name: str) -> Path:
    """Where `name` lies in the cache or can be made; its folder exists or can be created."""
    cache = cache_dir()
    if (cache / name).exists() or _writable(cache):
        return cache / name
    return Path(_temporary(str(cache)).name) / name


def recall(name: str) -> dict[str, Any]:
    """The JSON object kept as `name`; empty where there is none that can be read."""
    try:
        known = json.loads(place(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(name: str, value: dict[str, Any]) -> None:
    """Keep `value` as `name`; where that fails it is computed anew next time."""
    try:
        write_json(place(name), value)
    except OutsideFailure as failure:
        log.warning("%s; it is measured anew next time", failure)


def _writable(cache: Path) -> bool:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            return True
    except OSError:
        return False


@functools.cache
def _temporary(cache: str) -> tempfile.TemporaryDirectory[str]:
    log.warning("the cache folder %s cannot be written: nothing is kept; set POSTGRAD_CACHE to one that can", cache)
    return tempfile.TemporaryDirectory(prefix="postgrad-cache-")
