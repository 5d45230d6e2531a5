"""A forest through a model: hidden states in forest order, as a tree (each token once) or flat (one branch a row).

Tree: one sequence of T tokens with the forest's own mask and each token's depth as position id. Flat: every leaf's
branch is a row, right-padded; a causal model never sees what is to the right, so rows need no mask, and a model of any
kind (recurrent, ALiBi) can run it.

The mask is dense, or one by blocks for a model that the self-check switched to that (`flex` on GPUs, `blocks` on CPUs).

Shapes: T tokens of the forest, R rows, L positions, D hidden width.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from postgrad.core.forest import Forest, IntsT
from postgrad.models.blocks import on_blocks, packed_mask
from postgrad.models.flex import NAME, block_mask, usable
from postgrad.models.split import SplitModel

Scheme = Literal["plain", "window", "layer types"]
"""How a family wants its masks: one for all layers, one with the window counted in, or one per layer type."""

FLAT_TOKENS = 8192
"""Padded tokens of one flat batch."""


def tree_hidden_TD(model: SplitModel, forest: Forest, *, scheme: Scheme, causal_only: bool = False) -> Tensor:
    """Hidden states (T, D) of one pass over the whole forest.

    `causal_only` lets every token see all before it, other branches too: wrong on purpose, the measure of the
    self-check.
    """
    device = model.device
    output = model.body(
        input_ids=torch.as_tensor(forest.tokens_T, device=device)[None],
        position_ids=torch.as_tensor(forest.positions_T, device=device)[None],
        attention_mask=forest_masks(model, forest, scheme=scheme, causal_only=causal_only),
        use_cache=False,
        return_dict=True,
    )
    hidden_1TD: Tensor = output.last_hidden_state
    return hidden_1TD.squeeze(0)


def forest_masks(model: SplitModel, forest: Forest, *, scheme: Scheme, causal_only: bool = False) -> Any:
    """The forest's attention mask in the form that `scheme` names: (1, 1, T, T), or a dict of them by layer type.

    For a model on FlexAttention they are block masks.
    """
    config = model.config
    window = getattr(config, "sliding_window", None)
    if not causal_only and (usable(model.model) or on_blocks(model.model)):
        return _block_masks(model, forest, scheme=scheme, window=window)
    if causal_only:
        whole_TT = np.tril(np.ones((len(forest), len(forest)), dtype=np.bool_))
        windowed_TT = chunked_TT = whole_TT
    else:
        whole_TT = forest.mask_TT()
        windowed_TT = forest.mask_TT(window=window)
        chunk_T = forest.positions_T // (getattr(config, "attention_chunk_size", None) or len(forest))
        chunked_TT = whole_TT & (chunk_T[:, None] == chunk_T[None, :])
    if scheme == "plain":
        return _as_mask(model, whole_TT)
    if scheme == "window":
        return _as_mask(model, windowed_TT)
    by_type = {"full_attention": whole_TT, "sliding_attention": windowed_TT, "chunked_attention": chunked_TT}
    wanted = {"full_attention", *config.layer_types}
    # A layer type without attention gets None, as from the library; the self-check then judges the model.
    return {kind: _as_mask(model, by_type[kind]) if kind in by_type else None for kind in sorted(wanted)}


def _block_masks(model: SplitModel, forest: Forest, *, scheme: Scheme, window: int | None) -> Any:
    config, device = model.config, str(model.device)
    make: Any = packed_mask if on_blocks(model.model) else block_mask
    if scheme == "plain":
        return make(forest, device=device)
    if scheme == "window":
        return make(forest, window=window, device=device)
    chunk = getattr(config, "attention_chunk_size", None)
    limits = {
        "full_attention": {},
        "sliding_attention": {"window": window},
        "chunked_attention": {"chunk": chunk},
    }
    wanted = sorted({"full_attention", *config.layer_types})
    return {kind: make(forest, **limits[kind], device=device) if kind in limits else None for kind in wanted}


def _as_mask(model: SplitModel, seen_TT: np.ndarray[Any, np.dtype[np.bool_]]) -> Tensor:
    mask_11TT = torch.as_tensor(seen_TT, device=model.device)[None, None]
    kind, dtype = model.device.type, model.dtype
    if model.model.config._attn_implementation in ("sdpa", NAME):
        # SDPA would turn a boolean mask into this in every layer, and keep each layer's for the backward pass.
        hidden = -math.inf
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else dtype
    else:  # eager attention adds the mask to its scores
        hidden = torch.finfo(dtype).min
    return torch.zeros(mask_11TT.shape, dtype=dtype, device=model.device).masked_fill(~mask_11TT, hidden)


def flat_hidden_TD(model: SplitModel, forest: Forest) -> Tensor:
    """Hidden states (T, D) in forest order, every leaf's branch computed alone; a shared token is read from one row."""
    rows, row_T, column_T = leaf_rows(forest)
    hidden_by_row: list[Tensor] = []
    for batch in _batches(rows):
        length = max(len(rows[r]) for r in batch)
        ids_RL = torch.zeros((len(batch), length), dtype=torch.long)
        for i, r in enumerate(batch):
            ids_RL[i, : len(rows[r])] = torch.as_tensor(forest.tokens_T[rows[r]])
        output = model.body(input_ids=ids_RL.to(model.device), use_cache=False, return_dict=True)
        hidden_RLD = output.last_hidden_state
        hidden_by_row.extend(hidden_RLD[i, : len(rows[r])] for i, r in enumerate(batch))
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    index_T = torch.as_tensor(starts[row_T] + column_T, device=model.device)
    return torch.cat(hidden_by_row)[index_T]


def leaf_rows(forest: Forest) -> tuple[list[IntsT], IntsT, IntsT]:
    """Root-to-leaf index paths, and for each token the row and column at which it is read."""
    leaves = np.flatnonzero(forest.exits_T == np.arange(len(forest)) + 1)
    row_T, column_T = np.full(len(forest), -1), forest.positions_T.copy()
    rows: list[IntsT] = []
    for leaf in leaves:
        path, node = [], int(leaf)
        while node >= 0:
            path.append(node)
            node = int(forest.parents_T[node])
        row = np.array(path[::-1], dtype=np.int64)
        row_T[row[row_T[row] < 0]] = len(rows)
        rows.append(row)
    return rows, row_T, column_T


def _batches(rows: list[IntsT]) -> list[list[int]]:
    """Consecutive rows together as long as the padded batch stays under `FLAT_TOKENS`."""
    batches: list[list[int]] = []
    longest = 0
    for index, row in enumerate(rows):
        longest = max(longest, len(row)) if batches else len(row)
        if batches and (len(batches[-1]) + 1) * longest <= FLAT_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = len(row)
    return batches
