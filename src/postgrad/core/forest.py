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

from postgrad.core.annotation import Item, Unit, branches_of, on_branches

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


def ancestors(forest: Forest, nodes_N: IntsT) -> tuple[Forest, IntsT]:
    """The part of `forest` that `nodes_N` hang on, themselves included, and their places in it; it has no units."""
    wanted_T = np.zeros(len(forest), dtype=np.int64)
    wanted_T[nodes_N] = 1
    below_T = np.concatenate([[0], np.cumsum(wanted_T)])  # wanted tokens before an index
    kept_T = below_T[forest.exits_T] > below_T[:-1]  # one of them lies in the token's subtree
    place_T = np.concatenate([[0], np.cumsum(kept_T)])
    parents_K = forest.parents_T[kept_T]
    part = Forest(
        forest.tokens_T[kept_T],
        forest.positions_T[kept_T],
        place_T[forest.exits_T[kept_T]],
        np.where(parents_K < 0, -1, place_T[parents_K]),
        (),
        (),
    )
    return part, place_T[nodes_N]


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

    Every item is in exactly one forest, so it is scored once; a prefix shared by units of two forests is repeated. A
    unit that alone exceeds the budget is cut at its branches; what cannot be cut gets a forest of its own.
    """
    ordered = sorted((part for unit in units for part in cut(unit, budget=budget)), key=lambda unit: unit.branches[0])
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


def cut(unit: Unit, *, budget: int) -> list[Unit]:
    """`unit` in parts of at most `budget` tokens where its items allow it: each part repeats the prefix it needs.

    Branches that one item reads together (a chosen and a rejected action) stay together, and a branch is never cut
    within; branches that no item reads are left out of a unit that is cut.
    """
    if unit.tokens <= budget or _growth(_Node(), unit) <= budget:
        return [unit]
    parts: list[Unit] = []
    held: list[Item] = []
    for items in sorted(_inseparable(unit), key=lambda items: unit.branches[min(branches_of(items[0]))]):
        if held and _growth(_Node(), _part(unit, held + items)) > budget:
            parts.append(_part(unit, held))
            held = []
        held += items
    return [*parts, _part(unit, held)] if held else [unit]


def _inseparable(unit: Unit) -> list[list[Item]]:
    """The unit's items in sets that share no branch with each other."""
    sets: list[tuple[set[int], list[Item]]] = []
    for item in unit.items:
        branches, items = set(branches_of(item)), [item]
        for other in [pair for pair in sets if pair[0] & branches]:
            branches, items = branches | other[0], other[1] + items
            sets.remove(other)
        sets.append((branches, items))
    return [items for _, items in sets]


def _part(unit: Unit, items: Sequence[Item]) -> Unit:
    """`items` with the branches that they read."""
    kept = sorted({branch for item in items for branch in branches_of(item)})
    moved = {branch: place for place, branch in enumerate(kept)}
    return Unit(tuple(unit.branches[branch] for branch in kept), tuple(on_branches(item, moved) for item in items))


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
