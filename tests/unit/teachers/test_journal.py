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


def test_a_try_that_broke_off_counts_as_what_the_same_request_was_billed_later(tmp_path: Path) -> None:
    """9 were set aside and lost sight of. The same request is answered for 2: so the lost try cost at most about 2.
    An answer that names no bill (4 set aside) says nothing about another, and is one of them. A bill with a discount
    (1 in place of 3) says 3: the lost try may have had none."""
    journal = Journal(tmp_path / "calls.jsonl")
    journal.write(Line("sent", "1", "a", key="k", reserved=9.0))
    journal.reconcile(lambda key: None)
    assert (journal.uncertain, journal.may_be_lower("k"), journal.may_be_lower("x")) == (9.0, True, False)
    journal.write(Line("sent", "2", "a", key="k", reserved=9.0))
    journal.write(Line("settled", "2", "a", key="k", outcome="answered", uncertain=4.0))
    assert journal.uncertain == 13.0
    journal.write(Line("sent", "3", "a", key="k", reserved=9.0))
    journal.write(Line("settled", "3", "a", key="k", outcome="answered", cost=2.0))
    assert (journal.paid, journal.uncertain) == (2.0, 2.0 + 2.0)
    assert Journal(tmp_path / "calls.jsonl").uncertain == 4.0
    journal.write(Line("sent", "4", "a", key="k", reserved=9.0))
    journal.write(Line("settled", "4", "a", key="k", outcome="answered", cost=1.0, dearest=3.0))
    assert journal.uncertain == 3.0 + 3.0


def asking(key: str, host: str = "") -> Line:
    return Line("sent", "", "a", key=key, host=host)


def test_asking_again_uses_what_lost_tries_hold(tmp_path: Path) -> None:
    """9 for k, whose process was killed; of x an answer has come since. Until k is answered or released. What another
    endpoint has lost is no money for this one: it may have been billed in full, whatever this one bills."""
    journal = Journal(tmp_path / "calls.jsonl")
    for call, key in (("1", "k"), ("2", "x")):
        journal.write(Line("sent", call, "a", key=key, reserved=9.0))
    assert journal.set_aside(asking("k"), 9.0) is None  # they are under way
    journal.reconcile(lambda key: None)
    assert (journal.set_aside(asking("k"), 9.0), journal.set_aside(asking("other"), 9.0)) == (9.0, None)
    assert journal.set_aside(asking("k", "elsewhere"), 9.0) is None
    journal.write(Line("sent", "3", "a", key="x", reserved=0.0))
    journal.write(Line("settled", "3", "a", key="x", outcome="answered", cost=1.0))
    again = Journal(tmp_path / "calls.jsonl")
    again.reconcile(lambda key: None)
    assert (again.set_aside(asking("k"), 9.0), again.set_aside(asking("x"), 9.0)) == (9.0, None)
    again.release()
    assert again.set_aside(asking("k"), 9.0) is None


@pytest.mark.parametrize("outcome", ["cut", "timeout", "truncated", "invalid_reply"])
def test_what_a_try_of_this_process_lost_pays_for_asking_again_as_well(tmp_path: Path, outcome: str) -> None:
    """Lost once: 9 stand, and one more try can use them. Lost twice, the second on them: nothing is left for a third.
    The same in a later run, until there is an answer. A refused connection cost nothing, and leaves nothing."""
    journal = Journal(tmp_path / "calls.jsonl")
    journal.reconcile(lambda key: None)
    for number, (reserved, left) in enumerate([(9.0, 9.0), (0.0, 0.0)]):
        journal.write(Line("sent", str(number), "a", key="k", reserved=reserved))
        journal.write(Line("settled", str(number), "a", key="k", outcome=outcome, uncertain=reserved))
        later = Journal(tmp_path / "calls.jsonl")
        later.reconcile(lambda key: None)
        assert journal.set_aside(asking("k"), 9.0) == later.set_aside(asking("k"), 9.0) == left
    for number, end in (("3", "connection"), ("4", "answered")):
        journal.write(Line("sent", number, "a", key="k", reserved=9.0))
        journal.write(Line("settled", number, "a", key="k", outcome=end))
        assert journal.set_aside(asking("k"), 9.0) == (0.0 if end == "connection" else None)


def test_a_request_that_was_lost_again_and_again_is_on_the_bill_as_often(tmp_path: Path) -> None:
    """At most 9 each. Killed once: 9 stand, and the second try uses them. Killed twice: 9 for those two, and the third
    needs 9 of its own. Killed three times: 18 for four. The fourth is answered for 2, so the three cost 3 * 2."""
    path, held = tmp_path / "calls.jsonl", [9.0, 0.0, 9.0, 0.0]
    for number, reserved in enumerate(held):
        journal = Journal(path)
        journal.reconcile(lambda key: None)
        assert max(0.0, 9.0 - (journal.set_aside(asking("k"), 9.0) or 0.0)) == reserved
        journal.write(Line("sent", str(number), "a", key="k", reserved=reserved))
    journal.write(Line("settled", "3", "a", key="k", outcome="answered", cost=2.0))
    assert (journal.paid, journal.uncertain) == (2.0, 6.0)
    assert (journal.release(), journal.uncertain, Journal(path).uncertain) == (6.0, 0.0, 0.0)


def test_a_bill_says_nothing_about_what_another_endpoint_may_charge() -> None:
    """The first endpoint timed out with 9 set aside; another one, ten times cheaper, answered."""
    journal = Journal()
    for host, outcome, cost in (("dear", "timeout", 0.0), ("cheap", "answered", 0.2)):
        journal.write(Line("sent", host, "a", key="k", host=host, reserved=9.0))
        uncertain = 0.0 if cost else 9.0
        journal.write(Line("settled", host, "a", key="k", outcome=outcome, cost=cost, uncertain=uncertain))
    assert journal.uncertain == 9.0


def test_money_that_the_user_has_seen_was_not_billed_is_released_for_good(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "calls.jsonl")
    journal.write(Line("sent", "1", "a", key="k", reserved=9.0))
    journal.reconcile(lambda key: None)
    assert (journal.release(), journal.uncertain, journal.this_run()) == (9.0, 0.0, [])
    again = Journal(tmp_path / "calls.jsonl")
    assert (again.uncertain, again.release(), len(again.lines)) == (0.0, 0.0, 3)
