"""The forest's layout, mask and packing, against layouts worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postgrad.core.annotation import CrossEntropyItem, JudgedItem, PreferenceItem, Span, Unit
from postgrad.core.forest import Forest, build_forest, cut, pack

PAIR = Unit(branches=((5, 6, 7), (5, 6, 8, 9)))


def test_two_branches_share_their_prefix() -> None:
    """5 6 7 and 5 6 8 9 make one tree: indices 0:5 1:6 2:7 3:8 4:9.

    Depths 0 1 2 2 3. The subtree of 5 and of 6 ends at 5, of leaf 7 at 3, of 8 and 9 at 5.
    """
    forest = build_forest([PAIR])
    assert forest.tokens_T.tolist() == [5, 6, 7, 8, 9]
    assert forest.positions_T.tolist() == [0, 1, 2, 2, 3]
    assert forest.exits_T.tolist() == [5, 5, 3, 5, 5]
    assert forest.parents_T.tolist() == [-1, 0, 1, 1, 3]
    assert [path.tolist() for path in forest.paths[0]] == [[0, 1, 2], [0, 1, 3, 4]]


def test_mask_is_ancestors_and_self() -> None:
    """Token 8 (index 3) sees 5, 6 and itself, not its cousin 7; rows are queries."""
    expected = [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    assert build_forest([PAIR]).mask_TT().astype(int).tolist() == expected


def test_window_counts_positions_not_indices() -> None:
    """Window 2: token 9 (depth 3) sees 8 (depth 2) and itself; 8 sees 6 (depth 1), though 7 lies between them."""
    mask = build_forest([PAIR]).mask_TT(window=2)
    assert mask[4].astype(int).tolist() == [0, 0, 0, 1, 1]
    assert mask[3].astype(int).tolist() == [0, 1, 0, 1, 0]


def test_a_branch_that_is_a_prefix_of_another_adds_nothing() -> None:
    assert len(build_forest([Unit(((1, 2),)), Unit(((1, 2, 3),))])) == 3


def test_an_empty_branch_is_refused() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        build_forest([Unit(((),))])


def test_a_deep_branch_needs_no_recursion() -> None:
    assert len(build_forest([Unit((tuple(range(5000)),))])) == 5000


branches = st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple)
units = st.lists(st.lists(branches, min_size=1, max_size=3).map(lambda b: Unit(tuple(b))), min_size=1, max_size=6)


@settings(deadline=None)
@given(units)
def test_the_exit_rule_is_ancestry(drawn: list[Unit]) -> None:
    """k <= q < exit[k] holds exactly when k lies on the path from the root to q."""
    forest = build_forest(drawn)
    mask = forest.mask_TT()
    for query in range(len(forest)):
        ancestors, node = set(), query
        while node >= 0:
            ancestors.add(node)
            node = int(forest.parents_T[node])
        assert set(np.flatnonzero(mask[query])) == ancestors


@settings(deadline=None)
@given(units)
def test_paths_spell_the_branches(drawn: list[Unit]) -> None:
    forest = build_forest(drawn)
    for unit, paths in zip(forest.units, forest.paths, strict=True):
        for branch, path in zip(unit.branches, paths, strict=True):
            assert forest.tokens_T[path].tolist() == list(branch)
            assert forest.positions_T[path].tolist() == list(range(len(branch)))


@settings(deadline=None)
@given(units, st.integers(1, 12))
def test_packing_keeps_every_unit_once_and_the_budget(drawn: list[Unit], budget: int) -> None:
    forests = pack(drawn, budget=budget)
    packed = [unit.branches for forest in forests for unit in forest.units]
    assert sorted(packed) == sorted(unit.branches for unit in drawn)
    for forest in forests:
        assert len(forest) <= budget or len(forest.units) == 1


def test_a_unit_above_the_budget_is_cut_at_its_branches() -> None:
    """A prompt of 3 tokens and three completions of 2 take 9 tokens. With a budget of 7 two of them share one copy of
    the prompt (3 + 2 + 2) and the third gets another (3 + 2); each item goes along, with its branch renumbered.
    """
    branches = tuple((1, 2, 3, 10 * k, 10 * k + 1) for k in (1, 2, 3))
    unit = Unit(branches, tuple(CrossEntropyItem(Span(k, (3, 4)), weight=k + 1) for k in range(3)))
    forests = pack([unit], budget=7)
    assert [len(forest) for forest in forests] == [7, 5]
    parts = [part for forest in forests for part in forest.units]
    assert [part.branches for part in parts] == [branches[:2], branches[2:]]
    assert [(i.span.branch, i.weight) for part in parts for i in part.items] == [(0, 1), (1, 2), (0, 3)]


def test_branches_of_one_item_stay_together() -> None:
    """Two pairs; branch 4 belongs to no item and costs nothing once the unit is cut."""
    branches = ((1, 2), (1, 3), (1, 4), (1, 5), (9, 9, 9))
    pairs = tuple(PreferenceItem(Span(k, (1,)), Span(k + 1, (1,))) for k in (2, 0))
    parts = cut(Unit(branches, pairs), budget=3)
    assert [part.branches for part in parts] == [((1, 2), (1, 3)), ((1, 4), (1, 5))]
    assert [(p.items[0].chosen.branch, p.items[0].rejected.branch) for p in parts] == [(0, 1), (0, 1)]
    judged = JudgedItem((Span(0, (1,)), Span(1, (1,))), (Span(2, (1,)),))
    (whole,) = cut(Unit(branches, (judged,)), budget=1)
    assert whole.branches == branches[:3]
    assert whole.items == (judged,)


def test_a_unit_within_the_budget_is_the_same_object() -> None:
    """Three branches of 2 with a shared first token: 6 tokens by length, 4 in the tree."""
    unit = Unit(((1, 2), (1, 3), (1, 4)), (CrossEntropyItem(Span(1, (1,))),))
    assert cut(unit, budget=4) == [unit]
    assert cut(unit, budget=4)[0] is unit


def test_packing_fills_by_shared_prefixes() -> None:
    """Three branches of 4 tokens that share 3 take 6 tokens in one forest: a budget of 6 is enough."""
    drawn = [Unit(((1, 2, 3, 4),)), Unit(((1, 2, 3, 5),)), Unit(((1, 2, 3, 6),))]
    forests: list[Forest] = pack(drawn, budget=6)
    assert [len(forest) for forest in forests] == [6]
    assert [len(forest) for forest in pack(drawn, budget=5)] == [5, 4]
