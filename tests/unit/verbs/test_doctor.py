"""`doctor` says what is there and how to get what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from postgrad.run import environment
from postgrad.verbs import doctor


def test_the_facts(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"12345")
    done = CliRunner().invoke(doctor.command, ["--cache", str(tmp_path), "--json"])
    facts = json.loads(done.stdout)
    assert facts["cache"] == {"path": str(tmp_path), "contents": {"model": 5}}
    assert facts["versions"]["pydantic"] == environment.installed("pydantic")
    assert facts["disk_free_gib"] > 0
    assert set(facts["cpu"]["features"]) == {"avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16"}


def test_what_is_missing_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"xgrammar", "uvicorn", "bfcl-eval"}
    monkeypatch.setattr(doctor, "installed", lambda library: None if library in absent else "1")
    done = CliRunner().invoke(doctor.command, ["--json"])
    assert json.loads(done.stdout)["missing"] == {
        "eval: xgrammar": "pip install 'postgrad[eval]'",
        "serve: uvicorn": "pip install 'postgrad[serve]'",
        "bfcl-eval": "pip install --no-deps bfcl-eval==2026.3.23",
    }
    assert "run: pip install 'postgrad[serve]'" in CliRunner().invoke(doctor.command, []).stdout.replace("\n", " ")


def test_extras_name_the_libraries_of_pyproject() -> None:
    """What doctor and the error for a missing library say must be what pip would install."""
    import re
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    declared = {"core": project["dependencies"], **project["optional-dependencies"]}
    for extra, libraries in environment.LIBRARIES.items():
        names = {re.split(r"[<>=!\[]", requirement)[0] for requirement in declared[extra]}
        assert set(libraries) <= names, extra
