"""`fingerprint`: where a recording was made, so that a trace of it can be executed again.

Repository, commit and whether the files differ from it (with a hash of the difference), folder, command, and versions
of Python, Node and the system. Credentials in the repository's address are left out; the command's words are the
recorder's to redact. Not covered: containers, installed packages, files that git does not follow.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import postgrad
from postgrad.core.canonical import content_id
from postgrad.run.environment import git_revision

_SECONDS = 10


def fingerprint(folder: Path, command: Sequence[str]) -> dict[str, Any]:
    """Plain JSON data; a key is there only where there is something to say.

    `session` names this recording: it differs between two recordings, and all lines of one have the same.
    """
    started = datetime.now(UTC).isoformat()
    told = {
        "session": content_id([started, str(folder), list(command)]),
        "started": started,
        "cwd": str(folder.resolve()),
        "command": list(command),
        "repository": _repository(folder),
        "python": platform.python_version(),
        "node": _said("node", "--version"),
        "os": platform.platform(),
        "postgrad": postgrad.__version__,
    }
    return {key: value for key, value in told.items() if value}


def _repository(folder: Path) -> dict[str, Any] | None:
    revision = git_revision(folder)
    if revision is None:
        return None
    git = ("git", "-C", str(folder))
    told = {
        "root": _said(*git, "rev-parse", "--show-toplevel"),
        "remote": _public(_said(*git, "config", "--get", "remote.origin.url")),
        "branch": _said(*git, "rev-parse", "--abbrev-ref", "HEAD"),
        **revision,
    }
    if revision["dirty"]:
        told["changes_sha256"] = hashlib.sha256(_output(*git, "diff", "HEAD", "--binary")).hexdigest()
    return {key: value for key, value in told.items() if value != ""}


def _public(url: str) -> str:
    """A remote's address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.scheme and parts.netloc else url


def _said(*command: str) -> str:
    """A program's answer, "" where it is not there or fails."""
    return _output(*command).decode("utf-8", "replace").strip()


def _output(program: str, *arguments: str) -> bytes:
    found = shutil.which(program)
    if found is None:
        return b""
    try:
        return subprocess.run([found, *arguments], capture_output=True, timeout=_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return b""
