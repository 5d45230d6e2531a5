"""The journal: later lines win, a torn line was never written, and what is dead is written away in the end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from postgrad.core.errors import DataError
from postgrad.traces.storage import journal as module
from postgrad.traces.storage.journal import Journal, Line, Seen, StoredSource
from postgrad.traces.storage.vault import Piece


def source(name: str, *, segment: str = "s1", path: str = "p", report: bytes = b"null") -> StoredSource:
    pieces = (Piece("s1.zst", 0, 9, 3, "o"),)
    return StoredSource(
        path, "f", name, 3, {"step": 1}, segment, pieces=pieces, files=(("a", 3),), report=msgspec.Raw(report)
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Also a path that is no UTF-8, and a report with a lone surrogate in it."""
    path = tmp_path / "journal"
    odd = source("b", path="p\udcff", report=b'{"text":"\\ud83d"}')
    seen = Seen("p", (3, 12, "x"), "r", "a")
    Journal(path).append([Line(source=source("a")), Line(source=odd), Line(seen=seen)])
    journal = Journal(path)
    assert journal.sources["a"] == source("a")
    assert journal.sources["b"].path == "p\udcff"
    assert msgspec.json.decode(journal.sources["a"].report) is None
    assert b"\\ud83d" in bytes(journal.sources["b"].report)
    assert journal.seen["p"] == seen


def test_later_lines_win(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append([Line(source=source("a")), Line(source=source("b"), gone=("a",))])
    assert list(journal.sources) == ["b"]
    assert journal.stale == {"s1"}
    journal.append([Line(moved=("s1", "s2"))])
    for one in (journal, Journal(path)):
        assert [(name, one.segment) for name, one in one.sources.items()] == [("b", "s2")]
        assert not one.stale


def test_a_torn_line_was_never_written(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path).append([Line(source=source("a"))])
    whole = path.read_bytes()
    path.write_bytes(whole + whole.replace(b'"a"', b'"b"')[:-1])
    journal = Journal(path)
    assert list(journal.sources) == ["a"]
    journal.append([Line(source=source("c"))])
    assert list(Journal(path).sources) == ["a", "c"]


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"{}\nnonsense\n{}\n")
    with pytest.raises(DataError, match="journal is damaged"):
        Journal(tmp_path / "journal")


def test_dead_lines_are_written_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten lines about one path, of which one is alive."""
    monkeypatch.setattr(module, "_WORTH", 10)
    path = tmp_path / "journal"
    journal = Journal(path)
    for number in range(10):
        journal.append([Line(seen=Seen("p", (number,), "r"))])
    journal.append([Line(source=source("a"))])
    before = path.stat().st_size
    journal.tidy()
    assert path.stat().st_size < before / 2
    assert Journal(path).seen == {"p": Seen("p", (9,), "r")}
    journal.append([Line(source=source("b"))])
    assert list(Journal(path).sources) == ["a", "b"]
