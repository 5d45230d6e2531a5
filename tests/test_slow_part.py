"""Each slow test has exactly one day in four."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["tests/a.py::test_x", "tests/a.py::test_y[1]", "tests/ü.py::test_z"])
def test_a_slow_test_runs_on_one_day_in_four(name: str) -> None:
    spec = spec_from_file_location("options", Path(__file__).parent / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    options = module_from_spec(spec)
    spec.loader.exec_module(options)
    assert sum(options.runs(name, "part", day) for day in range(options.PARTS)) == 1
    assert options.runs(name, "all", 0)
    assert not any(options.runs(name, "none", day) for day in range(options.PARTS))
