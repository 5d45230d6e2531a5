"""Imports run down only; the contract is in pyproject.toml and import-linter checks it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lint(folder: Path, config: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()"]
    return subprocess.run(
        [*command, str(config), "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_contract_holds() -> None:
    done = lint(ROOT / "src", ROOT / "pyproject.toml")
    assert done.returncode == 0, done.stdout
    assert "Contracts: 3 kept, 0 broken." in done.stdout, done.stdout


def test_every_package_has_its_floor() -> None:
    """A package that the contract does not name would be bound by nothing."""
    (layers, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    there = {
        f"postgrad.{path.stem}"
        for path in (ROOT / "src/postgrad").iterdir()
        if path.name not in ("__init__.py", "__main__.py", "__pycache__", "py.typed", "recipes")
    }
    assert there == named


def test_a_broken_contract_is_noticed(tmp_path: Path) -> None:
    """A core module that imports the command line."""
    package = tmp_path / "postgrad"
    (package / "core").mkdir(parents=True)
    for name, text in {"__init__": "", "cli": "", "core/__init__": "", "core/forest": "import postgrad.cli"}.items():
        (package / f"{name}.py").write_text(text)
    config = tmp_path / "contract.toml"
    config.write_text(
        '[tool.importlinter]\nroot_package = "postgrad"\n'
        '[[tool.importlinter.contracts]]\nname = "floors"\ntype = "layers"\n'
        'layers = ["postgrad.cli", "postgrad.core"]\n'
    )
    done = lint(tmp_path, config)
    assert done.returncode != 0
    assert "postgrad.core.forest -> postgrad.cli" in done.stdout
