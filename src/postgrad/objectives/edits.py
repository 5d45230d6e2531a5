"""Where two actions differ: common prefix, divergent middle, common suffix (Focused-DPO, arXiv 2502.11475).

The tokens of a pair's actions that decide between right and wrong are those that differ. The implicit reward becomes
Σ_prefix r_t + w Σ_middle r_t + Σ_suffix r_t, on both sides; the paper's w is 2. The prefix has the same context on both
sides and cancels exactly in the difference; the suffix has not, and does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def common_ends(one: Sequence[int], other: Sequence[int]) -> tuple[int, int]:
    """Lengths of the common prefix and, in what is left of the shorter one, of the common suffix."""
    shorter = min(len(one), len(other))
    prefix = next((k for k in range(shorter) if one[k] != other[k]), shorter)
    left = shorter - prefix
    suffix = next((k for k in range(left) if one[-1 - k] != other[-1 - k]), left)
    return prefix, suffix


def focused_weights(
    chosen: Sequence[int], rejected: Sequence[int], focus: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weight of every token of both: `focus` in the middle, 1 in the common ends."""
    prefix, suffix = common_ends(chosen, rejected)
    weights = []
    for tokens in (chosen, rejected):
        own = np.ones(len(tokens), dtype=np.float32)
        own[prefix : len(tokens) - suffix] = focus
        weights.append(own)
    return weights[0], weights[1]
