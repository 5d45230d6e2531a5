"""One thing is one thing."""

from __future__ import annotations

from postgrad.core.words import counted


def test_a_number_with_its_noun() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]
    assert counted(3, "entry", "entries") == "3 entries"
    assert counted(1, "entry", "entries") == "1 entry"
