"""Where converted models and measurements of this machine are kept: ``POSTGRAD_CACHE``, else ``~/.cache/postgrad``."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder; it may not exist yet."""
    named = os.environ.get("POSTGRAD_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "postgrad"
