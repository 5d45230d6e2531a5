"""Every dependency is pinned exactly, in what the project tests with, and nothing names a package host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PINNED = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]


def test_pins_are_exact_and_sorted() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._]+", line) for line in PINNED)
    assert len({canonicalize_name(line.split("==")[0]) for line in PINNED}) == len(PINNED)


def test_every_dependency_has_a_pin_that_it_accepts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    versions = {canonicalize_name(name): version for name, version in (line.split("==") for line in PINNED)}
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    for requirement in map(Requirement, wanted):
        if requirement.name != "postgrad":
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_no_package_host_is_named() -> None:
    for name in ("constraints.txt", "Makefile", "pyproject.toml", ".ci/run"):
        assert not re.search(r"https?://|index-url|find-links", (ROOT / name).read_text()), name
