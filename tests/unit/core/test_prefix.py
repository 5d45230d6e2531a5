"""A context is the same sequence whether it is a tuple or a view of a list that grows."""

from __future__ import annotations

import pickle

from postgrad.core.prefix import LONG, Prefix, Renaming, beginning, common, grown

FIRST = tuple(str(number) for number in range(LONG))


def list_of(view: object) -> list[str]:
    assert isinstance(view, Prefix)
    return view.items


def test_a_view_behaves_as_the_tuple_of_its_items() -> None:
    view = grown((), FIRST)
    assert isinstance(view, Prefix)
    assert view in [FIRST]
    assert FIRST in [view], "equal from both sides"
    assert hash(view) == hash(FIRST)
    assert view != FIRST[:-1]
    assert (view[0], view[-1], view[2:4], view[:2], len(view)) == ("0", FIRST[-1], ("2", "3"), ("0", "1"), LONG)
    assert (*view, "x") == (*FIRST, "x")
    assert pickle.loads(pickle.dumps(view)) == view
    assert isinstance(grown((), FIRST[:-1]), tuple), "short ones are tuples"


def test_steps_of_one_history_share_a_list_and_branches_do_not_disturb_each_other() -> None:
    """A, then A+b and A+b+c in the same list; A+d is another; A+b once more is the first again."""
    base = grown((), FIRST)
    one = grown(base, ["b"])
    two = grown(one, ["c"])
    branch = grown(base, ["d"])
    again = grown(base, ["b"])
    assert (base, one, two, branch) == (FIRST, (*FIRST, "b"), (*FIRST, "b", "c"), (*FIRST, "d"))
    assert list_of(base) is list_of(one) is list_of(two) is list_of(again)
    assert list_of(branch) is not list_of(base)
    assert len(list_of(base)) == LONG + 2


def test_beginnings_are_found_with_and_without_a_shared_list() -> None:
    one = grown((), [*FIRST, "b"])
    longer = grown(one, ["c"])
    other = grown((), [*FIRST, "x"])
    assert common(one, longer) == LONG + 1
    assert common(one, other) == common(tuple(one), tuple(other)) == LONG
    assert common((), one) == 0
    assert beginning(longer, LONG + 1) == one
    assert beginning(longer, 2) == ("0", "1")


def test_renamed_views_share_a_list_again() -> None:
    """Every id doubled, a word before them: the shorter view of the two may be asked for last."""
    one = grown((), FIRST)
    two = grown(one, ["b"])
    renaming = Renaming(lambda one: one * 2)
    longer, shorter = renaming.of(two, before=("s",)), renaming.of(one, before=("s",))
    assert longer == ("s", *(name * 2 for name in FIRST), "bb")
    assert shorter == ("s", *(name * 2 for name in FIRST))
    assert list_of(longer) is list_of(shorter)
    assert renaming.of(("a",), before=("s",)) == ("s", "aa")
