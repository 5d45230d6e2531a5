"""One slip away from a known program is a mistake; a program of its own, known or not, is none."""

from __future__ import annotations

import pytest

from postgrad.signals.shell.misspelt import is_misspelt


@pytest.mark.parametrize("name", ["pytets", "pyhton", "pytst", "dokcer", "grpe", "makee", "kubeclt", "crago"])
def test_slips(name: str) -> None:
    assert is_misspelt(name)


@pytest.mark.parametrize(
    "name", ["pytest", "gmake", "nodejs", "python2", "rg", "fd", "bat", "mamba", "uv", "cargo-nextest", "mvn", "gsed"]
)
def test_names_of_their_own(name: str) -> None:
    assert not is_misspelt(name)
