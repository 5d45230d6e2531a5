from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.annotation import Unit
from postgrad.core.forest import ancestors, build_forest

branches = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), min_size=1, max_size=5)


def test_by_hand():
    """Branches 0 1 2, 0 1 3 and 4 5 in depth-first order: 0 1 2 3 4 5. Token 3 hangs on 0 1 3, at place 2."""
    forest = build_forest([Unit(((0, 1, 2), (0, 1, 3), (4, 5)))])
    part, places = ancestors(forest, np.array([3]))
    assert part.tokens_T.tolist() == [0, 1, 3]
    assert part.exits_T.tolist() == [3, 3, 3]
    assert part.parents_T.tolist() == [-1, 0, 1]
    assert places.tolist() == [2]


@given(branches, st.data())
def test_every_kept_token_sees_what_it_saw(paths: list[tuple[int, ...]], data: st.DataObject):
    forest = build_forest([Unit(tuple(paths))])
    nodes = np.array(data.draw(st.lists(st.integers(0, len(forest) - 1), min_size=1, max_size=4)))
    part, places = ancestors(forest, nodes)
    old, new = forest.mask_TT(), part.mask_TT()
    kept = np.flatnonzero(old[nodes].any(0))
    assert part.tokens_T.tolist() == forest.tokens_T[kept].tolist()
    assert (new == old[np.ix_(kept, kept)]).all()
    assert (kept[places] == nodes).all()
    assert part.positions_T.tolist() == forest.positions_T[kept].tolist()
