"""The documentation builds without a warning, and its commands work.

A ```bash block after the line `<!-- run -->` is run as it stands, in an empty folder, with `postgrad` on the path.
Blocks of one page run in one folder, in their order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^<!-- run -->\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]) if BLOCK.search(page.read_text())
]


def test_the_documentation_builds_strictly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "index.html").is_file()


def test_there_are_commands_to_run() -> None:
    assert len(PAGES) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "postgrad"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m postgrad "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "POSTGRAD_CACHE": str(tmp_path / "cache"),
    }
    script = "set -euo pipefail\n" + "\n".join(BLOCK.findall(page.read_text()))
    done = subprocess.run(
        ["bash", "-c", script], cwd=work, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
