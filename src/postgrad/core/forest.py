"""`Forest`: token trees in depth-first order, ready for one forward pass.

Token q sees token k iff ``k <= q < exit[k]``: k is q or an ancestor of q. That one rule is packing, prefix sharing
and branching at once; roots do not see each other. Branches are merged by equal token ids from the root on, so a
shared prefix is computed once whatever it was shared for.

Shapes: T tokens of the forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from postgrad.core.annotation import Unit

IntsT = NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """Trees of tokens.

    Attributes:
        tokens_T: token ids.
        positions_T: depth of each token in its tree, the position id of the model.
        exits_T: index at which the token's subtree ends.
        parents_T: index of the parent token, -1 at a root.
        paths: per unit, per branch: the indices of its tokens from root to leaf.
        units: the units laid out here, in the order of `paths`.
    """

    tokens_T: IntsT
    positions_T: IntsT
    exits_T: IntsT
    parents_T: IntsT
    paths: tuple[tuple[IntsT, ...], ...]
    units: tuple[Unit, ...]

    def __len__(self) -> int:
        return len(self.tokens_T)

    def mask_TT(self, *, window: int | None = None) -> NDArray[np.bool_]:
        """Who sees whom, row = query. With `window`, only the last `window` positions (the query's own included)."""
        index = np.arange(len(self))
        seen = (index[None, :] <= index[:, None]) & (index[:, None] < self.exits_T[None, :])
        if window is not None:
            seen &= self.positions_T[:, None] - self.positions_T[None, :] < window
        return seen


class _Node:
    __slots__ = ("children", "index")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.index = -1


def build_forest(units: Sequence[Unit]) -> Forest:
    """Merge the branches of `units` by shared prefixes and lay them out depth-first.

    Raises:
        ValueError: a branch is empty.
    """
    root = _Node()
    leaves: list[list[list[_Node]]] = []
    for unit in units:
        leaves.append([_insert(root, branch) for branch in unit.branches])
    tokens, positions, exits, parents = _layout(root)
    paths = tuple(
        tuple(np.array([node.index for node in branch], dtype=np.int64) for branch in unit) for unit in leaves
    )
    return Forest(tokens, positions, exits, parents, paths, tuple(units))


def _insert(root: _Node, branch: Sequence[int]) -> list[_Node]:
    if not branch:
        raise ValueError("a branch has no tokens")
    node, path = root, []
    for token in branch:
        node = node.children.setdefault(token, _Node())
        path.append(node)
    return path


def _layout(root: _Node) -> tuple[IntsT, IntsT, IntsT, IntsT]:
    """Depth-first order without recursion: a trace is far deeper than Python's stack."""
    tokens: list[int] = []
    positions: list[int] = []
    parents: list[int] = []
    exits: list[int] = []
    stack = [(token, node, -1, 0) for token, node in reversed(root.children.items())]
    while stack:
        token, node, parent, depth = stack.pop()
        if token < 0:  # the mark set below: the subtree of `parent` is complete
            exits[parent] = len(tokens)
            continue
        node.index = len(tokens)
        tokens.append(token)
        positions.append(depth)
        parents.append(parent)
        exits.append(0)
        stack.append((-1, node, node.index, 0))
        stack.extend((t, child, node.index, depth + 1) for t, child in reversed(node.children.items()))
    as_ints = (np.array(column, dtype=np.int64) for column in (tokens, positions, exits, parents))
    tokens_T, positions_T, exits_T, parents_T = as_ints
    return tokens_T, positions_T, exits_T, parents_T


def pack(units: Sequence[Unit], *, budget: int) -> list[Forest]:
    """Split `units` over forests of at most `budget` tokens each, keeping units that share a prefix together.

    A unit is never split, and each appears in exactly one forest, so every item is scored once. A prefix shared by
    units of two forests is repeated. A unit that alone exceeds the budget gets a forest of its own.
    """
    ordered = sorted(units, key=lambda unit: unit.branches[0])
    forests: list[Forest] = []
    group: list[Unit] = []
    trie, size = _Node(), 0
    for unit in ordered:
        added = _growth(trie, unit)
        if group and size + added > budget:
            forests.append(build_forest(group))
            group, trie, size = [], _Node(), 0
            added = _growth(trie, unit)
        for branch in unit.branches:
            _insert(trie, branch)
        group.append(unit)
        size += added
    if group:
        forests.append(build_forest(group))
    return forests


def _growth(trie: _Node, unit: Unit) -> int:
    """How many new tokens `unit` would add to `trie`."""
    new = 0
    own = _Node()
    for branch in unit.branches:
        node: _Node | None = trie
        mine = own
        for token in branch:
            node = node.children.get(token) if node else None
            if token not in mine.children:
                mine.children[token] = _Node()
                new += node is None
            mine = mine.children[token]
    return new
