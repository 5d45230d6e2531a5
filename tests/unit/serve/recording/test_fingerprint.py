"""A recording says where it was made."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from postgrad.serve.recording.fingerprint import fingerprint


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_repository(tmp_path: Path) -> None:
    """Clean, then changed: the same commit, dirty, with a hash that differs from change to change."""
    git(tmp_path, "init", "-b", "work")
    git(tmp_path, "remote", "add", "origin", "https://user:secret@example.org/repo.git")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "a")
    clean = fingerprint(tmp_path, ["agent", "--fast"])
    repository = clean["repository"]
    assert (repository["commit"], repository["branch"], repository["dirty"]) == (
        git(tmp_path, "rev-parse", "HEAD"),
        "work",
        False,
    )
    assert repository["remote"] == "https://example.org/repo.git"
    assert (clean["cwd"], clean["command"], clean["python"]) == (
        str(tmp_path),
        ["agent", "--fast"],
        platform.python_version(),
    )
    hashes = set()
    for text in ("2", "3"):
        (tmp_path / "a").write_text(text)
        changed = fingerprint(tmp_path, ["agent", "--fast"])
        assert changed["repository"]["dirty"]
        assert changed["session"] != clean["session"]
        hashes.add(changed["repository"]["changes_sha256"])
    assert len(hashes) == 2


def test_no_repository_and_no_command(tmp_path: Path) -> None:
    told = fingerprint(tmp_path, [])
    assert "repository" not in told
    assert "command" not in told
