"""The journal: two lines a call, and what a killed process leaves."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from postgrad.core.errors import OutsideFailure
from postgrad.teachers.journal import Journal, Line


def sent(journal: Journal, key: str, reserved: float = 1.0) -> str:
    name = journal.name()
    journal.write(Line("sent", name, "a", key=key, trace="t", reserved=reserved))
    return name


def test_what_was_open_is_paid_as_the_cache_says_or_may_be_gone(tmp_path: Path) -> None:
    """Three calls: settled for 0.3; died after its answer was kept (0.2); died with 1.0 set aside and no answer."""
    first = Journal(tmp_path / "calls.jsonl")
    first.write(Line("settled", sent(first, "k1"), "a", outcome="answered", cost=0.3))
    sent(first, "k2")
    sent(first, "k3")
    again = Journal(tmp_path / "calls.jsonl")
    again.reconcile({"k2": 0.2}.get)
    assert (again.paid, again.uncertain) == (pytest.approx(0.5), 1.0)
    assert again.this_run() == []
    third = Journal(tmp_path / "calls.jsonl")
    third.reconcile({}.get)
    assert third.lines == again.lines  # settled once


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    sent(Journal(path), "k1")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "sen')
    journal = Journal(path)
    sent(journal, "k2")
    assert [line.key for line in Journal(path).lines] == ["k1", "k2"]


def test_a_line_that_is_no_line_is_told_and_not_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("nonsense\n")
    with pytest.raises(OutsideFailure, match="broken line"):
        Journal(path)


def test_names_differ_between_journals() -> None:
    assert len({Journal().name() for _ in range(100)}) == 100


def test_no_folder_is_made_before_a_call_leaves(tmp_path: Path) -> None:
    Journal(tmp_path / "out" / "calls.jsonl").reconcile({}.get)
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_fits_the_disk_in_part_is_no_line(tmp_path: Path) -> None:
    """Else its call would go out with nothing to remember it by, and the next line would be glued to it."""
    path = tmp_path / "calls.jsonl"
    journal = Journal(path)
    sent(journal, "k1")
    with full_disk(after=path.stat().st_size + 10), pytest.raises(OutsideFailure, match="cannot write"):
        sent(journal, "k2")
    sent(journal, "k3")
    assert [line.key for line in Journal(path).lines] == ["k1", "k3"]


@contextmanager
def full_disk(*, after: int) -> Iterator[None]:
    """No file of this process can be longer than `after` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
